"""What another process is doing, for the reason of one that does not end."""

from __future__ import annotations

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
