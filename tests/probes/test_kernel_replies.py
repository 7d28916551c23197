"""Netlink and ethtool replies of a real kernel, byte for byte, against what iproute2 and ethtool said of the objects.

kernel_replies/ holds both, taken in one guest: docs/real-kernel.md says how. The tools' answers are read here by
themselves, or by the readers of saved outputs, which so are held against the tools of today as well.
"""

from __future__ import annotations

import base64
import errno
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from probes import ethtool_text, optics_text
from probes.catalogue import probe
from probes.dcb_facts import Interface
from probes.dcb_tool import parse_dcb
from probes.host.door import Absent, unanswered
from probes.host.memory import Link, MemoryFiles
from probes.host.netlink import same_question
from probes.netdev import Netdev
from probes.optics import NEEDS, Socket
from probes.probe import Status, outcome_of
from probes.rdma_link import parse_rdma_link
from probes.rdma_netlink import NetlinkDevice, parse_system
from tests.probes.system_machine import Machine

REPLIES = Path(__file__).parent / "kernel_replies"
FULL, MIXED, CEE, LEGACY, EMPTY, COPPER, OLD_SFP = (f"ens{number}np0" for number in range(1, 8))
E1000E, VIRTIO = "eth0", "eth1"
PORTS = (FULL, MIXED, CEE, LEGACY, EMPTY, COPPER, OLD_SFP, E1000E, VIRTIO)


class Guest(Machine):
    """What the kernel answered. `privileged`: as root; else a module's memory is refused, as it was to nobody."""

    def __init__(self, privileged: bool = True) -> None:
        super().__init__(MemoryFiles(), live=True)
        kernel = table("linux-6.1")
        self.put({path: Link(text) for path, text in kernel["links"].items()})
        self.put(kernel["files"])
        self.privileged = privileged
        self.exchanges = {(row["protocol"], base64.b64decode(row["request"])): row for row in kernel["netlink"]}
        self.ioctls = {(row["interface"], base64.b64decode(row["request"])): row for row in kernel["ethtool"]}

    def netlink(self, protocol: int, request: bytes) -> bytes:
        if protocol == 16 and request[16] == 31 and not self.privileged:
            raise unanswered(OSError(errno.EPERM, ""), "netlink protocol 16, message 21")
        return answer(self.exchanges.get((protocol, same_question(request))), f"netlink protocol {protocol}")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        return answer(self.ioctls.get((interface, request)), f"ethtool of {interface}")


