"""What a kernel says when interfaces come, change and go, as events: recorded bytes, made ones, and this kernel's."""

from __future__ import annotations

import base64
import functools
import json
import zlib
from pathlib import Path

import pytest

from fixtures.netlink import build_link, build_link_info, encode_u32
from probes import netlink
from probes.host.event_sockets import Overrun
from probes.host.interface import Failed, ReadError
from probes.kernel import events
from probes.kernel.events import (
    DEL_LINK,
    GPU,
    INTERFACE,
    LOG,
    MISSED,
    MODULE,
    PCI,
    RDMA,
    SOFTWARE_INTERFACE,
    Interfaces,
    KernelEvent,
    Listener,
    Log,
    device_events,
    parse_uevent,
)
from probes.netdev import rtnetlink
from probes.netlink import attribute
from probes.text import ParseError
from tests.fuzz.seeds import KERNEL_LOGS
from tests.probes.namespace import in_namespace

RECORDED = Path(__file__).parent / "kernel_events.json"


@functools.cache
def steps() -> dict[str, dict[str, list[bytes]]]:
    """What was recorded of a real kernel, by step."""
    collected = {}
    for step in json.loads(RECORDED.read_text())["steps"]:
        lists = {key: value for key, value in step.items() if isinstance(value, list)}
        collected[step["step"]] = {
            key: [zlib.decompress(base64.b64decode(item)) for item in value] for key, value in lists.items()
        }
    return collected


@functools.cache
def told_by_rtnetlink() -> dict[str, list[str]]:
    """The texts of each step, one after the other: what is told depends on what was there before."""
    interfaces = Interfaces()
    return {
        name: [event.text for datagram in step["rtnetlink"] for event in interfaces.told(datagram)]
        for name, step in steps().items()
    }


def device(subsystem: str, path: str, action: str = "add", **more: str) -> list[KernelEvent]:
    """The events of one uevent."""
    rows = {"ACTION": action, "DEVPATH": path, "SUBSYSTEM": subsystem, **more}
    text = "\0".join([f"{action}@{path}", *(f"{name}={value}" for name, value in rows.items()), ""])
    return device_events(text.encode())


# --- rtnetlink


def test_interfaces_of_a_real_kernel_are_told_by_what_is_new() -> None:
    """Coming, carrier, rename, MTU and going, in their order; and nothing else of many messages."""
    result = told_by_rtnetlink()

    assert ["v1 is new", "v0 is new"] == result["veth added"]
    assert "v0 lowerlayerdown -> up" == result["veth set up"][-1]
    assert ["v1 up -> down", "v0 up -> lowerlayerdown"] == result["peer set down"]
    assert ["v0 lowerlayerdown -> down", "w0 was v0"] == result["renamed"]
    assert ["w0 MTU 1500 -> 9000"] == result["mtu"]
    assert ["w0 is gone", "v1 is gone"] == result["veth removed"]
    assert ["lo unknown -> down"] == result["loopback down"]


def test_a_bridge_and_who_listens_are_no_news_of_a_port() -> None:
    """14 messages, among them the bridge's own about its port (AF_BRIDGE) and promiscuous mode: w0 joined, w0 left."""
    of_port = [text for text in told_by_rtnetlink()["bridge joined and left"] if text.startswith("w0")]

    assert 2 == len(of_port)
    assert {"w0 joined or left a bond or bridge"} == set(of_port)


def test_interfaces_of_software_are_told_apart() -> None:
    """A veth is of software, a bond carries a NIC's traffic, what has no kind is hardware."""
    interfaces = Interfaces()
    messages = [
        build_link(4, "ens1f0np0"),
        build_link(5, "veth1", more=build_link_info("veth")),
        build_link(6, "bond0", more=build_link_info("bond")),
        build_link(7, "ens1.100", more=build_link_info("vlan")),
        build_link(8, "ib0", type=32, more=build_link_info("ipoib")),
    ]

    kinds = [event.kind for message in messages for event in interfaces.told(message)]

    assert [INTERFACE, SOFTWARE_INTERFACE, INTERFACE, INTERFACE, INTERFACE] == kinds


