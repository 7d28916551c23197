"""Runs of probes that a test makes up, and what probes of theirs do."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from probes.host.interface import Host
from probes.host.live import LiveHost
from probes.probe import Outcome, Probe, Reading
from probes.run import ProbeResults, run_probes

HOSTNAME = "/proc/sys/kernel/hostname"


def name(host: Host) -> Reading:
    return Reading(host.read(HOSTNAME).decode().strip(), (HOSTNAME,))


PATIENCE = 30.0  # on a busy machine; what hangs here does so for 60 s


def sleep(_host: Host) -> Reading:
    time.sleep(60)
    raise AssertionError("nobody waits so long")


def stubborn(_host: Host) -> Reading:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
    raise AssertionError("nobody waits so long")


def ran(*probes: Probe, host: Host | None = None, seconds: float = 20.0, record: bool = False) -> ProbeResults:
    return run_probes(probes, host or LiveHost(), seconds, record=record)


def one(read: Callable[[Host], Reading], bound: float = 10.0) -> Outcome:
    return ran(Probe("one", read, bound)).outcomes[0]


def ended(pid: int) -> bool:
    """Whether a process ends within three seconds; a zombie has ended."""
    for _ in range(300):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False
