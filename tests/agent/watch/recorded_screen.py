"""`watch --screen` of a recorded machine, in a process of its own: `python -m tests.agent.watch.recorded_screen FOLDER`.

The file `fault` in the folder names what is wrong with the machine; what is sent to the socket `uevents` there is heard
as the kernel's message. With `crash` as fault the evaluation fails.
"""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

from agent.cli.watch import WatchFormat, _open_screen, _reject_screen, _WatchOutput
from agent.diagnose import ScanPlan
from agent.watch.debounce import Debouncer
from agent.watch.evaluate import Evaluator
from agent.watch.loop import Watch, WatchSignals
from probes.host.recording import RecordingHost
from probes.kernel.events import UEVENTS, Listener, device_events
from tests.agent.watch.test_evaluate import Machine


class Uevents:
    """The socket in the folder."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def waiting(self) -> list[bytes]:
        return [self._socket.recv(1000)]

    def close(self) -> None:
        self._socket.close()


def main(folder: Path) -> None:
    """Until it is ended."""
    _reject_screen(WatchFormat.TEXT)
    machine = Machine()

    def host() -> RecordingHost:
        fault = (folder / "fault").read_text().strip() if (folder / "fault").exists() else ""
        if fault == "crash":
            raise RuntimeError("the evaluation failed")
        machine.fault = fault or None
        return machine()

    output = _WatchOutput(WatchFormat.TEXT, None, False)
    places = [Listener(UEVENTS, Uevents(folder / "uevents"), device_events)]
    with WatchSignals(signal.SIGQUIT) as signals, _open_screen("listens to uevents", False) as screen:
        output.screen = screen
        Watch(places, Debouncer(0.05, 3600), Evaluator(host, ScanPlan()), signals, output, screen).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
