"""Links, addresses and RDMA devices of a real kernel against what iproute2 said of them."""

from __future__ import annotations

import json

import pytest

from probes.netdev.probe import Netdev
from probes.rdma.netlink import NetlinkDevice, parse_system
from probes.rdma.tools import parse_rdma_link
from tests.probes.kernel_replies.real_guest import COPPER, FULL, MIXED, OLD_SFP, VIRTIO, facts, of_port, table, tool


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
