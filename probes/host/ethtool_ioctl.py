"""ethtool, asked of the running kernel: which of its commands are questions, and one question by ioctl.

linux/ethtool.h, linux/ethtool_netlink.h. Every command that is asked is here; a test holds the list.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from contextlib import closing

from probes.host.interface import Failed, error_from_errno
from probes.netlink import CONTROL, GET_FAMILY, HEADER, requested_family

SIOCETHTOOL = 0x8946
NAME_BYTES, REQUEST_BYTES = 16, 40  # of struct ifreq
GSTRINGS, GSTATS = 0x1B, 0x1D
GETTERS = frozenset({0x03, 0x12, GSTRINGS, GSTATS, 0x37, 0x50})  # GDRVINFO GPAUSEPARAM . . GSSET_INFO GFECPARAM
NETLINK_GETTERS = frozenset({4, 21, 29, 31})  # LINKMODES_GET PAUSE_GET FEC_GET MODULE_EEPROM_GET
LONGEST_REQUEST_BYTES = 256
MOST_COUNTERS = 32_768
ANSWER_BYTES = 2 * MOST_COUNTERS * 32  # the kernel writes as many as there are, whatever was expected


def request_ioctl(interface: str, request: bytes, require_interface: Callable[[str], None]) -> bytes:
    """The struct as the kernel filled it, cut to what it states is filled. Raises ValueError for a command that is no
    question of the list, ReadError by the errno.

    `require_interface` raises ReadError where there is no such interface: the ioctl would load a module for it.
    """
    import _socket as socket  # see netlink_socket.py
    import fcntl

    command = check(request)
    name = interface.encode("utf-8", "surrogateescape")
    subject = f"ethtool command 0x{command:02x} of {interface}"
    if not 0 < len(name) < NAME_BYTES or b"\0" in name:
        raise Failed(f"{subject}: no name of an interface", "ENODEV")
    require_interface(interface)
    room = ANSWER_BYTES if command in (GSTRINGS, GSTATS) else LONGEST_REQUEST_BYTES
    answer = array("B", request.ljust(room, b"\0"))
    wanted = struct.pack("16sP", name, answer.buffer_info()[0]).ljust(REQUEST_BYTES, b"\0")
    try:
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)) as channel:
            fcntl.ioctl(channel.fileno(), SIOCETHTOOL, wanted)
    except OSError as error:
        raise error_from_errno(error, subject) from None
    return answer[: _length(command, request, answer)].tobytes()


def check(request: bytes) -> int:
    """The command of a request. Raises ValueError where it is not in the list, or of no such command's length."""
    if not 4 <= len(request) <= LONGEST_REQUEST_BYTES:
        raise ValueError(f"an ethtool request of {len(request)} bytes")
    (command,) = struct.unpack_from("=I", request)
    if command not in GETTERS:
        raise ValueError(f"ethtool command 0x{command:02x} is not in probes/host/ethtool_ioctl.py")
    if command in (GSTRINGS, GSTATS):
        if len(request) != (12 if command == GSTRINGS else 8):
            raise ValueError(f"an ethtool request of {len(request)} bytes")
        if _read_count(command, request) > MOST_COUNTERS:
            raise ValueError(f"more than {MOST_COUNTERS} counters")
    return int(command)


def check_netlink(request: bytes, ethtool_family: Callable[[], int]) -> None:
    """Raises ValueError for a request of generic netlink that is no question of the list. Numbers of families are
    given out at run time, so the kernel is asked which one is ethtool's."""
    kind, command = struct.unpack_from("=H", request, 4)[0], request[HEADER.size : HEADER.size + 1]
    if kind == CONTROL:
        if command != bytes([GET_FAMILY]) or not requested_family(request):
            raise ValueError("nlctrl is only asked for families, by their names")
        return
    if not command or command[0] not in NETLINK_GETTERS or kind != ethtool_family():
        raise ValueError(f"message {kind} of generic netlink is no question of probes/host/ethtool_ioctl.py")


def _read_count(command: int, content: bytes | array[int]) -> int:
    return int(struct.unpack_from("=I", content, 8 if command == GSTRINGS else 4)[0])


def _length(command: int, request: bytes, answer: array[int]) -> int:
    if command == GSTRINGS:
        return 12 + 32 * min(_read_count(command, answer), MOST_COUNTERS)
    if command == GSTATS:
        return 8 + 8 * min(_read_count(command, answer), MOST_COUNTERS)
    return len(request)
