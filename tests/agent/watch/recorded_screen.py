"""`watch --screen` of a recorded machine: `python -m tests.agent.watch.recorded_screen FOLDER`, on a terminal.

`machine` in the folder is the capture, which is read at every scan, and may be replaced; without it the scan fails.
What is sent to the socket `uevents` there is heard as the kernel's message.
"""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

from agent.cli.watch import _open_screen, _reject_screen, _WatchOutput
from agent.diagnose import ScanPlan
from agent.watch.debounce import Debouncer
from agent.watch.evaluate import Evaluator
from agent.watch.loop import Watch, WatchSignals
from probes.host.interface import Host
from probes.kernel.events import UEVENTS, Listener, device_events
from probes.sources.open_source import open_source
from probes.topology_files.preparsed import FactsSource


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
    _reject_screen("text")

    def host() -> Host:
        opened = open_source(str(folder / "machine"), None)
        assert not isinstance(opened, FactsSource)
        return opened

    output = _WatchOutput("text", None, False)
    places = [Listener(UEVENTS, Uevents(folder / "uevents"), device_events)]
    with WatchSignals(signal.SIGQUIT) as signals, _open_screen("listens to uevents", False) as screen:
        output.screen = screen
        Watch(places, Debouncer(0.05, 3600), Evaluator(host, ScanPlan()), signals, output, screen).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
