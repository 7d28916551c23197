"""Interfaces: netlink says which exist, sysfs where they sit; each does what it can without the other."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.netlink import (
    build_address,
    build_error,
    build_link,
    build_link_info,
    build_statistics,
    encode_text,
    encode_u32,
)
from probes import netlink
from probes.catalogue import probe
from probes.host.interface import Denied, Failed
from probes.netdev import rtnetlink
from probes.netdev.probe import Netdev, natural
from probes.netlink import attribute
from probes.probe import Status, outcome_of
from probes.sources.memory import SymlinkNode
from tests.probes.machine import Machine

MAC = "b8:3f:d2:00:00:01"
PCI = "0000:1a:00.0"
DEVICE = f"/sys/devices/pci0000:15/0000:15:01.0/{PCI}"
RUNTIME = f"/sys/bus/pci/devices/{PCI}/power/runtime_status"


def sysfs(name: str = "ens1f0np0", index: int = 4, **attributes: str) -> Machine:
    """A machine whose sysfs shows one port of a ConnectX."""
    folder = f"{DEVICE}/net/{name}"
    said = {"ifindex": str(index), "address": MAC, "dev_port": "0", "speed": "400000"} | attributes
    return Machine(live=True).put(
        {
            f"/sys/class/net/{name}": SymlinkNode(f"../../devices/pci0000:15/0000:15:01.0/{PCI}/net/{name}"),
            f"/sys/bus/pci/devices/{PCI}": SymlinkNode(f"../../../devices/pci0000:15/0000:15:01.0/{PCI}"),
            f"{DEVICE}/driver": SymlinkNode("../../../../bus/pci/drivers/mlx5_core"),
            f"{DEVICE}/power/runtime_status": "active\n",
            f"{folder}/device": SymlinkNode("../.."),
            **{f"{folder}/{key}": f"{value}\n" for key, value in said.items()},
        }
    )


def answering(machine: Machine, links: bytes, addresses: bytes = b"", counters: bytes | None = None) -> Machine:
    """The same machine with netlink."""
    machine.answers[netlink.links_request()] = links
    machine.answers[netlink.addresses_request()] = addresses
    machine.answers[netlink.statistics_request(4)] = counters or build_error(errno.EOPNOTSUPP)
    return machine


def one(machine: Machine, name: str = "ens1f0np0") -> Netdev:
    """The interface of that name."""
    (found,) = (dev for dev in outcome_of(probe("netdev"), machine).facts.netdevs if dev.name == name)
    return found


def test_port_of_a_card_whole():
    """Both sources joined: address, port, driver, speed, addresses and counters."""
    addresses = build_address(4, "fe80::1", 64) + build_address(4, "10.0.0.1", 24)
    host = answering(sysfs(), build_link(4, "ens1f0np0", mac=MAC), addresses, build_statistics(4, range(25)))
    outcome = outcome_of(probe("netdev"), host)

    assert Status.OK == outcome.status
    assert "rtnetlink RTM_GETLINK" in outcome.sources
    assert (
        Netdev(
            name="ens1f0np0",
            address=PCI,
            dev_port=0,
            mac=MAC,
            addresses=("10.0.0.1/24", "fe80::1/64"),
            operstate="up",
            admin_up=True,
            carrier=True,
            carrier_changes=5,
            carrier_up_count=3,
            carrier_down_count=2,
            speed_mbit_s=400000,
            mtu=9000,
            type=1,
            driver="mlx5_core",
            counters=dict(zip(rtnetlink.COUNTERS.split(), range(25), strict=True)),
        )
        == outcome.facts.netdevs[0]
    )


def test_sleeping_card_is_asked_nothing_more():
    """After runtime_status said "suspended", neither speed nor counters are read."""
    host = answering(sysfs(), build_link(4, "ens1f0np0", mac=MAC), b"", build_statistics(4, range(25)))
    host.put({f"{DEVICE}/power/runtime_status": "suspended\n"})
    found = one(host)

    assert (PCI, None, None) == (found.address, found.speed_mbit_s, found.counters)
    assert RUNTIME == host.asked[-2]  # then only the list of interfaces
    assert not any(path.endswith("speed") for path in host.asked)


def test_speed_of_a_port_that_is_down_is_not_asked():
    """`speed` takes the network lock, and answers EINVAL on a port that is down."""
    host = answering(sysfs(), build_link(4, "ens1f0np0", mac=MAC, operstate=2, carrier=0))

    assert one(host).speed_mbit_s is None
    assert not any(path.endswith("speed") for path in host.asked)


@pytest.mark.parametrize("speed", ["-1", ""])
def test_speed_that_the_driver_does_not_know(speed: str):
    """-1 and nothing are no speed."""
    assert one(answering(sysfs(speed=speed), build_link(4, "ens1f0np0", mac=MAC))).speed_mbit_s is None


def test_speed_that_answers_an_error():
    """EINVAL is "not known", not a failed probe."""
    host = answering(sysfs(), build_link(4, "ens1f0np0", mac=MAC))
    host.refused["/sys/class/net/ens1f0np0/speed"] = Failed("speed: Invalid argument", "EINVAL")

    assert one(host).speed_mbit_s is None


def test_another_namespaces_interface_of_the_same_name():
    """sysfs of the host shows another eth0 than ours: nothing of it is believed, the kernel's own word is."""
    parent = attribute(rtnetlink.PARENT, encode_text("0000:3b:00.2")) + attribute(
        rtnetlink.PARENT_BUS, encode_text("pci")
    )
    host = answering(sysfs("eth0", index=12), build_link(4, "eth0", mac=MAC, more=parent))
    found = one(host, "eth0")

    assert "0000:3b:00.2" == found.address
    assert (None, None, None) == (found.dev_port, found.driver, found.speed_mbit_s)


