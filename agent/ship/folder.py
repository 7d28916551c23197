"""A folder as the target: one file per report, whole or absent, named by host and time."""

from __future__ import annotations

import contextlib
import errno
import os

from agent.reports import replace_file
from agent.ship.payload import Payload, compress
from agent.ship.target import Attempt, SendResult, SendStatus, Target

_TEMPORARY_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EINTR)


class FolderTarget(Target):
    """A folder that exists; it is not created, because what is missing may be a mount."""

    def __init__(self, path: str, compression: str) -> None:
        super().__init__(path)
        self.path = path
        self.compression = compression

    def send(self, payload: Payload, attempt: Attempt) -> SendResult:
        """Write the file; a file server that is gone would hold this process for ever."""
        attempt.set_timeout_result(SendResult(SendStatus.BLOCKED, "writing there hangs"))
        try:
            self.write(payload.file_name(self.compression), compress(payload.data, self.compression))
        except OSError as error:
            status = SendStatus.RETRY if error.errno in _TEMPORARY_ERRORS else SendStatus.BLOCKED
            return SendResult(status, f"{error.strerror}")
        return SendResult(SendStatus.ACCEPTED)

    def write(self, name: str, data: bytes) -> None:
        """Whole or not at all. Raises OSError."""
        temporary = os.path.join(self.path, f".{name}.tmp")  # of this report alone: what a killed run left is replaced
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        replace_file(os.path.join(self.path, name), temporary, data)
        sync_folder(self.path)


def sync_folder(path: str) -> None:
    """Let a new name survive a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
