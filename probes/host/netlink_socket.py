"""One question to the kernel over netlink, bounded in time and size (netlink(7), rtnetlink(7), genetlink)."""

from __future__ import annotations

import errno
import struct
import time
from functools import partial

from probes.host.interface import Failed, TimedOut, error_from_errno
from probes.netlink import GENERIC, HEADER, IS_DONE, IS_DUMP, IS_ERROR, RDMA, ROUTE, whole_messages

RDMA_QUESTIONS = (5121, 5125, 5126)  # nldev: GET, PORT_GET, SYS_GET
MULTI, DUMP_INTERRUPTED = 0x2, 0x10
SECONDS = 3.0
CHUNK_BYTES = 1 << 18  # the kernel puts at most 32 KiB into one datagram
REPLY_LIMIT_BYTES = 16 << 20
TRIES = 3  # of a dump during which the kernel's list changed


def request_netlink(protocol: int, request: bytes, seconds: float = SECONDS) -> bytes:
    """All messages of the answer, joined, without the final DONE or acknowledgement. Only questions: raises ValueError
    for a routing request that changes something, and for a generic one that is no question to ethtool. Raises
    ReadError by the errno that the kernel gives."""
    if len(request) < HEADER.size:
        raise ValueError("a netlink request has a header of 16 bytes")
    kind = HEADER.unpack_from(request)[1]
    if protocol == ROUTE and kind % 4 != 2:  # rtnetlink numbers NEW, DEL, GET, SET
        raise ValueError(f"rtnetlink message type {kind} is no question")
    if protocol == RDMA and kind not in RDMA_QUESTIONS:
        raise ValueError(f"RDMA netlink message type {kind} is no question of ours")
    if protocol == GENERIC:
        from probes.host.ethtool_ioctl import check_netlink

        check_netlink(request, partial(_ask, GENERIC, seconds=seconds))
    return _ask(protocol, request, seconds)


def _ask(protocol: int, request: bytes, seconds: float) -> bytes:
    kind, flags = HEADER.unpack_from(request)[1:3]
    subject = f"netlink protocol {protocol}, message {kind}"
    for _ in range(TRIES):
        try:
            reply, interrupted = _asked(
                protocol, request, flags & IS_DUMP == IS_DUMP, subject, time.monotonic() + seconds
            )
        except OSError as error:
            raise error_from_errno(error, subject) from None
        if not interrupted:
            return reply
    raise Failed(f"{subject}: the kernel's list changed during each of {TRIES} readings", "EINTR")


def _asked(protocol: int, request: bytes, dump: bool, subject: str, deadline: float) -> tuple[bytes, bool]:
    import socket

    parts: list[bytes] = []
    size = 0
    interrupted = False
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol) as channel:
        channel.bind((0, 0))
        channel.settimeout(max(0.001, deadline - time.monotonic()))
        channel.send(request)
        while size <= REPLY_LIMIT_BYTES:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            channel.settimeout(left)
            try:
                data, sender = channel.recvfrom(CHUNK_BYTES)
            except TimeoutError:
                break
            if sender[0] != 0:  # anybody may write to us; only the kernel's port is 0
                continue
            for kind, flags, message in whole_messages(data):
                interrupted = interrupted or bool(flags & DUMP_INTERRUPTED)
                if kind in (IS_ERROR, IS_DONE):
                    _raise_error(message)
                    return b"".join(parts), interrupted
                parts.append(message + bytes(-len(message) % 4))
                size += len(message)
                if not dump and not flags & MULTI:
                    return b"".join(parts), interrupted
        if size > REPLY_LIMIT_BYTES:
            raise Failed(f"{subject}: an answer of more than {REPLY_LIMIT_BYTES >> 20} MiB", "EFBIG")
    raise TimedOut(f"{subject}: no answer in time", "ETIMEDOUT")


def _raise_error(message: bytes) -> None:
    """ERROR and DONE both carry an errno, negative; 0 is "all is well"."""
    if len(message) >= HEADER.size + 4:
        code = -struct.unpack_from("=i", message, HEADER.size)[0]
        if code > 0:
            raise OSError(code, errno.errorcode.get(code, ""))