def test_interface_in_another_namespace_is_named_not_listed():
    """What sysfs shows and netlink does not have is told apart from what is not there."""
    outcome = outcome_of(probe("netdev"), answering(sysfs(), build_link(1, "lo")))

    assert ["lo"] == [dev.name for dev in outcome.facts.netdevs]
    assert "another network namespace, and not described: ens1f0np0" in outcome.reason


def test_software_interfaces_cost_no_file():
    """A node with a thousand veth pairs: each is one entry of the dump."""
    host = answering(
        Machine(live=True), b"".join(build_link(n, f"veth{n}", more=build_link_info("veth")) for n in range(5, 100))
    )
    outcome = outcome_of(probe("netdev"), host)

    assert 95 == len(outcome.facts.netdevs)
    assert all(dev.virtual and dev.kind == "veth" for dev in outcome.facts.netdevs)
    assert ["/sys/class/net"] == host.asked


def test_bond_lists_its_slaves_in_order():
    """Slaves are those links that name the bond, numbers sorted as numbers."""
    master = attribute(rtnetlink.MASTER, encode_u32(9))
    bond = build_link_info("bond", attribute(rtnetlink.BOND_MODE, bytes([1])))
    host = answering(
        Machine(live=True),
        build_link(5, "ens10", more=master) + build_link(4, "ens9", more=master) + build_link(9, "bond0", more=bond),
    )

    assert {"mode": "active-backup", "slaves": ("ens9", "ens10")} == one(host, "bond0").bond


def test_refused_addresses_leave_the_rest():
    """One question that fails takes nothing else along."""
    host = answering(sysfs(), build_link(4, "ens1f0np0", mac=MAC), build_error(errno.EPERM), build_statistics(4, [1]))
    outcome = outcome_of(probe("netdev"), host)

    assert Status.PARTIAL == outcome.status
    assert () == outcome.facts.netdevs[0].addresses
    assert "addresses: " in outcome.reason
    assert "EPERM" in outcome.reason


def test_without_netlink_sysfs_says_what_it_can():
    """A tree: the same facts but addresses, and the reason."""
    said = {"operstate": "up", "flags": "0x1003", "mtu": "9000", "type": "1", "carrier": "1", "carrier_changes": "5"}
    host = sysfs(**said).put({f"{DEVICE}/net/ens1f0np0/statistics/rx_bytes": "77\n"})
    outcome = outcome_of(probe("netdev"), host)
    found = outcome.facts.netdevs[0]

    assert Status.PARTIAL == outcome.status
    assert "addresses" in outcome.reason
    assert (PCI, MAC, "up", True, True, 5) == (
        found.address,
        found.mac,
        found.operstate,
        found.admin_up,
        found.carrier,
        found.carrier_changes,
    )
    assert (400000, 9000, "mlx5_core", {"rx_bytes": 77}) == (
        found.speed_mbit_s,
        found.mtu,
        found.driver,
        found.counters,
    )


