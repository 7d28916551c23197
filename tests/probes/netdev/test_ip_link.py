"""`ip -d link`: the interfaces of bundles that hold neither netlink nor /sys/class/net."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from probes.netdev import probe as netdev
from probes.netdev.ip_link import parse_ifconfig, parse_ip_link
from probes.netdev.rtnetlink import NetlinkLink
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.memory import SymlinkNode as SymbolicLink
from probes.sources.tree import TreeHost
from probes.text import ParseError

OUTPUT = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 minmtu 0 maxmtu 0 addrgenmode eui64
2: ens1f0np0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP mode DEFAULT group default
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 portname p0 parentbus pci parentdev 0000:1a:00.0 \n
    bond_slave state ACTIVE mii_status UP link_failure_count 0 perm_hwaddr b8:3f:d2:00:00:01 queue_id 0
    vf 0     link/ether 00:00:00:00:00:00 brd ff:ff:ff:ff:ff:ff, spoof checking off, link-state auto
3: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 4092 qdisc mq state DOWN mode DEFAULT group default qlen 256
    link/infiniband 00:00:10:29:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:12:34:56 brd 00:ff promiscuity 0
4: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535
    bond mode 802.3ad miimon 100 updelay 0 downdelay 0
5: bond0.7@bond0: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000
    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    vlan protocol 802.1Q id 7 <REORDER_HDR> addrgenmode eui64
"""
IPOIB = "00:00:10:29:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:12:34:56"


def test_every_interface_is_told() -> None:
    """Ports with the function below them, bonds, VLANs, InfiniBand; down, up without a carrier, up."""
    mac = "b8:3f:d2:00:00:01"
    up = {"flags": 1, "carrier": True, "type": 1, "mac": mac, "mtu": 9000, "operstate": "up"}

    assert parse_ip_link(OUTPUT) == (
        NetlinkLink("lo", index=1, type=772, flags=1, mtu=65536, operstate="unknown", carrier=True),
        NetlinkLink("ens1f0np0", index=2, master="bond0", port_name="p0", parent_pci="0000:1a:00.0", **up),
        NetlinkLink("ib0", index=3, type=32, flags=1, mac=IPOIB, mtu=4092, operstate="down", carrier=False),
        NetlinkLink("bond0", index=4, kind="bond", bond={"mode": "802.3ad", "miimon": "100"}, **up),
        NetlinkLink(
            *("bond0.7", 5, 1, 0, mac, 1500, "down"), kind="vlan", lower="bond0", vlan_id=7, vlan_egress=""
        ),
    )  # fmt: skip


def test_it_completes_sysfs_and_stands_for_it() -> None:
    """What sysfs has of an interface stays; where it lies comes from either."""
    files = MemoryFiles()
    files.add("/sys/class/net/ib0", SymbolicLink("../../devices/pci0000:15/0000:1b:00.0/net/ib0"))
    files.add("/sys/devices/pci0000:15/0000:1b:00.0/net/ib0/mtu", b"2044\n")
    host = TreeHost("dump", "x", files, SavedOutputs(MemoryFiles({"ip_-s_-d_link": OUTPUT.encode()})))
    result = {netdev.name: netdev for netdev in netdev.read(host).facts.netdevs}

    assert ["bond0", "bond0.7", "ens1f0np0", "ib0", "lo"] == list(result)
    assert ("0000:1b:00.0", 2044, IPOIB) == (result["ib0"].address, result["ib0"].mtu, result["ib0"].mac)
    assert ("0000:1a:00.0", 9000, None) == (
        result["ens1f0np0"].address,
        result["ens1f0np0"].mtu,
        result["ens1f0np0"].driver,
    )
    assert {"mode": "802.3ad", "miimon": "100", "slaves": ("ens1f0np0",)} == result["bond0"].bond
    assert {"id": 7, "parent": "bond0", "egress_map": ""} == result["bond0.7"].vlan
    assert [True, True, False, False, True] == [value.virtual for value in result.values()]


def test_another_output_is_none() -> None:
    """And says how it begins."""
    with pytest.raises(ParseError, match="begins with: Object"):
        parse_ip_link('Object "lnik" is unknown, try "ip help".\n')


def test_what_a_vlan_makes_of_priorities() -> None:
    """A line of its own, as iproute2 prints it; without one there is no map."""
    head = "7: ens1.5@ens1: <BROADCAST,UP> mtu 1500 state UP\n    link/ether b8:3f:d2:00:00:01 brd ff:ff:ff:ff:ff:ff\n"
    kind = "    vlan protocol 802.1Q id 5 <REORDER_HDR> \n"
    with_map, without = (parse_ip_link(head + kind + more)[0] for more in ("      egress-qos-map { 0:3 4:3 } \n", ""))
    assert (with_map.vlan_egress, without.vlan_egress, with_map.vlan_id) == ("0:3,4:3", "", 5)


