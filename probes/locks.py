"""One lock file per probe: while a child of an earlier run is stuck in the kernel, no other joins it there.

The lock belongs to the open file that the child inherits (flock(2)), so it lasts exactly as long as the child, or a
tool that it started: no one has to release it. That it is held is no proof of a hang: a tool may leave a daemon behind,
which holds it for good. A hang is a process in an uninterruptible sleep; for any other the next lock is taken.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time

from probes.host.process import (
    condition,
    describe_process,
    find_opener,
    find_uninterruptible,
    is_gone,
    is_uninterruptible,
)
from probes.named_tuple import NamedTuple
from probes.own_files import hold_lock, open_lock
from probes.planted import PathUse, follow_links

FOLDER_VARIABLE = "FABRICSCOPE_RUN_DIR"
LOCKS = 2  # of a probe: the second one is for when a daemon that a tool started holds the first
GRACE_SECONDS = 3.0  # between a child's bound and the end of its killing
HOLDER_LIMIT_BYTES = 4096
HOLDER_BYTES = 128  # of each name of a holder, which is shorter


class LockHolder(NamedTuple):
    """Who has the lock. Times are of CLOCK_BOOTTIME, which no one can set."""

    pid: int
    since_boot_seconds: float
    since: str  # RFC 3339
    bound_seconds: float

    @property
    def is_over(self) -> bool:
        """It has ended, or is older than its own bound, and so are the attempts to end it."""
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - self.since_boot_seconds
        has_ended = bool(self.pid) and is_gone(self.pid, self.since_boot_seconds)
        return has_ended or age > self.bound_seconds + GRACE_SECONDS


class StuckProcess(NamedTuple):
    """A process that was seen in an uninterruptible sleep."""

    pid: int
    since: str  # RFC 3339: of the run that left it

    @property
    def is_asleep(self) -> bool:
        """Whether it still sleeps."""
        return is_uninterruptible(self.pid)

    @property
    def story(self) -> str:
        """A line for people."""
        return f"stuck since {self.since}: {condition(self.pid)}"


class Lock:
    """A lock that is held by this process, until it is handed to a child."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def name_holder(self, pid: int, bound_seconds: float) -> None:
        """Write down for whom it is held: over who held it before, so that no page is freed and made again."""
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        name = f'[{pid}, {since_boot!r}, "{since}", {bound_seconds!r}]'
        os.pwrite(self.descriptor, name.ljust(HOLDER_BYTES).encode(), 0)

    def close(self) -> None:
        """Let go, here: a child that has inherited it goes on to hold it."""
        os.close(self.descriptor)


def run_folder() -> str | None:
    """The folder of the locks: of this user alone. None where there can be none."""
    configured = os.environ.get(FOLDER_VARIABLE)
    try:
        # A service's is a link where its user is dynamic; /proc shows paths without links.
        folder = follow_links(configured or _usual_folder(), PathUse.OWN_FOLDER)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
    except OSError:
        return None
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return folder if ours else None


def acquire_lock(folder: str, probe: str, number: int = 1) -> Lock | LockHolder:
    """A lock of a probe, or its holder. Raises OSError where there can be no lock file."""
    descriptor = open_lock(_path(folder, probe, number))
    try:
        if not hold_lock(descriptor):
            holder = _holder(descriptor)
            os.close(descriptor)
            return holder
        content = os.pread(descriptor, HOLDER_BYTES + 1, 0)
        if content[:1] not in (b"", b"["):  # no holder of ours wrote it
            raise OSError(errno.EEXIST, "is there, and is no lock")
        if len(content) > HOLDER_BYTES:
            os.ftruncate(descriptor, 0)
    except OSError:
        os.close(descriptor)
        raise
    return Lock(descriptor)


def find_stuck(folder: str, probe: str, number: int, holder: LockHolder) -> StuckProcess | None:
    """The process in an uninterruptible sleep for which a lock is held; None: whatever holds it is no hang."""
    since_boot = holder.since_boot_seconds
    if holder.pid and not is_gone(holder.pid, since_boot) and is_uninterruptible(holder.pid):
        return StuckProcess(holder.pid, holder.since)
    pid = find_uninterruptible(_path(folder, probe, number), since_boot)
    return None if pid is None else StuckProcess(pid, holder.since)


def describe_holder(probe: str, of_a_run: bool = True) -> str | None:
    """Which process holds a lock of a probe now, for a line on stderr. None where none does, or it is gone.

    `of_a_run`: also the child of a run that is under way.
    """
    folder = run_folder()
    for number in range(LOCKS, 0, -1):
        path = _path(folder, probe, number) if folder else ""
        holder = _read_holder(path) if os.path.exists(path) else None
        if holder is None or not (of_a_run or holder.is_over):
            continue
        is_left = not holder.pid or is_gone(holder.pid, holder.since_boot_seconds)
        pid = find_opener(path) if is_left else holder.pid
        if pid is not None and (process := describe_process(pid)):
            return f"{process}, holds {path}"
    return None


def _read_holder(path: str) -> LockHolder | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _path(folder: str, probe: str, number: int) -> str:
    return f"{folder}/{probe}{'' if number == 1 else f'.{number}'}.lock"


def _usual_folder() -> str:
    if os.geteuid() == 0:
        return "/run/fabricscope-root"  # /run/fabricscope is the services', and a link where their user is dynamic
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return f"{runtime}/fabricscope"
    import tempfile

    return f"{tempfile.gettempdir()}/fabricscope-{os.geteuid()}"


def _holder(descriptor: int) -> LockHolder:
    """Who wrote the file; a holder that has not written yet has just begun."""
    import json  # lazy: hardly ever is a lock held

    try:
        pid, since_boot, since, bound = json.loads(os.pread(descriptor, HOLDER_LIMIT_BYTES, 0))
        return LockHolder(int(pid), float(since_boot), str(since), float(bound))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return LockHolder(0, time.clock_gettime(time.CLOCK_BOOTTIME), "now", 0.0)
