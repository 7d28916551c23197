"""`watch --screen` on a pseudoterminal: what stands on it, its keys, and that the terminal is left as it was found."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.watch.terminal import ENTER, LEAVE, Terminal, TerminalLost, format_changed_rows, format_row
from fixtures.build import write_capture
from tests.conftest import ROOT

pytestmark = pytest.mark.usefixtures("real_commands")
PATIENCE = 60.0  # seconds that a slow machine gets
SEQUENCE = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])|([^\x1b])", re.DOTALL)
PCI = b"change@/devices/pci0000:4a/0000:4a:01.0/0000:4c:00.0\0SUBSYSTEM=pci\0"


class Monitor:
    """The far side of a terminal: keeps what a person would see, and what was sent."""

    def __init__(self, columns: int, rows: int) -> None:
        self.master, self.slave = pty.openpty()
        self.sent = ""
        self.cells: dict[tuple[int, int], str] = {}
        self.cursor = (1, 1)
        self.resize(columns, rows)
        self.found = termios.tcgetattr(self.slave)

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def text(self) -> str:
        """What is on it, without spaces at the ends of lines."""
        return "\n".join(
            "".join(self.cells.get((row, column), " ") for column in range(1, self.columns + 1)).rstrip()
            for row in range(1, self.rows + 1)
        )

    def wait(self, condition: Callable[[], bool]) -> None:
        """Read until it is met."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until, self.text()
            if select.select([self.master], [], [], 0.05)[0]:
                self._take(os.read(self.master, 65536).decode())

    def wait_for(self, pattern: str) -> str:
        self.wait(lambda: re.search(pattern, self.text()) is not None)
        return self.text()

    def _take(self, text: str) -> None:
        self.sent += text
        for private, numbers, final, letter in SEQUENCE.findall(text):
            if letter:
                self.cells[self.cursor] = letter
                assert letter in "\r\n" or self.cursor[1] <= self.columns or not self.is_on(), "beyond the last column"
                self.cursor = (self.cursor[0], self.cursor[1] + 1)
            elif final == "H":
                row, column = (int(number) for number in (numbers or "1;1").split(";"))
                self.cursor = (row, column)
            elif (final, numbers) in (("J", "2"), ("K", "2")):
                self.cells = {} if final == "J" else {k: v for k, v in self.cells.items() if k[0] != self.cursor[0]}
            else:
                assert private or final == "m", f"a sequence that this terminal does not have: {numbers}{final}"

    def is_on(self) -> bool:
        """Whether the other screen is shown, and no cursor."""
        return self.sent.rfind(ENTER[:14]) > self.sent.rfind(LEAVE[-14:])

    def is_as_found(self) -> bool:
        return not self.is_on() and termios.tcgetattr(self.slave) == self.found

    def start(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """A process whose terminal this is."""
        return subprocess.Popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave, cwd=ROOT, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment},
        )  # fmt: skip

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    shown = Monitor(80, 24)
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded machine, and the same with a fault."""
    place = tmp_path_factory.mktemp("screen")
    write_capture("8xh100-sxm-2s-8xcx7-ib-4nvsw", None, place / "good")
    write_capture(None, "gpu-width-x8", place / "bad")
    (place / "machine").symlink_to("good")
    return place


def test_a_recorded_machine_from_start_to_end(monitor: Monitor, folder: Path) -> None:
    """Keys, a fault, another size, Ctrl-Z and back, q. A shell with jobs starts it: only such a job can be stopped."""
    command = f"{sys.executable} -m tests.agent.watch.recorded_screen {folder}"
    script = f"{command}; stty -g; echo STOPPED; read; fg >/dev/null; echo ENDED $?"
    shell = monitor.start("bash", "-mc", script)
    text = monitor.wait_for("lines 1-18 of 35")
    assert "No changes since 08:00:00 UTC" in text
    assert "OK  no problems found" in text
    assert "GPU0 19:00.0    Gen5 x16  NVLink 18/18" in text
    monitor.press(b"\x1b[6~")  # page down
    assert "NVSwitch 83:00.0" in monitor.wait_for("lines 18-35 of 35")

    (folder / "machine").unlink()
    (folder / "machine").symlink_to("bad")
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    before = len(monitor.sent)
    for _ in range(3):
        sender.sendto(PCI, str(folder / "uevents"))
    sender.close()
    text = monitor.wait_for("lines 18-30 of 38")
    assert "+ pcie-width-downgraded new: GPU2" in text
    assert "ERROR  1 error" in text
    assert re.search(r"pci 0000:4c:00.0: change \(3 times\)", text)
    assert "\x1b[2;1H" in monitor.sent[before:]  # the verdict
    assert "\x1b[3;1H" not in monitor.sent[before:], "a row is written that did not change"

    monitor.resize(200, 50)
    text = monitor.wait_for("scan now  listens")
    assert "* │  ├─ GPU2 4c:00.0    Gen5 x8 of x16  NVLink 18/18  <- pcie-width-downgraded" in text
    assert "~ GPU2  width: 16 -> 8" in text

    monitor.press(b"\x1a")
    monitor.wait(lambda: "STOPPED" in monitor.sent)
    assert monitor.is_as_found()
    monitor.press(b"\n")
    monitor.wait_for("GPU7 db:00.0")
    assert monitor.is_on()
    monitor.press(b"q")
    monitor.wait(lambda: "ENDED" in monitor.sent)
    assert "ENDED 0" in monitor.sent
    assert 0 == shell.wait(PATIENCE)
    assert monitor.is_as_found()


def watch(*options: str) -> list[str]:
    return [sys.executable, "-m", "fabricscope", "watch", "--screen", "--only", "kernel", *options]


@pytest.mark.parametrize("way", [b"q", b"\x03", signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_left_as_it_was_found(way: bytes | signal.Signals, monitor: Monitor) -> None:
    """By a key, in the middle of a scan or after it, and by signals: exit 0, no word of Python."""
    process = monitor.start(*watch(), NO_COLOR="1")
    monitor.wait(monitor.is_on)
    if isinstance(way, bytes):
        monitor.press(way)
    else:
        monitor.wait_for("No changes since")
        process.send_signal(way)
    monitor.wait(lambda: process.poll() is not None)

    assert 0 == process.returncode
    monitor.wait(lambda: not monitor.is_on())
    assert monitor.is_as_found()
    assert "Traceback" not in monitor.sent
    assert not re.search(r"\x1b\[[1-9][0-9;]*m", monitor.sent), "NO_COLOR"


def test_a_failure_gives_the_terminal_back_first(monitor: Monitor) -> None:
    """The error stands on the screen that was there before. Signals are as before, too."""
    numbers = (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)
    handlers = [signal.getsignal(number) for number in numbers]

    def fail() -> None:
        with Terminal(monitor.slave, monitor.slave, False, True):
            assert termios.tcgetattr(monitor.slave) != monitor.found
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    monitor.wait(lambda: monitor.sent.endswith(LEAVE))
    assert monitor.is_as_found()
    assert handlers == [signal.getsignal(number) for number in numbers]


def test_what_is_on_the_screen_is_not_written_again(monitor: Monitor) -> None:
    """A stranger's text is cut at the width and never speaks to the terminal; Ctrl-L writes all of it."""
    shown = "name \x1b]0;x\x07 " + "漢" * 80
    with Terminal(monitor.slave, monitor.slave, True, True) as terminal:
        terminal.show(lambda _width, _height: [((shown, "error"),), (("row", ""),)])
        monitor.wait(lambda: "row" in monitor.sent)
        before = len(monitor.sent)
        terminal.show(lambda _width, _height: [((shown, "error"),), (("new", ""),)])
        monitor.wait(lambda: "new" in monitor.sent)
        assert monitor.sent[before:] == "\x1b[2;1H\x1b[2Knew"
        terminal.redraw()
        monitor.wait(lambda: monitor.sent.count("name") == 2)
    assert "\x1b]" not in monitor.sent
    assert f"\x1b[1;31mname ?]0;x? {'漢' * 34}\x1b[0m" == format_row(((shown, "error"),), 80, True)