@pytest.mark.parametrize(
    "kind",
    [
        "    ipoib pkey  0xffff mode  datagram umcast  0000 addrgenmode none {}numtxqueues 256 {}",
        "    bond_slave state ACTIVE mii_status UP perm_hwaddr b8:3f:d2:00:00:01 queue_id 0 {}numtxqueues 32 {}",
        "    ipoib pkey 0xffff mode datagram umcast 0000\n    {}{}",
    ],
)
def test_the_place_stands_behind_the_kind(kind: str) -> None:
    """Of IPoIB and of what has a master; on a line of its own where the output was wrapped."""
    head = "7: ibp26s0: <BROADCAST,UP> mtu 4092 state UP\n    link/infiniband 00:00:10:29:fe brd 00:ff promiscuity 0\n"
    (link,) = parse_ip_link(head + kind.format("", "parentbus pci parentdev 0000:1a:00.0") + "\n")
    (named,) = parse_ip_link(head + kind.format("portname p0 ", "parentbus pci parentdev 0000:1a:00.0") + "\n")

    assert ("0000:1a:00.0", None) == (link.parent_pci, link.port_name)
    assert ("0000:1a:00.0", "p0") == (named.parent_pci, named.port_name)


_LONG = """\
2: ens1np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000
    link/ether 0c:42:a1:12:34:56 brd ff:ff:ff:ff:ff:ff
    inet 10.0.1.7/24 brd 10.0.1.255 scope global ens1np0
       valid_lft forever preferred_lft forever
    inet6 fe80::e42:a1ff:fe12:3456/64 scope link
       valid_lft forever preferred_lft forever
"""
_BRIEF = """\
lo               UNKNOWN        127.0.0.1/8 ::1/128
ens1np0          UP             10.0.1.7/24 metric 100 fe80::e42:a1ff:fe12:3456/64
"""
_NEW_IFCONFIG = """\
ens1np0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9000
        inet 10.0.1.7  netmask 255.255.255.0  broadcast 10.0.1.255
        inet6 fe80::e42:a1ff:fe12:3456  prefixlen 64  scopeid 0x20<link>
        ether 0c:42:a1:12:34:56  txqueuelen 1000  (Ethernet)
"""
_OLD_IFCONFIG = """\
ens1np0   Link encap:Ethernet  HWaddr 0c:42:a1:12:34:56
          inet addr:10.0.1.7  Bcast:10.0.1.255  Mask:255.255.255.0
          inet6 addr: fe80::e42:a1ff:fe12:3456/64 Scope:Link
          UP BROADCAST RUNNING MULTICAST  MTU:9000  Metric:1
"""


@pytest.mark.parametrize(
    "links",
    [parse_ip_link(_LONG), parse_ip_link(_BRIEF), parse_ifconfig(_NEW_IFCONFIG), parse_ifconfig(_OLD_IFCONFIG)],
    ids=["ip address", "ip -br address", "ifconfig", "ifconfig of net-tools 1"],
)
def test_addresses_of_every_form(links: Sequence[NetlinkLink]) -> None:
    (port,) = (link for link in links if link.name == "ens1np0")

    assert ("10.0.1.7/24", "fe80::e42:a1ff:fe12:3456/64") == port.addresses
    assert "up" == port.operstate


@pytest.mark.parametrize("name", ["lo", "kube-ipvs0", "cni0", "flannel.1", "docker0", "tunl0", "cali1f", "virbr0"])
def test_addresses_of_what_software_makes_are_left_out(name: str) -> None:
    """Some of them have those of another one on purpose."""
    (link,) = parse_ip_link(f"{name:16} UP             10.244.0.1/24\n")

    assert () == link.addresses


def test_an_address_of_the_host_as_a_whole_is_left_out() -> None:
    (link,) = parse_ip_link("ens1np0          UP             10.0.1.7/24 10.96.0.1/32 fd00::1/128\n")

    assert ("10.0.1.7/24",) == link.addresses


def test_the_mtu_that_a_second_command_prints() -> None:
    row = "ens{0}np0          UP             0c:42:a1:12:34:5{0} <BROADCAST,MULTICAST,UP,LOWER_UP> \n"
    links = parse_ip_link(row.format(1) + row.format(2) + "ens1np0: 9000\nens2np0: 1500\nens2np0: 1000\nens9: 9000\n")

    assert [("ens1np0", 9000), ("ens2np0", 1500)] == [(link.name, link.mtu) for link in links]