@pytest.mark.parametrize(
    ("then", "text"),
    [
        (build_link(4, "ens1", operstate=2, carrier=0), "ens1 up -> down"),
        (build_link(4, "ens1", carrier=0), "ens1 lost its carrier"),
        (build_link(4, "ens1", changes=(7, 4, 3)), "ens1 lost its carrier for a moment"),
        (build_link(4, "ens1", flags=0x11043), "ens1 was switched on or off"),
        (build_link(4, "ens1", mtu=1500), "ens1 MTU 9000 -> 1500"),
        (build_link(4, "ens1", mac="b8:3f:d2:00:00:02"), "ens1 has another address"),
        (
            build_link(4, "ens1", more=attribute(rtnetlink.MASTER, encode_u32(6))),
            "ens1 joined or left a bond or bridge",
        ),
        (build_link(4, "ens2", mtu=1500), "ens2 was ens1, MTU 9000 -> 1500"),
        (build_link(4, "ens1"), None),
        (build_link(4, "ens1", flags=0x1103), None),  # IFF_PROMISC: somebody listens
    ],
)
def test_every_difference_of_a_port_is_told_and_no_other(then: bytes, text: str | None) -> None:
    """Each alone; the same again, and somebody who listens, are none."""
    interfaces = Interfaces()
    interfaces.learn(build_link(4, "ens1"))

    assert ([text] if text else []) == [event.text for event in interfaces.told(then)]


def test_what_was_learnt_is_not_new_and_what_is_gone_comes_back() -> None:
    """The list of all interfaces comes first."""
    interfaces = Interfaces()
    interfaces.learn(build_link(1, "lo") + build_link(4, "ens1"))
    gone = bytearray(build_link(4, "ens1"))
    gone[4:6] = DEL_LINK.to_bytes(2, "little")

    assert [] == interfaces.told(build_link(4, "ens1"))
    assert ["ens1 is gone"] == [event.text for event in interfaces.told(bytes(gone))]
    assert ["ens1 is new"] == [event.text for event in interfaces.told(build_link(4, "ens1"))]
    assert [] == interfaces.told(netlink.request(20, 0, bytes(8)))  # an address: not asked for


# --- uevents


def test_uevents_of_a_real_kernel_are_read() -> None:
    """Of a veth: the interface and its queues; none of them is a device of ours, and the rename is read."""
    datagrams = [item for step in steps().values() for item in step["uevents"]]
    read = [parse_uevent(datagram) for datagram in datagrams]

    assert {"net", "queues"} <= {item.properties["SUBSYSTEM"] for item in read}
    assert "/devices/virtual/net/v0" in [item.properties.get("DEVPATH_OLD") for item in read if item.action == "move"]
    assert [] == [event for item in datagrams for event in device_events(item)]


@pytest.mark.parametrize(
    ("subsystem", "path", "kind"),
    [
        ("pci", "/devices/pci0000:15/0000:15:01.0/0000:16:00.0", PCI),
        ("infiniband", "/devices/pci0000:15/0000:15:01.0/0000:16:00.0/infiniband/mlx5_0", RDMA),
        ("drm", "/devices/pci0000:15/0000:15:01.0/0000:16:00.0/drm/card1", GPU),
        ("nvidia-caps", "/devices/virtual/nvidia-caps/nvidia-cap1", GPU),
        ("net", "/devices/pci0000:15/0000:15:01.0/0000:16:00.0/net/ens1", INTERFACE),
        ("module", "/module/mlx5_ib", MODULE),
        ("module", "/module/snd_hda_intel", None),
        ("net", "/devices/virtual/net/veth1", None),
        ("block", "/devices/virtual/block/loop0", None),
        ("queues", "/devices/pci0000:15/0000:16:00.0/net/ens1/queues/rx-0", None),
    ],
)
def test_devices_are_told_by_their_subsystem(subsystem: str, path: str, kind: str | None) -> None:
    """Ours, with their last name; others are silent."""
    result = device(subsystem, path)

    assert ([kind] if kind else []) == [event.kind for event in result]
    assert {path.rpartition("/")[2]} >= {event.subject for event in result}


def test_a_driver_that_lets_go_is_named() -> None:
    """bind and unbind say by whom."""
    (event,) = device("pci", "/devices/pci0000:15/0000:16:00.0", "unbind", DRIVER="nvidia")

    assert "pci 0000:16:00.0: unbind (driver nvidia)" == event.text