def test_a_terminal_that_closes_ends_it(monitor: Monitor) -> None:
    """Where SIGHUP is ignored, too: nothing is waited for that never comes."""
    other = Monitor(80, 24)
    with Terminal(other.slave, other.slave, False, True) as terminal:
        os.close(other.master)
        with pytest.raises(TerminalLost):
            terminal.read_keys()
    os.close(other.slave)


def test_rows_that_are_gone_are_cleared() -> None:
    assert "\x1b[2;1H\x1b[2K" == format_changed_rows(["a", "b"], ["a", ""])
    assert "" == format_changed_rows([], ["", ""])


@pytest.mark.parametrize(
    ("options", "term", "text"),
    [
        ([], "dumb", "error: --screen needs a terminal that can move its cursor, and TERM is dumb"),
        ([], "", "error: --screen needs a terminal that can move its cursor, and TERM is not set"),
        (["--format", "ndjson"], "xterm", "error: --screen and --format ndjson exclude each other"),
    ],
)
def test_where_there_is_no_screen_it_states_why(
    options: list[str], term: str, text: str, monitor: Monitor, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """One error, exit 2."""
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    assert 2 == run(["watch", "--screen", *options])
    assert text in capsys.readouterr().err


def test_a_pipe_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run(["watch", "--screen"])
    assert "error: --screen needs a terminal, and stdin is not one" in capsys.readouterr().err
