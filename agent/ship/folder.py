"""A folder as the target: a file a report, whole or not there, named by host and time."""

from __future__ import annotations

import contextlib
import errno
import os

from agent.reports import replace_file
from agent.ship.answer import Answer, Kind
from agent.ship.apart import apart
from agent.ship.parcel import Parcel, packed

_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EINTR)


class Folder:
    """A folder that is there; it is not made, because what is missing may be a mount."""

    def __init__(self, path: str, compress: str) -> None:
        self.path = path
        self.compress = compress
        self.shown = path

    def hand_over(self, parcel: Parcel, until: float) -> Answer:
        """Write the file in a child: a file server that is gone would hold us for ever."""
        data = packed(parcel.data, self.compress)
        try:
            apart(lambda: self._write(parcel.file_name(self.compress), data), until)
        except TimeoutError:
            return Answer(Kind.BLOCKED, "writing there hangs")
        except OSError as error:
            kind = Kind.AGAIN if error.errno in _PASSING else Kind.BLOCKED
            return Answer(kind, f"{error.strerror}")
        return Answer(Kind.TAKEN)

    def _write(self, name: str, data: bytes) -> bytes:
        temporary = os.path.join(self.path, f".{name}.tmp")  # of this report alone: what a killed run left is replaced
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        replace_file(os.path.join(self.path, name), temporary, data)
        sync_folder(self.path)
        return b""


def sync_folder(path: str) -> None:
    """Let a new name survive a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
