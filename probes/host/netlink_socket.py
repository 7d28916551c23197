"""One question to the kernel over netlink, bounded in time and size (netlink(7), rtnetlink(7), genetlink).

A question never makes the kernel load a module. It would for the socket of a protocol that is not there
(`net-pf-16-proto-20` is ib_core's alias), and for a family of generic netlink that is asked for by its name; so the
kernel's own lists of both are read instead.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from contextlib import closing
from functools import cache

from probes.host.interface import Absent, Failed, TimedOut, error_from_errno
from probes.netlink import (
    CONTROL,
    FAMILY_NAME,
    GENERIC,
    GENERIC_HEAD,
    GET_ADDRESS,
    GET_LINK,
    GET_STATS,
    HEADER,
    IS_DONE,
    IS_DUMP,
    IS_ERROR,
    RDMA,
    ROUTE,
    attributes,
    families_request,
    family_request,
    link_request,
    parse_family,
    requested_family,
    whole_messages,
)
from probes.text import ParseError

GET_DCB = 78
ROUTE_QUESTIONS = (GET_LINK, GET_ADDRESS, GET_DCB, GET_STATS)
RDMA_QUESTIONS = (5121, 5125, 5126)  # nldev: GET, PORT_GET, SYS_GET
BUILT_IN = frozenset({ROUTE, GENERIC})  # no kernel with a network is without them
PROTOCOLS = "/proc/self/net/netlink"  # every socket of netlink, the kernel's own among them: protocol in column 2
PROTOCOLS_BYTES = 1 << 20
MULTI, DUMP_INTERRUPTED = 0x2, 0x10
SECONDS = 3.0
CHUNK_BYTES = 1 << 16  # the kernel puts at most 32 KiB into one datagram
REPLY_LIMIT_BYTES = 16 << 20
TRIES = 3  # of a dump during which the kernel's list changed


def request_netlink(protocol: int, request: bytes, seconds: float = SECONDS) -> bytes:
    """All messages of the answer, joined, without the final DONE or acknowledgement. Only questions: raises ValueError
    for a routing or RDMA request that is none of ours, and for a generic one that is no question to ethtool. Raises
    ReadError by the errno that the kernel gives, Absent where it has no such protocol."""
    if len(request) < HEADER.size:
        raise ValueError("a netlink request has a header of 16 bytes")
    kind = HEADER.unpack_from(request)[1]
    if protocol == ROUTE and kind not in ROUTE_QUESTIONS:
        raise ValueError(f"rtnetlink message type {kind} is no question of ours")
    if protocol == RDMA and kind not in RDMA_QUESTIONS:
        raise ValueError(f"RDMA netlink message type {kind} is no question of ours")
    require_protocol(protocol)
    if protocol == GENERIC:
        from probes.host.ethtool_ioctl import check_netlink

        check_netlink(request, lambda: _ethtool_family(seconds))
        if kind == CONTROL:
            return _find_family(request, seconds)
    return _ask(protocol, request, seconds)


def require_protocol(protocol: int) -> None:
    """Raises Absent where the kernel does not have this protocol now: opening its socket would load a module."""
    if protocol in BUILT_IN:
        return
    try:
        descriptor = os.open(PROTOCOLS, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        why = f"whether it is loaded is not known ({PROTOCOLS}: {os.strerror(error.errno or errno.EIO)})"
        raise Absent(f"netlink protocol {protocol}: {why}", "EPROTONOSUPPORT") from None
    with os.fdopen(descriptor, "rb") as file:
        rows = [line.split(None, 2) for line in file.read(PROTOCOLS_BYTES).split(b"\n")[1:]]
    if not any(len(row) == 3 and row[1] == b"%d" % protocol for row in rows):
        why = "its module is not loaded, or not for this network namespace"
        raise Absent(f"netlink protocol {protocol}: {why}", "EPROTONOSUPPORT")


def require_interface(name: str) -> None:
    """Raises ReadError where this network namespace has no such interface: for an ioctl by a name that it does not
    have, the kernel tries to load a module (`netdev-NAME`)."""
    _ask(ROUTE, link_request(name), SECONDS)


@cache
def _ethtool_family(seconds: float) -> int:
    """The message type of ethtool's family, which does not change while the kernel runs. Raises ReadError."""
    try:
        return parse_family(_find_family(family_request("ethtool"), seconds))
    except ParseError as why:
        raise Failed(f"generic netlink: {why}") from None


def _find_family(request: bytes, seconds: float) -> bytes:
    """What the kernel answers to a request for a family by its name, from the list of all."""
    wanted = requested_family(request)
    for _, _, message in whole_messages(_ask(GENERIC, families_request(), seconds)):
        if attributes(message, HEADER.size + GENERIC_HEAD.size).get(FAMILY_NAME) == wanted:
            return message
    raise error_from_errno(OSError(errno.ENOENT, ""), f"netlink protocol {GENERIC}, message {CONTROL}")


def _ask(protocol: int, request: bytes, seconds: float) -> bytes:
    kind, flags = HEADER.unpack_from(request)[1:3]
    subject = f"netlink protocol {protocol}, message {kind}"
    for _ in range(TRIES):
        try:
            reply, interrupted = _query(
                protocol, request, flags & IS_DUMP == IS_DUMP, subject, time.monotonic() + seconds
            )
        except OSError as error:
            raise error_from_errno(error, subject) from None
        if not interrupted:
            return reply
    raise Failed(f"{subject}: the kernel's list changed during each of {TRIES} readings", "EINTR")


def _query(protocol: int, request: bytes, dump: bool, subject: str, deadline: float) -> tuple[bytes, bool]:
    import _socket as socket  # the library's module is this one, and enumerations that take 3% of a live scan to import

    parts: list[bytes] = []
    size = 0
    interrupted = False
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)) as channel:
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
            if sender[0] != 0:  # any process may write to us; only the kernel's port is 0
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
