"""`watch --screen`: keys and results in, rows of the terminal out. Drawn when something happens, never by a clock."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from agent.diagnose import utc_now
from agent.diff import diff
from agent.diff.ledger import Change
from agent.diff.page import MARKS, STYLES, sentence
from agent.history.window import time_of
from agent.model.report import Report
from agent.outputs.text.findings import render_overview
from agent.outputs.text.header import render_title
from agent.outputs.text.lines import Line, Span, line_length, make_heading, make_line
from agent.outputs.text.tree import render_tree
from agent.outputs.verdict import describe_verdict, verdict_title
from agent.watch.debounce import Batch
from agent.watch.evaluate import FINDINGS, MINOR_GROUPS, NEW_OR_GONE, Evaluation
from agent.watch.output import format_reasons
from agent.watch.terminal import Terminal
from probes.kernel.events import KernelEvent

EVENT_LIMIT = 200
FINDINGS_OF_ONE = 5  # of one evaluation, among the events
FIXED_ROWS = 4  # title, verdict, one empty line, keys
PANE_PART = 5  # each lower pane has at most one fifth of the rows
STATUS_CHARACTERS = 50
MIN_PANE = 3  # with its heading
_BRANCHES = str.maketrans("├└│─", "    ")
_VERDICT_STYLES = {"unknown": "warning", "nothing_to_check": "info"}


class ScreenEvent(NamedTuple):
    """One line of the list of events, and how often it came in a row."""

    time: str
    text: str
    style: str = ""
    times: int = 1


class ScreenPage:
    """What is known, and the rows that show it."""

    def __init__(self, sources: str) -> None:
        self._sources = sources
        self._scan: str | None = None  # why one runs
        self._start: Report | None = None
        self._report: Report | None = None
        self._changes: list[Change] = []
        self._events: deque[ScreenEvent] = deque(maxlen=EVENT_LIMIT)
        self._body: tuple[int, list[Line]] | None = None  # for a width
        self._top = 0  # first visible line of the body
        self._visible = 1  # lines of the body on the screen

    def set_scan(self, reason: str | None) -> None:
        """A scan runs, for this reason; None: it ended."""
        self._scan = reason

    def add_event(self, time: str, text: str, style: str = "") -> None:
        """Add a line; the same one in a row is counted."""
        last = self._events[-1] if self._events else None
        if last and (last.text, last.style) == (text, style):
            self._events[-1] = ScreenEvent(time, text, style, last.times + 1)
        else:
            self._events.append(ScreenEvent(time, text, style))

    def add_kernel_events(self, time: str, events: Sequence[KernelEvent]) -> None:
        """What the kernel reported."""
        for event in events:
            self.add_event(time, event.text)

    def set_evaluation(self, time: str, evaluation: Evaluation) -> None:
        """A new report. Findings that came or went are events; those of the first if there was an earlier report."""
        report = evaluation.report
        if evaluation.verdict_before is not None:
            changes = [change for change in evaluation.changes if _is_of_finding(change)]
            for change in changes[:FINDINGS_OF_ONE]:
                self.add_event(time, _format_change(change), STYLES.get(change.kind, ""))
            if len(changes) > FINDINGS_OF_ONE:
                self.add_event(time, f"and {len(changes) - FINDINGS_OF_ONE} more changes of findings", "dim")
        self._start = self._start or report
        self._changes = [change for change in diff(self._start, report).changes if change.group not in MINOR_GROUPS]
        self._changes.sort(key=lambda change: not _is_of_finding(change))
        self._report, self._body = report, None

    def scroll(self, lines: int) -> None:
        """Move the body; the next call of rows() keeps it on the page."""
        self._top = max(self._top + lines, 0)

    def scroll_pages(self, pages: int) -> None:
        """Move the body by what is visible of it."""
        self.scroll(pages * max(self._visible - 1, 1))

    def rows(self, width: int, height: int) -> list[Line]:
        """At most `height` lines."""
        if self._report is None or self._start is None:
            return [
                _spread("fabricscope watch", self._describe_status(), width),
                *self._event_lines(height - 2),
                self._keys("", width),
            ]
        room = height - FIXED_ROWS
        pane = max(height // PANE_PART, MIN_PANE)
        changes = self._change_lines(pane) if room > 2 * pane else []
        events = self._event_lines(pane) if room > 2 * pane else []
        body = self._render_body(width)
        self._visible = max(room - len(changes) - len(events), 1)
        self._top = max(min(self._top, len(body) - self._visible), 0)
        visible = body[self._top : self._top + self._visible]
        last = self._top + len(visible)
        place = "" if len(visible) == len(body) else f"  lines {self._top + 1}-{last} of {len(body)}"
        (title, *_) = render_title(self._report, max(width, 500))
        verdict = self._report.summary.verdict
        lines = [
            _spread(title[0][0], self._describe_status(), width),
            make_line(
                (verdict_title(self._report), _VERDICT_STYLES.get(verdict, verdict)),
                f"  {describe_verdict(self._report)}",
            ),
            (),
            *visible,
            *[()] * (self._visible - len(visible)),
            *changes,
            *events,
        ]
        return [*lines[: height - 1], self._keys(place, width)]

    def _describe_status(self) -> str:
        if self._scan:
            return f"scanning: {self._scan}"[:STATUS_CHARACTERS]
        return f"last scan {_clock(self._report)} UTC" if self._report else "no report yet"

    def _render_body(self, width: int) -> list[Line]:
        """Findings and the tree. Lines of the tree that differ from the start are marked."""
        assert self._report is not None
        assert self._start is not None
        if self._body is None or self._body[0] != width:
            findings = render_overview(self._report, width)
            tree = render_tree(self._report, width - 2)
            unchanged = {_content(line) for line in (render_tree(self._start, width - 2) if self._changes else tree)}
            marked = [(("  ", "") if _content(line) in unchanged else ("* ", "warning"), *line) for line in tree]
            self._body = width, [*findings, *([()] if findings and tree else []), *marked]
        return self._body[1]

    def _change_lines(self, rows: int) -> list[Line]:
        assert self._start is not None
        since = f"{_clock(self._start)} UTC"
        if not self._changes:
            return [make_line((f"No changes since {since}", "dim"))]
        visible = self._changes if len(self._changes) < rows else self._changes[: rows - 2]
        lines = [make_line(("  " + _format_change(change), STYLES.get(change.kind, ""))) for change in visible]
        rest = len(self._changes) - len(visible)
        more = [make_line((f"  and {rest} more", "dim"))] if rest else []
        return [make_line((f"Changed since {since}", "head"), ("  rows with *", "dim")), *lines, *more]

    def _event_lines(self, rows: int) -> list[Line]:
        if not self._events:
            return [make_line(("No events", "dim"))]
        lines = []
        for event in list(self._events)[-max(rows - 1, 1) :]:
            times = f" ({event.times} times)" if event.times > 1 else ""
            lines.append(make_line((f"  {event.time}  ", "dim"), (event.text + times, event.style)))
        return [make_heading("Events (UTC)"), *lines]

    def _keys(self, place: str, width: int) -> Line:
        spans: list[Span | str] = [("q", "bold"), " quit  ", ("r", "bold"), " scan now"]
        spans += ["  ", ("arrows", "bold"), " scroll", place] if place else []
        room = max(width - line_length(make_line(*spans)) - 2, 0)
        sources = self._sources if len(self._sources) <= room else f"{self._sources[: max(room - 1, 0)].rstrip(' ;,')}…"
        return make_line(*spans, (f"  {sources}", "dim"))


def _spread(left: str, right: str, width: int) -> Line:
    """One text at each end of a line; the left one is cut for the right one."""
    room = max(width - len(right) - 2, 10)
    line = make_line((left if len(left) <= room else left[: room - 1] + "…", "bold"))
    return (*line, (" " * max(width - line_length(line) - len(right), 2), ""), *make_line((right, "dim")))


def _is_of_finding(change: Change) -> bool:
    return change.group == FINDINGS and change.kind in NEW_OR_GONE


def _format_change(change: Change) -> str:
    return f"{MARKS.get(change.kind, '~')} {sentence(change)}"


def _content(line: Line) -> str:
    """What a line of the tree states, without its branches and columns."""
    return " ".join("".join(text for text, _ in line).translate(_BRANCHES).split())


def _clock(report: Report) -> str:
    """The time of day of a report: `08:00:00`."""
    return time_of(report)[11:19]


DRAW_SECONDS = 0.25  # between two drawings that events cause
FAR = 10**6
SCROLL_LINES = {b"\x1b[A": -1, b"\x1bOA": -1, b"k": -1, b"\x1b[B": 1, b"\x1bOB": 1, b"j": 1}
SCROLL_LINES |= {b"g": -FAR, b"\x1b[H": -FAR, b"\x1bOH": -FAR, b"\x1b[1~": -FAR}
SCROLL_LINES |= {b"G": FAR, b"\x1b[F": FAR, b"\x1bOF": FAR, b"\x1b[4~": FAR}
SCROLL_PAGES = {b"\x1b[5~": -1, b"b": -1, b"\x1b[6~": 1, b" ": 1}
SCAN_KEY, REDRAW_KEY, QUIT_KEYS = b"r", b"\x0c", (b"q", b"Q", b"\x1c")


class Screen:
    """Shows the page on the terminal, and takes its keys."""

    def __init__(self, terminal: Terminal, sources: str) -> None:
        self._terminal = terminal
        self._page = ScreenPage(sources)
        self._drawn_at = 0.0
        self._is_outdated = False

    def fileno(self) -> int:
        """Can be read when a key was pressed."""
        return self._terminal.fileno()

    def show_scan(self, batch: Batch | None) -> None:
        """An evaluation begins; None: it ended."""
        self._page.set_scan(format_reasons(batch) if batch else None)
        self._draw()

    def show_evaluation(self, evaluation: Evaluation) -> None:
        """A new report."""
        self._page.set_evaluation(_now(), evaluation)
        self._is_outdated = True

    def show_events(self, events: Sequence[KernelEvent]) -> None:
        """What the kernel reported, before it is evaluated."""
        self._page.add_kernel_events(_now(), events)
        self._is_outdated = True

    def show_note(self, text: str) -> None:
        """A line about the watch itself."""
        self._page.add_event(_now(), text, "warning")
        self._is_outdated = True

    def attend(self) -> float | None:
        """Draw what waits to be drawn. The seconds after which to call it again; None: when something happens."""
        if not self._is_outdated:
            return None
        left = self._drawn_at + DRAW_SECONDS - time.monotonic()
        if left > 0:
            return left
        self._draw()
        return None

    def take_keys(self) -> None:
        """Do what the pressed keys stand for. Raises TerminalLost."""
        for key in self._terminal.read_keys():
            if key in SCROLL_LINES:
                self._page.scroll(SCROLL_LINES[key])
            elif key in SCROLL_PAGES:
                self._page.scroll_pages(SCROLL_PAGES[key])
            elif key == SCAN_KEY:
                os.kill(os.getpid(), signal.SIGUSR1)
            elif key in QUIT_KEYS:
                os.kill(os.getpid(), signal.SIGTERM)
            elif key == REDRAW_KEY:
                self._terminal.redraw()
        self._draw()

    def _draw(self) -> None:
        self._is_outdated = False
        self._terminal.show(self._page.rows)
        self._drawn_at = time.monotonic()


def _now() -> str:
    return utc_now()[11:19]