@functools.cache
def table(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((REPLIES / f"{name}.json").read_text())
    return read


def answer(row: dict[str, str] | None, subject: str) -> bytes:
    """The reply, or the errno that there was instead."""
    if row is None:
        raise Absent(f"{subject}: was not asked")
    if "error" in row:
        raise unanswered(OSError(getattr(errno, row["error"]), ""), subject)
    return base64.b64decode(row["reply"])


def tool(command: str) -> str | None:
    """What a tool printed; None where it failed."""
    said = table("linux-6.1-tools")["said"][command]
    return said if isinstance(said, str) else None


def why_not(command: str) -> str:
    return str(table("linux-6.1-tools")["said"][command]["stderr"])


@functools.cache
def facts(name: str, privileged: bool = True) -> Any:
    outcome = outcome_of(probe(name), Guest(privileged))
    assert outcome.status is Status.OK or not privileged, outcome.reason
    return outcome.facts


def of_port(probe_name: str, rows: str, port: str) -> Any:
    return next(row for row in getattr(facts(probe_name), rows) if row.name == port)


# --- DCB


def dcb(port: str) -> Interface:
    found: Interface = of_port("dcb", "interfaces", port)
    return found


@pytest.mark.parametrize("port", [FULL, MIXED])
@pytest.mark.parametrize("about", ["pfc", "ets", "buffer", "app", "dcbx"])
def test_dcb_is_what_the_tool_says(port: str, about: str) -> None:
    """Value by value: of each object of the tool, everything that its reader knows."""
    command = f"dcb -s -j pfc show dev {port}" if about == "pfc" else f"dcb -j {about} show dev {port}"
    theirs, ours = parse_dcb(about, tool(command) or "")._asdict(), dcb(port).said[0]._asdict()
    told = {name: value for name, value in theirs.items() if value is not None and name != "source"}

    assert told
    assert told == {name: ours[name] for name in told}


def test_dcb_of_the_ports_as_they_were_set() -> None:
    """Not only by our own readers: these values were set by `dcb` and read by it."""
    (said,) = dcb(FULL).said
    assert [False, False, False, True, False, False, False, False] == list(said.pfc or ())
    assert (30, 1234567, 7654321) == (said.delay, (said.frames_sent or ())[3], (said.frames_received or ())[3])
    assert (0, 30, 20, 40, 10, 0, 0, 0) == said.tc_bandwidth
    assert (0, 1, 2, 3, 4, 0, 6, 5) == said.prio_tc
    assert ("strict", "ets", "ets", "ets", "ets", "strict", "strict", "strict") == said.tc_tsa
    assert ((0, 0, 0, 1, 2, 0, 0, 0), (262016, 524288, 65536, 0, 0, 0, 0, 0)) == (said.prio_buffer, said.buffer_bytes)
    assert [dscp >> 3 for dscp in range(64)] == [each.priority for each in said.applications or ()]
    assert said.peer_pfc == said.pfc

    (said,) = dcb(MIXED).said
    assert {("dscp", 26, 3), ("dscp", 46, 5), ("dscp", 48, 6), ("ethertype", 8906, 3)} | {
        ("tcp", 3260, 4),
        ("udp", 4791, 3),
        ("port", 5555, 2),
    } == {tuple(each) for each in said.applications or ()}


def test_rates_are_the_bytes_of_the_structure() -> None:
    """The header has kbit/s, and drivers too; iproute2 writes and prints bytes a second. Ours is the header's."""
    assert json.loads(tool(f"dcb -j maxrate show dev {FULL}") or "")["tc_maxrate"] == list(
        dcb(FULL).said[0].max_rate_kbit_s or ()
    )


def test_a_driver_with_cee_alone() -> None:
    """The kernel answers to the IEEE question with an empty table, and of PFC only to CEE's."""
    assert "Attribute not found: Success" == why_not(f"dcb -s -j pfc show dev {CEE}")
    (said,) = dcb(CEE).said
    assert (False, False, False, False, True, False, False, False) == said.pfc
    assert (("host", "cee"), (), None) == (said.dcbx, said.applications, said.prio_tc)


@pytest.mark.parametrize("port", [LEGACY, E1000E, VIRTIO])
def test_a_driver_without_dcb(port: str) -> None:
    assert "Attribute read: Operation not supported" == why_not(f"dcb -s -j pfc show dev {port}")
    assert ((), "the driver has no DCB here (EOPNOTSUPP)") == (dcb(port).said, dcb(port).reason)


# --- ethtool


@pytest.mark.parametrize("port", PORTS)
def test_ethtool_is_what_the_tool_says(port: str) -> None:
    """Pause, FEC with its counters, modes, driver."""
    ours = of_port("ethtool", "interfaces", port)
    driver = ethtool_text.parse_driver(tool(f"ethtool -i {port}") or "")

    assert ethtool_text.parse_pause(tool(f"ethtool -a {port}") or "") == ours.pause
    assert ethtool_text.parse_fec(tool(f"ethtool -I --show-fec {port}") or "") == ours.fec
    assert ethtool_text.parse_settings(tool(f"ethtool {port}") or "") == ours.modes
    assert driver is not None
    assert tuple(driver) == (ours.driver, ours.version, ours.firmware)


@pytest.mark.parametrize("port", [FULL, MIXED])
def test_counters_are_what_the_tool_says(port: str) -> None:
    """All bits set is "not known" to the driver; the tool prints the number."""
    ours = of_port("ethtool", "interfaces", port).counters
    assert ethtool_text.parse_statistics(tool(f"ethtool -S {port}") or "") == ours
    assert "rx_corrected_bits_phy: 18446744073709551615" in (tool(f"ethtool -S {MIXED}") or "")
    assert ("rx_corrected_bits_phy" in ours) == (port == FULL)


def test_ethtool_of_the_ports_as_they_were_set() -> None:
    full, mixed, plain = (of_port("ethtool", "interfaces", port) for port in (FULL, MIXED, CEE))
    assert (400_000, ("off", "rs", "baser")) == (full.modes.max_speed_mbit_s, full.modes.fec_supported)
    assert ("rs", ("rs",), True) == full.fec[:3]
    assert {"fec_corrected_blocks": 555, "fec_uncorrectable_blocks": 1, "fec_corrected_bits": 777} == full.fec.counters
    assert (100_000, ("rs", "baser"), ()) == (
        mixed.modes.max_speed_mbit_s,
        mixed.modes.fec_supported,
        mixed.fec.configured,
    )
    assert (True, False, False) == tuple(mixed.pause)
    assert (25_000, ("rs", "baser"), False) == (plain.modes.max_speed_mbit_s, plain.fec.configured, plain.fec.auto)
    assert 10_000_000_000_013 == full.counters["rx_corrected_bits_phy"]


# --- modules


def socket(port: str) -> Socket:
    found: Socket = of_port("optics", "sockets", port)
    return found


@pytest.mark.parametrize("port", [FULL, MIXED, CEE, COPPER])
def test_a_module_is_what_the_tool_says(port: str) -> None:
    """CMIS, SFF-8636 and SFF-8472 memory, by pages. Flags of lanes apart: the tool does not print them all."""
    theirs, ours = optics_text.parse(tool(f"ethtool -m {port}") or ""), socket(port).module
    assert theirs is not None
    assert ours is not None
    assert theirs._replace(lanes=()) == ours._replace(lanes=())
    assert [lane[:4] for lane in theirs.lanes] == [lane[:4] for lane in ours.lanes]


def test_flags_of_lanes() -> None:
    """As they were set: the bit of lane 4, of which `ethtool -m` of a CMIS module prints nothing."""
    flags = {port: {lane.lane: lane.flags for lane in socket(port).module.lanes if lane.flags} for port in PORTS[:3]}  # type: ignore[union-attr]
    assert {2: ("tx_fault", "rx_lol"), 4: ("rx_power_low_warning",)} == flags[FULL]
    assert {3: ("rx_los", "rx_power_low_alarm")} == flags[MIXED]
    assert {1: ("rx_los",)} == flags[CEE]
    assert "On" not in [line.split()[-1] for line in (tool(f"ethtool -m {FULL}") or "").splitlines() if "(Chan" in line]


def test_memory_of_drivers_without_pages() -> None:
    """The kernel translates the question for drivers that know only get_module_eeprom: the same modules."""
    flat, sfp = socket(LEGACY).module, socket(OLD_SFP).module
    assert sfp is not None
    assert flat is not None
    assert sfp == socket(CEE).module
    assert ("QSFP28", "MT1934FT00002") == (flat.identifier, flat.serial)
    assert [0.5, 0.25, 0.0, -1.0] == [lane.rx_power_dbm for lane in flat.lanes]
    assert flat.thresholds == getattr(socket(MIXED).module, "thresholds", None)  # page 3


def test_no_module_and_none_to_read() -> None:
    assert "netlink error: Input/output error" == why_not(f"ethtool -m {EMPTY}")
    assert "EIO: no module answers" == socket(EMPTY).reason
    assert "netlink error: Operation not supported" == why_not(f"ethtool -m {E1000E}")
    assert "EOPNOTSUPP: the driver cannot read a module's memory" == socket(E1000E).reason


def test_nobody_may_not_read_modules() -> None:
    """EPERM, and for that question alone: every other answer was the same as root's."""
    outcome = outcome_of(probe("optics"), Guest(privileged=False))
    assert (Status.PARTIAL, NEEDS) == (outcome.status, outcome.reason)
    assert {f"EPERM: {NEEDS}"} == {each.reason for each in outcome.facts.sockets}


# --- links


@pytest.mark.parametrize("name", [row["ifname"] for row in table("linux-6.1-tools")["said"]["ip -d -j link"]])
def test_a_link_is_what_ip_says(name: str) -> None:
    """Ports, VLANs with and without a map, both kinds of bond and their slaves, veth, bridge, dummy, netdevsim."""
    ours: Netdev = of_port("netdev", "netdevs", name)
    said = table("linux-6.1-tools")["said"]
    theirs = next(row for row in said["ip -d -j link"] if row["ifname"] == name)
    info = theirs.get("linkinfo", {})
    data = info.get("info_data", {})

    assert (ours.mac or "00:00:00:00:00:00", ours.mtu, ours.operstate) == (
        theirs["address"],
        theirs["mtu"],
        theirs["operstate"].lower(),
    )
    assert (ours.admin_up, ours.carrier) == (
        "UP" in theirs["flags"],
        "LOWER_UP" in theirs["flags"] if "UP" in theirs["flags"] else None,
    )
    assert (ours.kind, ours.master, ours.port_name) == (
        info.get("info_kind"),
        theirs.get("master"),
        theirs.get("phys_port_name"),
    )
    if theirs.get("parentbus") == "pci":
        assert ours.address == theirs["parentdev"]
    if ours.kind == "vlan":
        tags = ",".join(f"{each['from']}:{each['to']}" for each in data.get("egress_qos", []))
        assert {"id": data["id"], "parent": theirs["link"], "egress_map": tags} == ours.vlan
    if ours.kind == "bond":
        assert ours.bond is not None
        assert [data["mode"], str(data["miimon"]), data["xmit_hash_policy"], data.get("active_slave")] == [
            ours.bond.get(key) for key in ("mode", "miimon", "xmit_hash_policy", "active_slave")
        ]
        slaves = [row["ifname"] for row in said["ip -d -j link"] if row.get("master") == name]
        assert slaves == list(ours.bond["slaves"])
    (addresses,) = [row["addr_info"] for row in said["ip -j addr"] if row["ifname"] == name]
    assert {f"{each['local']}/{each['prefixlen']}" for each in addresses} == set(ours.addresses)


def test_links_as_they_were_made() -> None:
    assert {"id": 100, "parent": FULL, "egress_map": "0:3,4:5"} == of_port("netdev", "netdevs", "v100").vlan
    assert {"id": 4094, "parent": MIXED, "egress_map": ""} == of_port("netdev", "netdevs", "v4094").vlan
    bond = {"mode": "802.3ad", "miimon": "100", "xmit_hash_policy": "layer3+4", "slaves": (COPPER, OLD_SFP)}
    assert bond == of_port("netdev", "netdevs", "bond0").bond
    assert "0000:00:04.0" == of_port("netdev", "netdevs", VIRTIO).address  # its parent in netlink is a virtio device


# --- RDMA


def test_rdma_is_what_the_tool_says() -> None:
    """Interfaces of ports, for HCAs and soft-RoCE; the protocol, which this version of the tool does not print."""
    devices: tuple[NetlinkDevice, ...] = facts("rdma_netlink").devices
    theirs = {row["ifname"]: row.get("netdev") for row in json.loads(tool("rdma -j link") or "")}
    ours = {each.name: dict(each.interfaces).get(1) for each in devices}

    assert theirs == ours
    assert {"mlx5_0": FULL, "mlx5_7": None, "rxea": "va"}.items() <= ours.items()
    assert {"mlx5_7": "ib"} == {each.name: each.protocol for each in devices if each.protocol != "roce"}
    assert parse_system(tool("rdma system") or "") == facts("rdma_netlink").namespaces == "shared"


def test_rdma_link_in_words() -> None:
    """The reader of `rdma link` against the same kernel."""
    parsed = {each.name: each.ports[0] for each in parse_rdma_link(tool("rdma -d link") or "").devices}
    assert (17, 1) == (parsed["mlx5_7"].lid, parsed["mlx5_7"].sm_lid)
    assert set(parsed) == {each.name for each in facts("rdma_netlink").devices}
