"""Runs one tool so that nothing about it can hold us: bounded in time and output, no shell, a clean environment.

A process in an uninterruptible sleep cannot be killed, and `subprocess.run(timeout=)` waits for it for ever. So: TERM,
KILL, a bounded wait, and then it is left behind; what it is doing is the reason that is reported.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import time
from typing import TYPE_CHECKING

from probes.host.interface import OUTPUT_LIMIT_BYTES, Absent, Completed, Failed, TimedOut, error_from_errno

if TYPE_CHECKING:
    import subprocess

_PF_EXITING = 0x4  # include/linux/sched.h
_STAT_FIELDS = 20  # up to the start time
_ANSWER_SECONDS, _ANSWER_BYTES = 2.0, 4096
_CLOCK_STEP_SECONDS = 0.1  # /proc counts in hundredths
STATES = {"D": "uninterruptible sleep", "R": "running", "S": "sleeping", "T": "stopped", "Z": "ended", "t": "traced"}


def condition(pid: int) -> str:
    """Pid, state and the kernel function it waits in, as far as /proc shows: "pid 4711, state D, in nvidia_ioctl".

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
    """Whether one of its threads waits in the kernel where no signal reaches it: a process ends with its last thread.

    False where none can be read: a hang is stated only of what was seen.
    """
    return any(_state(thread) == "D" for thread in _list_threads(pid))


def find_uninterruptible(path: str, started_after: float) -> int | None:
    """A process in an uninterruptible sleep that keeps a file open, None where there is none.

    One that is at its end has no list of open files any more: it is one of this user that started after a time of
    CLOCK_BOOTTIME. Links in /proc are read and not followed: the file behind one may never answer.
    """
    for pid in _list_processes():
        for thread in _list_threads(pid):
            if _state(thread) == "D" and (_has_open(thread, path) or _is_ending(thread, started_after)):
                return pid
    return None


def find_opener(path: str) -> int | None:
    """A process that keeps a file open, whatever it does."""
    return next((pid for pid in _list_processes() if _has_open(f"{pid}", path)), None)


def is_gone(pid: int, started_before: float) -> bool:
    """Whether a process has ended, or its number is that of another one that started later (CLOCK_BOOTTIME)."""
    fields = _read_stat(f"{pid}")
    return len(fields) < _STAT_FIELDS or fields[0] == "Z" or _started(fields) > started_before + _CLOCK_STEP_SECONDS


def _state(process: int | str) -> str:
    """The letter of /proc/PID/stat, or of PID/task/TID; "": it is gone, or cannot be read."""
    return "".join(_read_stat(process)[:1])


def _read_stat(process: int | str) -> list[str]:
    """What follows the name in a stat file: proc_pid_stat(5) from field 3 on."""
    return _first_line(f"/proc/{process}/stat").rpartition(")")[2].split()


def _started(fields: list[str]) -> float:
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _is_ending(thread: str, started_after: float) -> bool:
    fields = _read_stat(thread)
    if len(fields) < _STAT_FIELDS or not int(fields[6]) & _PF_EXITING:
        return False
    try:
        is_ours = os.stat(f"/proc/{thread}").st_uid == os.geteuid()
    except OSError:
        return False
    return is_ours and _started(fields) + _CLOCK_STEP_SECONDS > started_after


def _has_open(process: str, path: str) -> bool:
    folder = f"/proc/{process}/fd"
    for name in _list_folder(folder):
        with contextlib.suppress(OSError):
            if os.readlink(f"{folder}/{name}") == path:
                return True
    return False


def _list_processes() -> list[int]:
    return [int(name) for name in _list_folder("/proc") if name.isdecimal()]


def _list_threads(pid: int) -> list[str]:
    return [f"{pid}/task/{name}" for name in _list_folder(f"/proc/{pid}/task")]


def _list_folder(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


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
    owner = _ask_owner(pid)
    if owner is None:
        return None
    user, seconds = owner
    name = _first_line(f"/proc/{pid}/comm") or "unnamed"
    printable = "".join(character if character.isprintable() else "?" for character in name)
    return f"{printable} of {user}, {condition(pid)}, running for {format_age(seconds)}"


def _ask_owner(pid: int) -> tuple[str, float] | None:
    """The user of a process and its age in seconds; None where it is gone, or where nothing answers in time.

    In a process of its own: psutil reads /proc/stat when it is imported, and that file can hang.
    """
    from probes.child import fork_child  # lazy: only where something hangs

    reader, writer = os.pipe()

    def ask() -> None:
        import psutil

        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            os.write(writer, f"{time.time() - process.create_time()} {process.username()}".encode())

    child = fork_child(ask)
    os.close(writer)
    try:
        answer = os.read(reader, _ANSWER_BYTES) if select.select([reader], [], [], _ANSWER_SECONDS)[0] else b""
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0 if answer else os.WNOHANG)
    seconds, _, user = answer.decode().partition(" ")
    return (user, float(seconds)) if user else None


