"""Running processes that use a GPU or NCCL: what they have mapped, and what their environment sets.

The kernel's threads are left out by one file; what others own is not to be looked into without privilege, and then
the number of jobs is not known.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from probes.asking import as_text
from probes.host.interface import OUTPUT_LIMIT_BYTES, Absent, Host, Unanswered
from probes.nccl.parsers import DAEMONS, Mapped, parse_environ, parse_maps

SECONDS = 4.0
PROCESSES_LIMIT = 8192
ENVIRONMENTS_LIMIT = 64
KERNEL_THREADS = "/proc/2/task/2/children"


class Job(NamedTuple):
    """One process. `settings` None: its environment may not be read."""

    pid: str
    name: str
    mapped: Mapped
    settings: tuple[tuple[str, str], ...] | None
    apart: bool | None  # it sees other files than this process (a container); None: not known

    @property
    def label(self) -> str:
        """For people."""
        return f"pid {self.pid} ({self.name})"


class Jobs(NamedTuple):
    """Those that were found. `hidden`: why there may be more; None: these are all."""

    jobs: tuple[Job, ...] = ()
    hidden: str | None = None


def jobs_of(host: Host) -> Jobs:
    """Processes that have a GPU or NCCL mapped, by number. Bounded in number and time."""
    try:
        pids = sorted((name for name in host.listdir("/proc") if name.isdecimal()), key=int)
    except Unanswered as why:
        return Jobs(hidden=why.reason)
    if not pids or not (host.live or host.kind == "capture"):
        return Jobs(hidden="the source holds no processes")
    kernel = frozenset((_text(host, KERNEL_THREADS) or "").split()) | {"2"}
    until, denied, found = time.monotonic() + SECONDS, False, list[Job]()
    for number, pid in enumerate(pid for pid in pids if pid not in kernel):
        if number == PROCESSES_LIMIT or time.monotonic() > until:
            return Jobs(tuple(found), f"not all of {len(pids)} processes were looked at")
        try:
            mapped = parse_maps(as_text(host.read(f"/proc/{pid}/maps", OUTPUT_LIMIT_BYTES)))
        except Absent:
            continue  # it ended
        except Unanswered:
            denied = True
            continue
        job = _job(host, pid, mapped, len(found) < ENVIRONMENTS_LIMIT)
        if job:
            found.append(job)
    hidden = "some processes may be looked into by root only, with CAP_SYS_PTRACE"
    return Jobs(tuple(found), hidden if denied else None)


def _job(host: Host, pid: str, mapped: Mapped, ask: bool) -> Job | None:
    if not mapped.gpu and not any("/libnccl" in path or "/libnvshmem" in path for path in mapped.libraries):
        return None
    name = (_text(host, f"/proc/{pid}/comm") or "?")[:15]
    if name in DAEMONS:
        return None
    settings = None
    if ask:
        try:
            settings = parse_environ(host.read(f"/proc/{pid}/environ"))
        except Unanswered:
            settings = None
    return Job(pid, name, mapped, settings, _apart(host, pid))


def _apart(host: Host, pid: str) -> bool | None:
    try:
        return host.readlink(f"/proc/{pid}/ns/mnt") != host.readlink("/proc/self/ns/mnt")
    except Unanswered:
        return None


def _text(host: Host, path: str) -> str | None:
    try:
        return as_text(host.read(path, 1 << 18))
    except Unanswered:
        return None
