"""`watch --screen`: keys and results in, rows of the terminal out. Drawn when something happens, never by a clock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from agent.diagnose import utc_now
from agent.watch.debounce import Batch
from agent.watch.evaluate import Evaluation
from agent.watch.output import format_reasons
from agent.watch.screen_page import ScreenPage
from agent.watch.terminal import Terminal
from probes.kernel.events import KernelEvent

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