def format_age(seconds: float) -> str:
    """A duration with one unit.

    >>> format_age(42.3), format_age(200), format_age(7300), format_age(900000)
    ('42 s', '3 min', '2 h', '10 days')
    """
    for size, unit, limit in ((1, "s", 120), (60, "min", 7200), (3600, "h", 172800)):
        if seconds < limit:
            return f"{max(seconds, 0) / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


# Where tools of the distribution and of the vendors' packages lie. Never the caller's PATH: the agent may run as root.
DIRECTORIES = (
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/opt/mellanox/iproute2/sbin",
    "/opt/mellanox/ethtool/sbin",
    "/usr/lib/wsl/lib",
)
ENVIRONMENT = {"PATH": ":".join(DIRECTORIES), "LC_ALL": "C", "LANG": "C"}
STDERR_LIMIT_BYTES = 64 << 10
TERM_SECONDS = 0.5  # what a tool gets to end by itself
KILL_SECONDS = 0.3
TICK_SECONDS = 0.05
LINGER_SECONDS = 0.2  # for output of a tool that has ended, while something it started holds the pipe

_left_behind: list[subprocess.Popen[bytes]] = []  # kept, so that they are reaped when the kernel lets them go


def run_tool(argv: tuple[str, ...], seconds: float, directories: tuple[str, ...] = DIRECTORIES) -> Completed:
    """Run a tool to its end. Raises Absent (not installed), TimedOut, Failed (cannot start, or prints without end)."""
    place = _find(argv[0], directories)
    import subprocess  # lazy: most probes run no tool

    started = time.monotonic()
    try:
        # close_fds=False: what Python opens is closed on exec anyway, but for the probe's lock, which is made to be
        # inherited: a tool that cannot be killed keeps it, and the next run does not start another one.
        process = subprocess.Popen(  # noqa: S603 - an argument vector of the committed list, no shell
            (place, *argv[1:]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            cwd="/",
            close_fds=False,
            start_new_session=True,
        )
    except OSError as error:
        raise error_from_errno(error, place) from None
    try:
        stdout, stderr = _drain(process, argv, started + seconds)
    except BaseException:  # also an interrupt leaves no tool running
        _end(process)
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    return Completed(argv, process.returncode, _text(stdout), _text(stderr), round(time.monotonic() - started, 3))


class _Output:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()


def _find(tool: str, directories: tuple[str, ...]) -> str:
    for directory in directories:
        place = f"{directory}/{tool}"
        try:
            mode = os.stat(place).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) and os.access(place, os.X_OK):
            return place
    raise Absent(f"{tool} is not installed (looked in {', '.join(directories)})", "ENOENT")


def _drain(process: subprocess.Popen[bytes], argv: tuple[str, ...], deadline: float) -> tuple[bytes, bytes]:
    """Both streams at once, so that neither pipe can fill up, until both end and the tool has ended."""
    import selectors  # lazy: most runs start no tool

    assert process.stdout is not None, "a pipe"
    assert process.stderr is not None, "a pipe"
    outputs = {process.stdout: _Output(OUTPUT_LIMIT_BYTES + 1), process.stderr: _Output(STDERR_LIMIT_BYTES)}
    ended: float | None = None
    with selectors.DefaultSelector() as selector:
        for stream, output in outputs.items():
            selector.register(stream, selectors.EVENT_READ, output)
        while selector.get_map() or process.poll() is None:
            now = time.monotonic()
            if now > deadline:
                raise TimedOut(f"{' '.join(argv)}: no end within its time ({condition(process.pid)})", "ETIMEDOUT")
            if not selector.get_map():  # it has closed both, and goes on
                time.sleep(TICK_SECONDS / 10)
                continue
            ready = selector.select(TICK_SECONDS)
            for key, _ in ready:
                if not _take(key.fd, key.data):
                    selector.unregister(key.fileobj)
            if len(outputs[process.stdout].data) > OUTPUT_LIMIT_BYTES:
                raise Failed(f"{' '.join(argv)}: printed more than {OUTPUT_LIMIT_BYTES >> 20} MiB", "EFBIG")
            if process.poll() is not None and not ready:
                ended = ended or now
                if now - ended > LINGER_SECONDS:
                    break
    return bytes(outputs[process.stdout].data), bytes(outputs[process.stderr].data)


def _take(descriptor: int, output: _Output) -> bool:
    chunk = os.read(descriptor, 1 << 16)
    output.data += chunk[: output.limit - len(output.data)]
    return bool(chunk)


def _end(process: subprocess.Popen[bytes]) -> None:
    import subprocess  # lazy: see `run_tool`

    for number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except ProcessLookupError:
            process.poll()
            return
        except (subprocess.TimeoutExpired, PermissionError):
            continue
        if number == signal.SIGTERM:
            _kill_rest(process.pid)
        return
    _left_behind.append(process)


def _kill_rest(group: int) -> None:
    """What the tool started in its session and left there."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
