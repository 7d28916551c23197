"""Where the kernel states by itself what happens: multicast groups of netlink, and its log from now on.

Nothing is asked and nothing is written: a place has a descriptor to wait on, and gives what has come since.
Kernel pages: netlink(7), Documentation/ABI/testing/dev-kmsg.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Protocol

from probes.host.interface import Denied, Failed, error_from_errno
from probes.host.kmsg import PLACE, RECORD_BYTES

ROUTE, UEVENT = 0, 15  # NETLINK_ROUTE, NETLINK_KOBJECT_UEVENT
LINKS, KERNEL = 1, 1  # their groups: RTMGRP_LINK; what the kernel itself sends, before udev
BUFFER_BYTES = 1 << 20  # asked for; the kernel gives at most net.core.rmem_max
DATAGRAM_BYTES = 1 << 16
AT_ONCE = 256  # what is taken before others have their turn
MOST_DROPPED = 100_000


class Overrun(Exception):
    """The kernel threw away what was not taken in time: what it was is unknown."""


class EventSource(Protocol):
    """One descriptor, and what has come there."""

    def fileno(self) -> int:
        """For poll(2)."""

    def waiting(self) -> list[bytes]:
        """What has come since, the oldest first, at most AT_ONCE pieces. Never waits. Raises Overrun, ReadError."""

    def close(self) -> None:
        """Listen no more."""


class NetlinkGroup:
    """Datagrams that the kernel sends to a group of a netlink protocol. Needs no privilege."""

    def __init__(self, protocol: int, groups: int, buffer_bytes: int = BUFFER_BYTES) -> None:
        """Join. Raises ReadError."""
        import socket

        self._about = f"netlink protocol {protocol}, groups {groups}"
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        try:
            self._socket = socket.socket(socket.AF_NETLINK, kind, protocol)
        except OSError as error:
            raise error_from_errno(error, self._about) from None
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            self._socket.bind((0, groups))
        except OSError as error:
            self._socket.close()
            raise error_from_errno(error, self._about) from None

    def fileno(self) -> int:
        """See Place.fileno."""
        return self._socket.fileno()

    def waiting(self) -> list[bytes]:
        """See Place.waiting."""
        messages: list[bytes] = []
        for _ in range(AT_ONCE):
            try:
                data, sender = self._socket.recvfrom(DATAGRAM_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.ENOBUFS:  # reading it has cleared it
                    self._drop()
                    raise Overrun from None
                raise error_from_errno(error, self._about) from None
            if sender[0] == 0:  # any process may write to us; only the kernel's port is 0
                messages.append(data)
        return messages

    def close(self) -> None:
        """See Place.close."""
        self._socket.close()

    def _drop(self) -> None:
        """Throw away what still waits: it is older than what was lost, and would be taken for how things are now."""
        with suppress(OSError):
            for _ in range(MOST_DROPPED):
                self._socket.recv(1)


class KernelLog:
    """Records of /dev/kmsg that are written from now on."""

    def __init__(self) -> None:
        """Open it at its end. Raises ReadError: Denied without privilege."""
        try:
            self._descriptor = os.open(PLACE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            raise Denied(f"{PLACE}: needs CAP_SYSLOG (root)", "EPERM") from None
        except OSError as error:
            raise error_from_errno(error, PLACE) from None
        try:
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            os.close(self._descriptor)
            raise error_from_errno(error, PLACE) from None

    def fileno(self) -> int:
        """See Place.fileno."""
        return self._descriptor

    def waiting(self) -> list[bytes]:
        """See Place.waiting."""
        records: list[bytes] = []
        for _ in range(AT_ONCE):
            try:
                record = os.read(self._descriptor, RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten before it was read: the next read is of what came after
                raise Overrun from None
            except OSError as error:
                raise error_from_errno(error, PLACE) from None
            if not record:
                raise Failed(f"{PLACE}: it has ended", "EIO")
            records.append(record)
        return records

    def close(self) -> None:
        """See Place.close."""
        os.close(self._descriptor)
