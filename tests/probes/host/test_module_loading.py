"""Nothing that is asked of a live host makes its kernel load a module."""

from __future__ import annotations

import _socket as socket
import fcntl
from pathlib import Path

import pytest

from probes import netlink as codec
from probes.ethtool import ioctl
from probes.host import commands, live
from probes.host import netlink_socket as netlink
from probes.host.interface import Absent, Completed, ReadError
from probes.host.live import LiveHost
from probes.netlink import IS_DONE, IS_DUMP, IS_REQUEST, request
from probes.rdma.netlink import GET, question
from tests.probes.host.test_kernel_interfaces import Kernel

HEAD = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"
BUILT_IN = "0000000022b74e78 0   0          00000000 0        0        0     2        0        4\n"
RDMA = "00000000bc5207aa 20  0          00000000 0        0        0     2        0        179\n"
OF_A_PROCESS = "00000000bc5207ab 0   20         00000000 0        0        0     2        0        180\n"


class Sockets(Kernel):
    """Stands in for `socket.socket`: notes each protocol and request; the kernel answers with one datagram each."""

    def __init__(self, *datagrams: bytes) -> None:
        super().__init__(*((datagram, 0) for datagram in datagrams))
        self.protocols: list[int] = []
        self.requests: list[bytes] = []

    def __call__(self, _family: int, _kind: int, protocol: int) -> Sockets:
        self.protocols.append(protocol)
        return self

    def send(self, message: bytes) -> None:
        self.requests.append(message)


def protocols(monkeypatch: pytest.MonkeyPatch, path: Path, text: str | None) -> None:
    """What /proc/self/net/netlink holds; None: there is no such file."""
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(netlink, "PROTOCOLS", str(path))


@pytest.mark.parametrize("text", [HEAD + BUILT_IN, HEAD + BUILT_IN + OF_A_PROCESS, HEAD, "", "20\n", "x 20 \n", None])
def test_no_socket_of_a_protocol_that_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None
) -> None:
    """`net-pf-16-proto-20` is an alias of ib_core: its socket alone would load it, for everybody."""
    protocols(monkeypatch, tmp_path / "netlink", text)
    sockets = Sockets()
    monkeypatch.setattr(socket, "socket", sockets)

    with pytest.raises(Absent, match="netlink protocol 20") as caught:
        LiveHost().netlink(codec.RDMA, question(GET))

    assert [] == sockets.protocols
    assert "EPROTONOSUPPORT" == caught.value.code  # as the kernel says it where there is no such module


def test_a_protocol_that_is_loaded_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kernel's own socket shows it."""
    protocols(monkeypatch, tmp_path / "netlink", HEAD + BUILT_IN + RDMA)
    sockets = Sockets(request(IS_DONE, 2, bytes(4)))
    monkeypatch.setattr(socket, "socket", sockets)

    assert b"" == LiveHost().netlink(codec.RDMA, question(GET))
    assert [codec.RDMA] == sockets.protocols


def test_this_kernel_lists_its_protocols() -> None:
    """What is built in is in the list, so the list can be believed."""
    listed = Path(netlink.PROTOCOLS).read_text().splitlines()[1:]

    assert {str(protocol) for protocol in netlink.BUILT_IN} <= {line.split()[1] for line in listed}


def family(name: bytes, number: int) -> bytes:
    """One family of the kernel's list."""
    body = codec.GENERIC_HEAD.pack(codec.NEW_FAMILY, 2, 0)
    body += codec.attribute(codec.FAMILY_ID, number.to_bytes(2, "little"))
    return request(codec.CONTROL, 2, body + codec.attribute(codec.FAMILY_NAME, name + b"\0"))


FAMILIES = family(b"nlctrl", 16) + family(b"ethtool", 21) + family(b"ethtool2", 22) + request(IS_DONE, 2, bytes(4))


def test_a_family_is_looked_up_in_the_list_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, the kernel would try `net-pf-16-proto-16-family-NAME`."""
    sockets = Sockets(FAMILIES)
    monkeypatch.setattr(socket, "socket", sockets)

    assert 21 == codec.parse_family(LiveHost().netlink(codec.GENERIC, codec.family_request("ethtool")))
    assert [b"ethtool" in message for message in sockets.requests] == [False]
    assert IS_REQUEST | IS_DUMP == codec.HEADER.unpack_from(sockets.requests[0])[2]


def test_a_family_that_is_not_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the errno of the kernel's own answer."""
    monkeypatch.setattr(socket, "socket", Sockets(FAMILIES))

    with pytest.raises(Absent) as caught:
        LiveHost().netlink(codec.GENERIC, codec.family_request("devlink"))
    assert "ENOENT" == caught.value.code


def test_an_interface_that_is_gone_gets_no_ioctl(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would try `netdev-sit0`, and find a module for it."""

    def fail(*_: object) -> None:
        raise AssertionError("an ioctl")

    monkeypatch.setattr(fcntl, "ioctl", fail)

    with pytest.raises(ReadError) as caught:
        LiveHost().ethtool("sit-is-gone", ioctl.driver_request())
    assert "ENODEV" == caught.value.code


@pytest.mark.parametrize("argv", commands.RDMA, ids=" ".join)
def test_a_tool_whose_library_would_load_a_module_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    """Where its class is there, the module is loaded."""
    there = Completed(argv, 0, "", "", 0.0)
    monkeypatch.setattr(live, "run_tool", lambda *_: there)

    monkeypatch.setitem(commands.CLASSES, argv[0], str(tmp_path / "nothing"))
    with pytest.raises(Absent, match="would load the module"):
        LiveHost().run(*argv)

    monkeypatch.setitem(commands.CLASSES, argv[0], str(tmp_path))
    assert there == LiveHost().run(*argv)
