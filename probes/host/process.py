"""What another process is doing, for the reason of one that does not end."""

from __future__ import annotations

import time

STATES = {"D": "uninterruptible sleep", "R": "running", "S": "sleeping", "T": "stopped", "Z": "ended", "t": "traced"}


def condition(pid: int) -> str:
    """Pid, state and the kernel function it waits in, as far as /proc tells: "pid 4711, state D, in nvidia_ioctl".

    >>> condition(-1)
    'pid -1, gone'
    """
    state = _state(pid)
    if not state:
        return f"pid {pid}, gone"
    place = _first_line(f"/proc/{pid}/wchan")
    waiting = f", in {place}" if place not in ("", "0") else ""
    return f"pid {pid}, state {state} ({STATES.get(state, 'other')}){waiting}"


def is_running(pid: int) -> bool:
    """Whether it is at work, or waits for nothing but a CPU."""
    return _state(pid) == "R"


def is_uninterruptible(pid: int) -> bool:
    """Whether it waits in the kernel and no signal reaches it; also where its state cannot be read."""
    return _state(pid) in ("D", "")


def _state(pid: int) -> str:
    """The letter of /proc/PID/stat; "": it is gone, or cannot be read."""
    return "".join(_first_line(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1])


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return ""


def describe_process(pid: int) -> str | None:
    """A running process for a line on stderr: name, user, state, where it waits, age. None where it is gone.

    Live facts, and of other people's processes: none of it enters a report. Its command line is not read: that waits
    for the memory of a process that may be stuck.
    """
    import psutil  # only where something hangs

    try:
        process = psutil.Process(pid)
        seconds = time.time() - process.create_time()
        user = process.username()
    except (psutil.Error, OSError, ValueError):
        return None
    name = _first_line(f"/proc/{pid}/comm") or "unnamed"
    shown = "".join(character if character.isprintable() else "?" for character in name)
    return f"{shown} of {user}, {condition(pid)}, running for {format_age(seconds)}"


def format_age(seconds: float) -> str:
    """A duration with one unit.

    >>> format_age(42.3), format_age(200), format_age(7300), format_age(900000)
    ('42 s', '3 min', '2 h', '10 days')
    """
    for size, unit, limit in ((1, "s", 120), (60, "min", 7200), (3600, "h", 172800)):
        if seconds < limit:
            return f"{max(seconds, 0) / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
