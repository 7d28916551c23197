"""Links in the replies of a kernel, old and newer."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from probes import netlink
from probes import netlink as codec
from probes.dcb import netlink as dcb_netlink
from probes.dcb.facts import Application, Dcb
from probes.dcb.tools import parse_dcb
from probes.ethtool import netlink as genl
from probes.ethtool import saved
from probes.netdev.probe import Netdev
from probes.rdma import netlink as rdma_netlink
from probes.rdma.netlink import NetlinkDevice, parse_dev, parse_devices, parse_system
from probes.rdma.tools import parse_rdma_link
from tests.probes.kernel_replies.real_guest import COPPER, FULL, MIXED, OLD_SFP, VIRTIO, facts, of_port, table, tool
from tests.probes.machine import Machine

# Links, addresses and RDMA devices of a real kernel against what iproute2 said of them.


@pytest.mark.parametrize("name", [row["ifname"] for row in table("linux-6.1-tools")["said"]["ip -d -j link"]])
def test_a_link_is_what_ip_says(name: str) -> None:
    """Ports, VLANs with and without a map, both kinds of bond and their slaves, veth, bridge, dummy, netdevsim."""
    ours: Netdev = of_port("netdev", "netdevs", name)
    result = table("linux-6.1-tools")["said"]
    theirs = next(row for row in result["ip -d -j link"] if row["ifname"] == name)
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
        tags = ",".join(f"{item['from']}:{item['to']}" for item in data.get("egress_qos", []))
        assert {"id": data["id"], "parent": theirs["link"], "egress_map": tags} == ours.vlan
    if ours.kind == "bond":
        assert ours.bond is not None
        assert [data["mode"], str(data["miimon"]), data["xmit_hash_policy"], data.get("active_slave")] == [
            ours.bond.get(key) for key in ("mode", "miimon", "xmit_hash_policy", "active_slave")
        ]
        slaves = [row["ifname"] for row in result["ip -d -j link"] if row.get("master") == name]
        assert slaves == list(ours.bond["slaves"])
    (addresses,) = [row["addr_info"] for row in result["ip -j addr"] if row["ifname"] == name]
    assert {f"{address['local']}/{address['prefixlen']}" for address in addresses} == set(ours.addresses)


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
    ours = {device.name: dict(device.interfaces).get(1) for device in devices}

    assert theirs == ours
    assert {"mlx5_0": FULL, "mlx5_7": None, "rxea": "va"}.items() <= ours.items()
    assert {"mlx5_7": "ib"} == {device.name: device.protocol for device in devices if device.protocol != "roce"}
    assert parse_system(tool("rdma system") or "") == facts("rdma_netlink").namespaces == "shared"


def test_rdma_link_in_words() -> None:
    """The reader of `rdma link` against the same kernel."""
    parsed = {device.name: device.ports[0] for device in parse_rdma_link(tool("rdma -d link") or "").devices}
    assert (17, 1) == (parsed["mlx5_7"].lid, parsed["mlx5_7"].sm_lid)
    assert set(parsed) == {device.name for device in facts("rdma_netlink").devices}


# What a newer kernel says besides: trust tables, PCP entries, exclusive RDMA namespaces. See docs/real-kernel.md.


KERNEL: dict[str, Any] = json.loads((Path(__file__).parent / "linux-6.12.json").read_text())
FULL_NEWER, MIXED_NEWER, CEE = "ens1np0", "ens2np0", "ens3np0"
SAID: dict[str, Any] = KERNEL["said"]


def reply(about: str, protocol: int, request: bytes) -> bytes:
    """What the kernel answered to this very question: codecs ask as they asked then."""
    (row,) = [
        row
        for row in KERNEL["netlink"]
        if (row["about"], row["protocol"]) == (about, protocol)
        and netlink.messages(base64.b64decode(row["request"])) == netlink.messages(request)
    ]
    return base64.b64decode(row["reply"])


def dcb(port: str) -> Dcb:
    answer = reply(port, netlink.ROUTE, dcb_netlink.question(port, dcb_netlink.IEEE_GET))
    (message,) = netlink.messages(answer)
    return dcb_netlink.parse_ieee(message.payload)


@pytest.mark.parametrize("port", [FULL_NEWER, MIXED_NEWER])
@pytest.mark.parametrize("about", ["pfc", "ets", "app", "buffer", "dcbx", "apptrust"])
def test_dcb_is_what_the_tool_says(port: str, about: str) -> None:
    """Value by value."""
    text = SAID[f"dcb -s -j pfc show dev {port}" if about == "pfc" else f"dcb -j {about} show dev {port}"]
    theirs, ours = parse_dcb(about, text)._asdict(), dcb(port)._asdict()
    result = {name: value for name, value in theirs.items() if value is not None and name != "source"}

    assert result
    assert result == {name: ours[name] for name in result}


def test_trust_and_entries_as_they_were_set() -> None:
    """`dcb apptrust set order dscp pcp`, `dcb app add pcp-prio 3nd:3 5de:5`: PCP 5 with DEI is 13 to the kernel."""
    assert (("dscp", "pcp"), ("pcp",)) == (dcb(FULL_NEWER).trust_order, dcb(MIXED_NEWER).trust_order)
    tags = {Application("pcp", 3, 3), Application("pcp", 13, 5)}
    assert tags < set(dcb(MIXED_NEWER).applications or ())
    assert tags < set(parse_dcb("app", SAID[f"dcb app show dev {MIXED_NEWER}"]).applications or ())  # as text, too


def test_a_driver_without_a_trust_table_has_none() -> None:
    """With CEE alone."""
    assert "Attribute not found: Success" == SAID[f"dcb apptrust show dev {CEE}"]["stderr"]
    assert dcb(CEE).trust_order is None


@pytest.mark.parametrize("port", [FULL_NEWER, MIXED_NEWER])
def test_ethtool_is_what_the_tool_says(port: str) -> None:
    index = {FULL_NEWER: 4, MIXED_NEWER: 5}[port]
    family = 22  # as the guest's kernel numbered it

    def asked(command: int) -> bytes:
        return reply(port, codec.GENERIC, genl.get_request(family, command, index))

    assert saved.parse_pause(SAID[f"ethtool -a {port}"]) == genl.parse_pause(asked(genl.PAUSE_GET))
    assert saved.parse_fec(SAID[f"ethtool -I --show-fec {port}"]) == genl.parse_fec(asked(genl.FEC_GET))
    modes = saved.parse_settings(SAID[f"ethtool {port}"])
    assert modes is not None
    assert modes._replace(speed_mbit_s=None, has_link=None) == genl.parse_link_modes(asked(genl.LINKMODES_GET))


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
def test_rdma_namespaces(mode: str) -> None:
    """`rdma system set netns exclusive`; the kernel says more settings in the same answer."""
    here = Machine(live=True)
    here.answers = {
        rdma_netlink.question(rdma_netlink.GET): b"",
        rdma_netlink.question(rdma_netlink.SYSTEM_GET): reply(
            mode, rdma_netlink.RDMA, rdma_netlink.question(rdma_netlink.SYSTEM_GET)
        ),
    }
    assert mode == rdma_netlink.read(here).facts.namespaces
    assert "shared" == parse_system(SAID["rdma system"])


def test_rdma_devices_are_what_the_tool_says() -> None:
    """Protocols too: this version prints them."""
    answer = reply("devices", rdma_netlink.RDMA, rdma_netlink.question(rdma_netlink.GET))
    result = parse_devices([message.payload for message in netlink.messages(answer)])

    assert 10 == len(result)
    assert parse_dev(SAID["rdma dev"]) == tuple(device for _, device in result)
