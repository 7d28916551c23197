"""A terminal as a full screen: entered and left, suspended and resized; only rows that changed are written.

Escape sequences of ECMA-48 and xterm that every terminal since has: no terminfo, no library.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import termios
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType, TracebackType

from agent.outputs.text.lines import Line, clean, to_ascii

ENTER = "\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J"  # the other screen, no cursor, cleared
LEAVE = "\x1b[0m\x1b[2J\x1b[H\x1b[?25h\x1b[?1049l"  # cleared first: the Linux console has no other screen
COLOURS = {
    "dim": "2",
    "bold": "1",
    "head": "1;4",
    "ok": "32",
    "info": "36",
    "warning": "33",
    "error": "1;31",
    "critical": "1;37;41",
}
QUIT_KEY = b"q"

UNKNOWN_SIZE = (80, 24)
_LOCAL_FLAGS, _CONTROL_CHARACTERS = 3, 6  # of what tcgetattr returns
_KEY = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|[^\x1b]|\x1b")


class TerminalLost(BrokenPipeError):
    """The terminal was closed: nothing can be shown any more."""


class Terminal:
    """The terminal of this process, a full screen while it is entered.

    The key q is the terminal's quit character while the screen is up: it ends a scan that runs, as Ctrl-C does, and
    needs no thread that reads keys. The processes of a scan have sessions of their own, and get no such signal.
    """

    def __init__(self, keyboard: int, screen: int, has_colours: bool, has_lines: bool) -> None:
        self._keyboard = keyboard
        self._screen = screen
        self._has_colours = has_colours
        self._has_lines = has_lines  # box-drawing characters can be encoded
        self._is_entered = False
        self._rows: list[str] = []  # what is on the screen
        self._compose: Callable[[int, int], list[Line]] = lambda _width, _height: []
        self._is_drawing = False
        self._is_outdated = False
        self._pid = os.getpid()
        self._handlers: dict[int, signal.Handlers | int | Callable[[int, FrameType | None], object] | None] = {}

    def __enter__(self) -> Terminal:
        self._handlers = {
            number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
        }
        try:
            self._enter()
            for number, method in (
                (signal.SIGTSTP, self._on_suspend),
                (signal.SIGCONT, self._on_resume),
                (signal.SIGWINCH, self._on_resize),
            ):
                if self._handlers[number] is not signal.SIG_IGN:
                    signal.signal(number, method)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._leave()

    def fileno(self) -> int:
        """Can be read when a key was pressed."""
        return self._keyboard

    def show(self, compose: Callable[[int, int], list[Line]]) -> None:
        """Draw what `compose` returns for a width and a height; again whenever the terminal changes its size."""
        self._compose = compose
        self._draw()

    def redraw(self) -> None:
        """Write every row again: another program may have written on the screen."""
        self._rows = []
        self._write("\x1b[0m\x1b[2J")
        self._draw()

    def read_keys(self) -> list[bytes]:
        """The keys that were pressed, each as the terminal sends it. Raises TerminalLost."""
        try:
            data = os.read(self._keyboard, 1024)
        except BlockingIOError:
            return []
        except OSError as error:
            raise TerminalLost(errno.EPIPE, os.strerror(errno.EPIPE)) from error
        if not data:
            raise TerminalLost(errno.EPIPE, os.strerror(errno.EPIPE))
        return _KEY.findall(data)

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        with suppress(OSError):
            columns, rows = os.get_terminal_size(self._screen)
            if columns and rows:
                return columns, rows
        return UNKNOWN_SIZE

    def _draw(self) -> None:
        """Write the rows that changed. A signal that comes meanwhile asks for one more round."""
        self._is_outdated = True
        if self._is_drawing:
            return
        self._is_drawing = True
        try:
            while self._is_outdated and self._is_entered:
                self._is_outdated = False
                width, height = self.size()
                lines = self._compose(width, height)[:height]
                rows = [self._format(line, width) for line in lines]
                rows += [""] * (height - len(rows))
                old, self._rows = self._rows, []  # not known if what follows is broken off
                self._write(format_changed_rows(old, rows))
                if not self._is_outdated:
                    self._rows = rows
        finally:
            self._is_drawing = False

    def _format(self, line: Line, width: int) -> str:
        if not self._has_lines:
            (line,) = to_ascii([line])
        return format_row(line, width, self._has_colours)

    def _write(self, text: str) -> None:
        """Write all of it. Raises TerminalLost."""
        data = text.encode("utf-8", "replace")
        try:
            while data:
                data = data[os.write(self._screen, data) :]
        except OSError as error:
            raise TerminalLost(errno.EPIPE, os.strerror(errno.EPIPE)) from error

    def _enter(self) -> None:
        if not self._is_entered:
            self._found = termios.tcgetattr(self._keyboard)
        raw = termios.tcgetattr(self._keyboard)
        raw[_LOCAL_FLAGS] = (self._found[_LOCAL_FLAGS] & ~(termios.ICANON | termios.ECHO)) | termios.ISIG
        raw[_CONTROL_CHARACTERS] = list(self._found[_CONTROL_CHARACTERS])
        for place, value in ((termios.VMIN, 1), (termios.VTIME, 0), (termios.VQUIT, QUIT_KEY)):
            raw[_CONTROL_CHARACTERS][place] = value
        self._set_attributes(raw)
        self._is_entered = True
        self._rows = []
        self._write(ENTER)

    def _leave(self) -> None:
        """Give the terminal back, even where it is stopped by Ctrl-S or gone."""
        if not self._is_entered:
            return
        self._is_entered = False
        with suppress(termios.error):
            termios.tcflow(self._screen, termios.TCOON)
        with suppress(TerminalLost):
            self._write(LEAVE)
        with suppress(termios.error):
            self._set_attributes(self._found)

    def _set_attributes(self, attributes: list[object]) -> None:
        while True:  # in the background this stops the process; it goes on when it is in the foreground again
            try:
                termios.tcsetattr(self._keyboard, termios.TCSANOW, attributes)  # type: ignore[arg-type]  # as it returns them
                return
            except termios.error as error:
                if error.args[0] != errno.EINTR:
                    raise

    def _on_suspend(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._pid:  # a child that has just been forked
            return
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        os.kill(self._pid, number)  # returns when the process goes on
        signal.signal(number, self._on_suspend)
        self._resume()

    def _on_resume(self, _number: int, _frame: FrameType | None) -> None:
        if os.getpid() == self._pid:
            self._resume()

    def _on_resize(self, _number: int, _frame: FrameType | None) -> None:
        if os.getpid() == self._pid and self._is_entered:
            with suppress(TerminalLost):  # the next wait for a key reports it
                self.redraw()

    def _resume(self) -> None:
        with suppress(TerminalLost):
            self._enter()
            self._draw()


def format_changed_rows(old: Sequence[str], rows: Sequence[str]) -> str:
    """The sequences that write the rows which differ; where `old` has no such row, it is written unless empty.

    >>> format_changed_rows(["a", "b"], ["a", "c"])
    '\\x1b[2;1H\\x1b[2Kc'
    """
    return "".join(
        f"\x1b[{place + 1};1H\x1b[2K{row}"
        for place, row in enumerate(rows)
        if (row != old[place] if place < len(old) else row)
    )


def format_row(line: Line, width: int, has_colours: bool) -> str:
    """One row, cut at the width.

    >>> format_row((("GPU0", "error"), (" x8", "")), 6, True), format_row((("GPU0", "error"), (" x8", "")), 6, False)
    ('\\x1b[1;31mGPU0\\x1b[0m x', 'GPU0 x')
    """
    parts = []
    for text, style in line:
        shown = _cut(clean(text), width)
        width -= _columns(shown)
        colour = COLOURS.get(style) if has_colours and shown else None
        parts.append(f"\x1b[{colour}m{shown}\x1b[0m" if colour else shown)
    return "".join(parts)


def _cut(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(width, 0)]
    while text and _columns(text) > width:
        text = text[:-1]
    return text


def _columns(text: str) -> int:
    """Columns on the screen: characters of East Asia take two, accents of their own none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