def test_bonds_and_vlans_of_a_tree():
    """bonding/ and /proc/net/vlan/config say what netlink would."""
    host = sysfs(operstate="up")
    virtual = "/sys/devices/virtual/net/{}"
    host.put(
        {f"/sys/class/net/{name}": SymlinkNode(f"../../devices/virtual/net/{name}") for name in ("bond0", "bond0.5")}
    )
    host.put({f"{virtual.format('bond0')}/bonding/mode": "802.3ad 4\n", "/sys/class/net/bonding_masters": "bond0\n"})
    host.put({f"{virtual.format('bond0.5')}/operstate": "up\n"})
    host.put({f"{DEVICE}/net/ens1f0np0/master": SymlinkNode("../../../../../virtual/net/bond0")})
    host.put({"/proc/net/vlan/config": "VLAN Dev name | VLAN ID\nName-Type: X\nbond0.5 | 5  | bond0\n"})

    assert {"mode": "802.3ad", "slaves": ("ens1f0np0",)} == one(host, "bond0").bond
    assert {"id": 5, "parent": "bond0"} == one(host, "bond0.5").vlan
    assert "bond0" == one(host).master


def test_interfaces_below_pci_functions_of_a_recorded_source():
    """A tree may hold interfaces only in the folders of their functions; a live host always has /sys/class/net."""
    files = {f"/sys/bus/pci/devices/{PCI}/net/ib6/operstate": "down\n"}
    tree = outcome_of(probe("netdev"), Machine().put(files))
    live = outcome_of(probe("netdev"), Machine(live=True).put(files))

    assert [("ib6", PCI, "down")] == [(dev.name, dev.address, dev.operstate) for dev in tree.facts.netdevs]
    assert Status.ABSENT == live.status


def test_refused_netlink_is_a_reason_on_a_live_host():
    """A sandbox that forbids netlink: sysfs answers, and the report says why addresses are not known."""
    host = sysfs(operstate="up")
    host.answers[netlink.links_request()] = Denied("netlink: Operation not permitted", "EPERM")

    assert "Operation not permitted" in outcome_of(probe("netdev"), host).reason


def test_damaged_recording_is_told_apart_from_silence():
    """Bytes that are no messages: sysfs answers, and the reason names them."""
    outcome = outcome_of(probe("netdev"), answering(sysfs(operstate="up"), b"\x01" * 9))

    assert ["ens1f0np0"] == [dev.name for dev in outcome.facts.netdevs]
    assert "where a header should be" in outcome.reason


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_two_names_have_one_order(one: str, other: str):
    """Different names never tie, so a report's order does not depend on its source's."""
    assert (one == other) == (natural(one) == natural(other))
    assert (one == other) or (natural(one) < natural(other)) != (natural(other) < natural(one))


def arp(interface: str, **values: int) -> dict[str, str]:
    """Files of one interface's ARP settings."""
    return {f"/proc/sys/net/ipv4/conf/{interface}/{name}": f"{value}\n" for name, value in values.items()}


def test_arp_settings_in_force_are_the_larger_of_all_and_own() -> None:
    """Read where several interfaces of PCI devices have an IPv4 address, and only there."""
    host = sysfs().put(
        {
            "/sys/class/net/ens2": SymlinkNode(f"../../devices/pci0000:15/0000:15:01.0/{PCI}/net/ens2"),
            f"{DEVICE}/net/ens2/ifindex": "5\n",
            f"{DEVICE}/net/ens2/address": f"{MAC}\n",
            f"{DEVICE}/net/ens2/dev_port": "1\n",
            **arp("all", arp_ignore=1, arp_announce=0, arp_filter=0),
            **arp("ens1f0np0", arp_ignore=0, arp_announce=2, arp_filter=0, rp_filter=1),
        }
    )
    links = build_link(4, "ens1f0np0", mac=MAC) + build_link(5, "ens2", mac=MAC)
    two = build_address(4, "10.0.0.1", 24) + build_address(5, "10.0.1.1", 24)
    host.answers[netlink.statistics_request(5)] = build_error(errno.EOPNOTSUPP)

    assert {"arp_ignore": 1, "arp_announce": 2, "arp_filter": 0} == one(answering(host, links, two)).arp
    assert one(answering(host, links, two), "ens2").arp is None
    assert one(answering(host, links, build_address(4, "10.0.0.1", 24))).arp is None
