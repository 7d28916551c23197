"""The host interface: the only way to a machine, what a probe may read, and the four kinds of missing answers.

Every source kind (live, capture, tree, dump, ...) is one class with these methods. Paths are absolute paths of the host
that is looked at ("/sys/bus/pci/devices"), whatever folder or archive they lie in here. A reason why there is no answer
is plain data: a recording keeps it and a capture holds it.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from probes.named_tuple import NamedTuple

READ_LIMIT_BYTES = 1 << 20  # one attribute, one file: no fact of ours is longer
OUTPUT_LIMIT_BYTES = 16 << 20  # one command's stdout
LOG_LIMIT_BYTES = 256 << 20  # a kernel log, of which only the lines that are read are kept
FILTERED = "filtered: "  # begins the stderr of a saved output that is a part of what its command printed; then why


class ReadError(Exception):
    """There is no answer; `status` is how, `reason` a line for people, `code` an errno or NVML name or None."""

    status = "failed"

    def __init__(self, reason: str, code: str | None = None) -> None:
        super().__init__(reason, code)
        self.reason = reason
        self.code = code

    def __str__(self) -> str:
        return self.reason


class Absent(ReadError):
    """The source does not hold it."""

    status = "absent"


class Denied(ReadError):
    """It is there and may not be read; the reason names what would allow it."""

    status = "denied"


class TimedOut(ReadError):
    """No answer within the bound."""

    status = "timed_out"


class Failed(ReadError):
    """It answered with an error (EINVAL, EIO, NVML errors, a non-zero exit, text that is not what it should be)."""

    status = "failed"


class BadSource(Exception):
    """The source is unreadable, truncated, hostile or not recognized: one line that names the file and the fault.
    `parts`: what the text names, as reports of tools have it: of these it states nothing that is read."""

    def __init__(self, message: str, hint: str | None = None, parts: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.hint = hint
        self.parts = parts


class JobLog(BadSource):
    """The source is what `fabricscope job` reads: a job's log, what a program printed, measured bandwidths."""


# one number has two names; drivers mean this one
_NAMES = dict(errno.errorcode) | {errno.EOPNOTSUPP: "EOPNOTSUPP"}


def error_from_errno(error: OSError, path: str) -> ReadError:
    """The reason for an errno: EINVAL and EIO are answers of a driver, never "not there"."""
    code = _NAMES.get(error.errno or 0, "EIO")
    text = f"{path}: {os.strerror(error.errno or errno.EIO)}"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return Absent(text, code)
    if error.errno in (errno.EACCES, errno.EPERM):
        return Denied(text, code)
    if error.errno in (errno.ETIMEDOUT, errno.EAGAIN):
        return TimedOut(text, code)
    return Failed(text, code)


class Completed(NamedTuple):
    """One finished command, as UTF-8 with replacement. stdout is whole, but where a saved one is FILTERED; stderr may
    be cut."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float


class Host(Protocol):
    """Everything that a probe may ask of a machine."""

    kind: str  # the report's source.kind
    path: str | None  # the report's source.path
    live: bool  # this machine's own kernel answers: drivers can hang, devices can be woken
    observed_at: str | None  # RFC 3339 time at which the machine was as it is shown; None: the source does not show it

    def __hash__(self) -> int:
        """Of the object, by which answers are kept."""

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """At most `limit` bytes of a file. Raises ReadError."""

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """Many small files of one directory in one go: name -> content, or the reason. A name that is not there is
        left out. Raises ReadError where the directory cannot be entered. Content is at most READ_LIMIT_BYTES."""

    def listdir(self, path: str) -> list[str]:
        """Sorted names. Raises ReadError."""

    def readlink(self, path: str) -> str:
        """The text of a symbolic link, as it stands. Raises ReadError (Absent where it is no link)."""

    def resolve(self, path: str) -> str:
        """The path with every link followed, as an absolute path of that host. Raises ReadError."""

    def run(self, *argv: str) -> Completed:
        """A command of the committed list. Raises ReadError: Absent (no such tool or no saved output), TimedOut.
        A non-zero exit is an answer, not an exception."""

    def has_output(self, *argv: str) -> bool:
        """Whether a recorded source holds this command's output. Always False on a live host: there it has a cost."""

    def saved_arguments(self, *argv: str) -> list[str]:
        """What follows these words in the commands of saved outputs: the interfaces for `ethtool -S`. Sorted; empty on
        a live host."""

    def nvml(self, function: str, *arguments: Any) -> Any:
        """One NVML call by its C name; a device is its NVML index. Plain data back: see `probes/host/nvml.py`.
        Raises ReadError with the NVML error's name as `code` ("NOT_SUPPORTED", "GPU_IS_LOST", "LIBRARY_NOT_FOUND")."""

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """One netlink request (header included), all reply messages joined. Raises ReadError."""

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """One ethtool command by ioctl (SIOCETHTOOL): its struct, back as the kernel filled it. Raises ReadError."""

    def udev(self, path: str) -> Mapping[str, str]:
        """udev's properties of a device path under /sys (names from the hwdb). Raises ReadError."""


KINDS: Mapping[str, type[ReadError]] = {kind.status: kind for kind in (Absent, Denied, TimedOut, Failed)}


class Refusal(NamedTuple):
    """`status` is one of absent, denied, timed_out, failed; a probe's own may be skipped."""

    status: str
    reason: str
    code: str | None = None

    @staticmethod
    def of(why: ReadError) -> "Refusal":
        """The same reason as data."""
        return Refusal(why.status, why.reason, why.code)

    def error(self) -> ReadError:
        """The same reason to be raised again."""
        return KINDS[self.status](self.reason, self.code)

    def renamed(self, old: str, new: str) -> "Refusal":
        """The same reason for the same file under another of its names."""
        if not self.reason.startswith(f"{old}:"):
            return self
        return Refusal(self.status, new + self.reason[len(old) :], self.code)
