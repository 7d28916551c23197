"""Links, addresses and counters out of rtnetlink's payloads."""

from __future__ import annotations

import struct

import pytest

from fixtures.netlink import build_address, build_link, build_link_info, build_statistics, encode_text, encode_u32
from probes.netdev import rtnetlink
from probes.netdev.rtnetlink import NetlinkLink, parse_address, parse_links, parse_statistics
from probes.netlink import attribute, messages


def links(*replies: bytes) -> dict[str, NetlinkLink]:
    """The links of a reply, by name."""
    return {one.name: one for one in parse_links(message.payload for message in messages(b"".join(replies)))}


def test_physical_port():
    """Everything that a port says of itself, and its PCI function as the kernel names it."""
    parent = attribute(rtnetlink.PARENT, encode_text("0000:1a:00.0")) + attribute(
        rtnetlink.PARENT_BUS, encode_text("pci")
    )
    port = attribute(rtnetlink.PORT_NAME, encode_text("p0"))

    assert (
        NetlinkLink(
            name="ens1f0np0",
            index=4,
            type=1,
            flags=0x1003,
            mac="b8:3f:d2:00:00:01",
            mtu=9000,
            operstate="up",
            carrier=True,
            carrier_changes=5,
            carrier_up_count=3,
            carrier_down_count=2,
            port_name="p0",
            parent_pci="0000:1a:00.0",
        )
        == links(build_link(4, "ens1f0np0", mac="b8:3f:d2:00:00:01", more=parent + port))["ens1f0np0"]
    )


def test_carrier_of_an_interface_that_is_off_is_not_known():
    """The kernel keeps an old carrier for an interface that nobody switched on."""
    assert links(build_link(4, "ens1", flags=0x1002, operstate=2, carrier=1))["ens1"].carrier is None


def test_bond_and_its_slaves():
    """Mode, hash and monitoring by the words that people know; masters by name."""
    bond = build_link_info(
        "bond",
        attribute(rtnetlink.BOND_MODE, bytes([4])),
        attribute(rtnetlink.BOND_HASH, bytes([1])),
        attribute(rtnetlink.BOND_MIIMON, encode_u32(100)),
    )
    result = links(
        build_link(4, "ens1f0np0", more=attribute(rtnetlink.MASTER, encode_u32(9))),
        build_link(9, "bond0", more=bond),
    )

    assert {"mode": "802.3ad", "miimon": "100", "xmit_hash_policy": "layer3+4"} == result["bond0"].bond
    assert "bond0" == result["ens1f0np0"].master


def test_vlan_and_its_lower_interface():
    """A VLAN names what it stands on, unless that lies in another namespace."""
    vlan = build_link_info("vlan", attribute(rtnetlink.VLAN_ID, struct.pack("=H", 100))) + attribute(
        rtnetlink.LOWER, encode_u32(4)
    )
    elsewhere = vlan + attribute(rtnetlink.LOWER_NAMESPACE, encode_u32(0))
    result = links(
        build_link(4, "ens1"), build_link(7, "ens1.100", more=vlan), build_link(8, "far.100", more=elsewhere)
    )

    assert (100, "ens1") == (result["ens1.100"].vlan_id, result["ens1.100"].lower)
    assert (100, None) == (result["far.100"].vlan_id, result["far.100"].lower)


def test_newer_words_stay_numbers():
    """A bond mode that this code has no word for is not called by another's."""
    bond = build_link_info("bond", attribute(rtnetlink.BOND_MODE, bytes([77])))

    assert {"mode": "77"} == links(build_link(9, "bond0", more=bond))["bond0"].bond


def test_local_address_not_the_peers():
    """On a point-to-point link IFA_ADDRESS is the other end."""
    (message,) = messages(build_address(4, "10.0.0.1", 31, peer="10.0.0.0"))
    read = parse_address(message.payload)

    assert read is not None
    assert (4, "10.0.0.1/31") == (read[0], read[3])


def test_counters_of_an_older_kernel():
    """A shorter block has fewer counters, each by its own name."""
    (message,) = messages(build_statistics(4, range(1, 25)))
    read = parse_statistics(message.payload)

    assert (1, 24) == (read["rx_packets"], read["rx_nohandler"])
    assert "rx_otherhost_dropped" not in read


@pytest.mark.parametrize(
    ("pairs", "told"),
    [([], ""), ([(0, 3)], "0:3"), ([(4, 3), (0, 3)], "0:3,4:3")],
)
def test_what_a_vlan_makes_of_priorities(pairs: list[tuple[int, int]], told: str) -> None:
    """IFLA_VLAN_EGRESS_QOS: one IFLA_VLAN_QOS_MAPPING each; without any, the kernel leaves the attribute out."""
    mappings = b"".join(attribute(1, struct.pack("=II", *pair)) for pair in pairs)
    data = [attribute(rtnetlink.VLAN_ID, struct.pack("=H", 7)), *([attribute(3 | 0x8000, mappings)] if pairs else [])]
    (message,) = messages(build_link(9, "ens1.7", more=build_link_info("vlan", *data)))
    (result,) = parse_links([message.payload])
    assert (result.vlan_id, result.vlan_egress) == (7, told)


def test_other_interfaces_have_no_such_map() -> None:
    (message,) = messages(build_link(9, "ens1"))
    assert parse_links([message.payload])[0].vlan_egress is None