@pytest.mark.parametrize("data", [b"", b"libudev\0\xfe\xed\xca\xfe", b"add\0", b"@/devices/x\0", b"add@devices\0"])
def test_what_is_no_uevent_is_refused(data: bytes) -> None:
    """By the one declared error."""
    with pytest.raises(ParseError):
        parse_uevent(data)


# --- the kernel's log


def test_lines_of_drivers_are_events_record_by_record() -> None:
    """As the probe finds them in the whole log, also a sentence in two records."""
    log = Log()
    records = [f"{record}\n SUBSYSTEM=pci\n" for record in KERNEL_LOGS[0].split("\n SUBSYSTEM=pci\n") if record]
    result = [event for record in records for event in log.told(record.encode())]

    assert ["xid", "gpu_lost", "sxid", "aer", "dpc", "mlx5", "link_down", "peermem"] == [item.kind for item in result]
    assert "0000:b3:00.0" == result[1].subject
    assert {LOG} == {item.source for item in result}


def test_other_lines_are_silent_and_nothing_is_told_twice() -> None:
    """Interfaces that rename, a program's line that looks like a driver's, and what reading itself makes mlx5 write."""
    log = Log()
    quiet = [item for step in steps().values() for item in step["kmsg"]]
    quiet.append(b"12,7,8,-;NVRM: Xid (PCI:0018:01:00): 79, GPU has fallen off the bus\n")  # facility 1: a program
    quiet.append(b"4,8,9,-;mlx5_core 0000:5c:00.0: mlx5_cmd_out_err:808: ACCESS_REG(0x805) op_mod(0x1) failed\n")
    xid = b"4,9,10,-;NVRM: Xid (PCI:0018:01:00): 79, GPU has fallen off the bus\n"

    assert quiet
    assert [] == [event for record in quiet for event in log.told(record)]
    assert ["xid"] == [event.kind for event in log.told(xid)]
    assert [] == [event for record in quiet for event in log.told(record)]


# --- listeners


class Said:
    """A place that gives what it is made of, on a real descriptor."""

    def __init__(self, *answers: list[bytes] | Exception) -> None:
        self.answers = list(answers)

    def fileno(self) -> int:
        return -1

    def waiting(self) -> list[bytes]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        return None


def test_what_was_lost_or_is_not_understood_is_something_that_happened() -> None:
    """Nobody knows what: everything is read then."""
    listener = Listener("uevents", Said(Overrun(), [b"nonsense"], []), device_events)

    assert [MISSED] == [event.kind for event in listener.heard()]
    assert [MISSED] == [event.kind for event in listener.heard()]
    assert [] == listener.heard()


def test_a_place_that_gives_no_more_says_why() -> None:
    """It is for the loop to take it out."""
    with pytest.raises(ReadError, match="gone"):
        Listener("x", Said(Failed("gone")), device_events).heard()


LIVE = """
import json, select, subprocess, sys, time
from probes.kernel import events
found, refused = events.listeners()
heard = []
def do(*argv):
    subprocess.run(argv, check=True)
    until = time.monotonic() + 20
    before = len(heard)
    while time.monotonic() < until and (len(heard) == before or select.select(found, [], [], 0.3)[0]):
        for each in select.select(found, [], [], 0.3)[0]:
            heard.extend(each.heard())
do("ip", "link", "set", "lo", "up")
do("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
do("ip", "link", "set", "v0", "name", "w0")
do("ip", "link", "set", "lo", "down")
do("ip", "link", "del", "w0")
print(json.dumps([[each._asdict() for each in heard], refused]))
"""


def test_this_kernel_tells_what_is_done_to_its_interfaces(real_commands: None) -> None:
    """In a network namespace of its own: up, a veth, its rename, down, gone."""
    heard, refused = json.loads(in_namespace(LIVE).stdout)
    texts = [item["text"] for item in heard if item["source"] == events.RTNETLINK]

    assert "lo down -> unknown" in texts
    assert "v0 is new" in texts
    assert "w0 was v0" in texts
    assert "lo unknown -> down" in texts
    assert "w0 is gone" in texts
    assert {INTERFACE} == {item["kind"] for item in heard if item["subject"] == "lo"}
    assert not [line for line in refused if not line.startswith(LOG)]
