"""The tail of the kernel's log, as /dev/kmsg gives it: one record a read, without waiting for the next.

Kernel page: Documentation/ABI/testing/dev-kmsg. A record is "priority,sequence,microseconds,flags;text" and lines of
properties that begin with a blank.
"""

from __future__ import annotations

import os
import time
from collections import deque

from probes.host.interface import Denied, TimedOut, error_from_errno

PLACE = "/dev/kmsg"
TAIL_BYTES = 1 << 20
SECONDS = 3.0
RECORD_BYTES = 8192  # the kernel's own limit of one record


def tail() -> bytes:
    """The newest records, oldest first, as many as fit into TAIL_BYTES. Raises ReadError: Denied without privilege."""
    try:
        descriptor = os.open(PLACE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise Denied(f"{PLACE}: needs CAP_SYSLOG (root)", "EPERM") from None
    except OSError as error:
        raise error_from_errno(error, PLACE) from None
    try:
        return b"".join(_records(descriptor, time.monotonic() + SECONDS))
    finally:
        os.close(descriptor)


def _records(descriptor: int, until: float) -> deque[bytes]:
    records: deque[bytes] = deque()
    size = 0
    while time.monotonic() < until:
        try:
            record = os.read(descriptor, RECORD_BYTES)
        except BlockingIOError:
            return records
        except BrokenPipeError:  # overwritten before it was read: the next read is of what came after
            continue
        except OSError as error:
            raise error_from_errno(error, PLACE) from None
        if not record:
            return records
        records.append(record)
        size += len(record)
        while size > TAIL_BYTES:
            size -= len(records.popleft())
    raise TimedOut(f"{PLACE}: no end within {SECONDS:g} s", "ETIMEDOUT")
