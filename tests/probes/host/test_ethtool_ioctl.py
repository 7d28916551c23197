"""ethtool of this kernel: only questions of the list, an errno for what a driver does not have."""

from __future__ import annotations

import socket
import struct

import pytest

from probes import netlink as codec
from probes.ethtool import ioctl as ioctl
from probes.ethtool import netlink as genl
from probes.host import ethtool_ioctl
from probes.host import netlink_socket as netlink
from probes.host.interface import Failed, ReadError
from probes.host.live import LiveHost
from probes.netlink import IS_REQUEST, request

SETTERS = {
    0x02: "SSET",
    0x06: "SWOL",
    0x09: "NWAY_RST",
    0x13: "SPAUSEPARAM",
    0x1A: "TEST",
    0x22: "SFLAGS",
    0x51: "SFEC",
}
NETLINK_SETTERS = (0, 1, 3, 5, 7, 9, 12, 22, 26, 30, 32, 34, 255)
LOOPBACK = socket.if_nametoindex("lo")


def test_the_list_holds_questions_alone() -> None:
    """Every command of linux/ethtool.h that is asked; whoever adds one must add it here."""
    assert {
        0x03: "GDRVINFO",
        0x12: "GPAUSEPARAM",
        0x1B: "GSTRINGS",
        0x1D: "GSTATS",
        0x37: "GSSET_INFO",
        0x50: "GFEC",
    }.keys() == (ethtool_ioctl.GETTERS)
    assert {
        4: "LINKMODES_GET",
        21: "PAUSE_GET",
        29: "FEC_GET",
        31: "MODULE_EEPROM_GET",
    }.keys() == ethtool_ioctl.NETLINK_GETTERS


@pytest.mark.parametrize("command", SETTERS, ids=SETTERS.get)
def test_a_command_that_changes_something_never_reaches_the_kernel(command: int) -> None:
    """That is a bug, not an answer."""
    with pytest.raises(ValueError, match=r"is not in probes/host/ethtool_ioctl\.py"):
        LiveHost().ethtool("lo", struct.pack("=IIII", command, 0, 0, 0))


@pytest.mark.parametrize("question", [b"", b"\x03\0\0", bytes(257), ioctl.names_request(1) + b"\0", b"\x1d\0\0\0"])
def test_a_request_of_another_length_is_refused(question: bytes) -> None:
    """The kernel would read or write beyond it."""
    with pytest.raises(ValueError, match="bytes"):
        ethtool_ioctl.check(question)


def test_more_counters_than_there_is_room_for_are_refused() -> None:
    """The kernel writes what it has."""
    assert 0x1B == ethtool_ioctl.check(ioctl.names_request(ethtool_ioctl.MOST_COUNTERS))
    with pytest.raises(ValueError, match="counters"):
        ethtool_ioctl.check(ioctl.values_request(ethtool_ioctl.MOST_COUNTERS + 1))


@pytest.mark.parametrize("command", NETLINK_SETTERS)
def test_generic_netlink_asks_questions_of_ethtool_alone(command: int) -> None:
    """Setters, actions, and the same numbers of other families."""
    family = codec.parse_family(LiveHost().netlink(codec.GENERIC, codec.family_request(genl.FAMILY)))
    with pytest.raises(ValueError, match="no question"):
        netlink.request_netlink(codec.GENERIC, genl.get_request(family, command, LOOPBACK))


def test_another_family_is_not_asked() -> None:
    """Nor the one that hands out numbers, but for families; nor with a message that ends early."""
    family = codec.parse_family(LiveHost().netlink(codec.GENERIC, codec.family_request(genl.FAMILY)))
    with pytest.raises(ValueError, match="no question"):
        netlink.request_netlink(codec.GENERIC, genl.get_request(family + 1, genl.PAUSE_GET, LOOPBACK))
    with pytest.raises(ValueError, match="families"):
        netlink.request_netlink(codec.GENERIC, request(codec.CONTROL, IS_REQUEST, codec.GENERIC_HEAD.pack(10, 2, 0)))
    with pytest.raises(ValueError, match="no question"):
        netlink.request_netlink(codec.GENERIC, request(family, IS_REQUEST, b""))


@pytest.mark.parametrize("command", [genl.LINKMODES_GET, genl.PAUSE_GET, genl.FEC_GET])
def test_the_loopback_has_no_such_thing(command: int) -> None:
    """The errno has the name that drivers give it."""
    host = LiveHost()
    family = codec.parse_family(host.netlink(codec.GENERIC, codec.family_request(genl.FAMILY)))
    with pytest.raises(Failed) as caught:
        host.netlink(codec.GENERIC, genl.get_request(family, command, LOOPBACK))
    assert "EOPNOTSUPP" == caught.value.code


def test_ioctls_of_this_kernel() -> None:
    """The loopback answers one question and refuses another; an interface that is not there is a reason."""
    host = LiveHost()
    assert 0 == ioctl.parse_count(host.ethtool("lo", ioctl.count_request()))
    for interface, question, code in (
        ("lo", ioctl.pause_request(), "EOPNOTSUPP"),
        ("lo", ioctl.names_request(0), "EOPNOTSUPP"),
        ("nosuch0", ioctl.driver_request(), "ENODEV"),
        ("", ioctl.driver_request(), "ENODEV"),
        ("a-name-of-sixteen", ioctl.driver_request(), "ENODEV"),
        ("nul\0", ioctl.driver_request(), "ENODEV"),
    ):
        with pytest.raises(ReadError) as caught:
            host.ethtool(interface, question)
        assert code == caught.value.code, interface


def test_counters_of_whatever_interface_has_some() -> None:
    """Names and values of one driver agree in number."""
    host = LiveHost()
    for _, name in socket.if_nameindex():
        count = ioctl.parse_count(host.ethtool(name, ioctl.count_request()))
        if not count:
            continue
        names, values = (host.ethtool(name, ask(count)) for ask in (ioctl.names_request, ioctl.values_request))
        assert (12 + 32 * count, 8 + 8 * count) == (len(names), len(values))
        assert 0 < len(ioctl.parse_counters(names, values)) <= count


def test_an_index_that_is_not_there_is_a_reason() -> None:
    """It went away since it was listed."""
    host = LiveHost()
    family = codec.parse_family(host.netlink(codec.GENERIC, codec.family_request(genl.FAMILY)))
    with pytest.raises(Failed) as caught:
        host.netlink(codec.GENERIC, genl.get_request(family, genl.PAUSE_GET, 999_999))
    assert "ENODEV" == caught.value.code
