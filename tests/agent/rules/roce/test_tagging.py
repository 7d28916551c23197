"""Which tag and which interface the chain takes: VLANs, addresses in use, bonds; and reports that make no sense."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import Gid
from agent.rules.catalogue import every_rule
from tests.agent.rules.build import changed_netdev, changed_port, topology
from tests.agent.rules.nccl.nccl_case import said
from tests.agent.rules.roce.qos import dcb, dcb_everywhere, nccl_sets, of, roce, vlan
from tests.agent.rules.rows import only

RULES = [rule for rule in every_rule() if rule.name.startswith("roce-") and ".roce." in rule.check.__module__]


@pytest.mark.parametrize(
    ("egress", "level", "verdict", "priority"),
    [
        ("0:3", None, "lossless", 3),
        ("0:3,4:3", None, "lossless", 3),
        ("", None, "lossy", 0),
        ("0:2", None, "lossy", 0),
        ("", "3", "lossless", 3),
        ("", "11", "lossless", 3),
        ("", "2", "lossy", 2),
        ("", "1", "lossy", 1),
        ("", "-1", "lossy", 0),
        ("0:0003", None, "lossy", 0),
        ("0:003", None, "lossless", 3),
        (None, None, "unknown", None),
        (None, "3", "lossless", 3),
    ],
)
def test_a_vlan_tag_decides_with_trust_in_pcp(egress, level, verdict: str, priority) -> None:
    """The egress map or NCCL's service level; DSCP means nothing."""
    context = vlan(roce(), egress)
    if level:
        context = nccl_sets(context, NCCL_IB_SL=level)
    result = of(context)

    assert (verdict, priority) == (result.verdict, result.priority)
    assert ("roce-vlan-no-egress-map" if verdict == "lossy" else "") == result.cause


def test_which_addresses_are_in_use() -> None:
    """Routable ones; the one that NCCL is told to take; on the VLAN and beside it it is not known."""
    context = vlan(roce(), "0:3")
    both = context.topology.nics[1].ports[0].gids
    mixed = changed_port(context, 1, gids=[*both, Gid(index=9, gid="2001:db8::1", type="RoCE v2", netdev="eth1")])

    assert "some of its addresses have a VLAN tag" in of(mixed).reason
    assert "lossless" == of(nccl_sets(mixed, NCCL_IB_GID_INDEX="3")).verdict
    assert "roce-trust-pcp-untagged" == of(nccl_sets(mixed, NCCL_IB_GID_INDEX="9")).cause
    assert "roce-trust-pcp-untagged" == of(dcb(roce(), trust="pcp")).cause


@pytest.mark.parametrize(
    "change",
    [
        lambda c: changed_port(c, 1, gids_known=False),
        lambda c: changed_port(c, 1, gids=[]),
        lambda c: changed_port(c, 1, gids=[Gid(index=3, gid="::ffff:10.0.0.1", type="RoCE v2", netdev="gone0")]),
        lambda c: changed_port(c, 1, gids=[Gid(index=3, gid="::ffff:10.0.0.1", type="RoCE v2")]),
    ],
)
def test_addresses_that_are_not_known_say_nothing(change) -> None:
    """With trust in PCP the tag is all that decides."""
    result = of(change(dcb(roce(), trust="pcp")))

    assert ("unknown", "") == (result.verdict, result.cause)


def test_pfc_on_priority_0_is_consistent_with_untagged_packets() -> None:
    """Trust in PCP, no tag, PFC on 0: lossless."""
    assert "lossless" == of(dcb(roce(), trust="pcp", pfc=only(0))).verdict


def test_below_a_bond_the_worst_member_counts() -> None:
    """DCB is the members'; the bond has none."""
    context = roce()
    bond = msgspec.structs.replace(
        context.topology.netdevs[1], id="bond0", label="bond0", qos=None, bond={"mode": "802.3ad"}
    )
    members = [
        msgspec.structs.replace(context.topology.netdevs[n], id=f"m{n}", label=f"m{n}", master="bond0") for n in (0, 1)
    ]
    context = changed_port(topology(context, netdevs=[*context.topology.netdevs, bond, *members]), 1, netdevs=["bond0"])

    assert "lossless" == of(context).verdict
    worse = msgspec.structs.replace(members[1], qos=msgspec.structs.replace(members[1].qos, pfc=only()))
    context = topology(context, netdevs=[*context.topology.netdevs[:-1], worse])
    assert ("lossy", "m1") == (of(context).verdict, of(context).each.netdev.label)


def test_a_vlan_interface_has_the_dcb_of_its_parent() -> None:
    """Where a VLAN is all that is listed for the port."""
    context = roce()
    tagged = msgspec.structs.replace(
        context.topology.netdevs[1], id="v", label="v", vlan={"id": 5, "parent": "eth1"}, qos=None
    )
    context = changed_port(topology(context, netdevs=[*context.topology.netdevs, tagged]), 1, netdevs=["v"])

    assert "lossless" == of(context).verdict


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "said",
    [
        {"dscp_prio": {"26": 99, "x": 1}, "prio_tc": [0] * 8, "tc_tsa": ["ets"] * 8},
        {"dscp_prio": {"26": -9}, "prio_tc": [-1] * 9, "tc_tsa": ["strict"] * 9, "tc_bandwidth": [-1] * 8},
        {"pfc": [True] * 20, "buffers": {"prio_buffer": [-3] * 8, "size_bytes": [0]}},
        {"pfc": [False] * 9 + [True], "max_rate_kbit_s": [-1, 5], "prio_tc": [7]},
        {"pfc": [True], "ecn": {"np": [], "rp": [False]}, "cnp_dscp": -1, "peer_pfc": [True] * 40},
        {"trust": "both", "dcbx": "?", "cable_metres": -5, "max_rate_kbit_s": [1] * 99},
    ],
)
def test_no_rule_breaks_on_a_report_that_makes_no_sense(rule, said) -> None:
    """A report may be anybody's: an answer for every port, whatever its lists hold."""
    assert list(rule.check(dcb_everywhere(roce(), **said)))


@pytest.mark.parametrize("egress", ["", "0:", "x", "0:9" + "9" * 9000, "::,,", "0:3 4:3"])
def test_any_egress_map_can_be_read(egress: str) -> None:
    """What is no map maps nothing."""
    assert of(vlan(roce(), egress)).verdict in ("lossy", "lossless")


def test_a_vlan_whose_parent_is_not_here_is_asked_itself() -> None:
    """Its own DCB, which most have none of."""
    context = roce()
    tagged = msgspec.structs.replace(context.topology.netdevs[1], id="v", label="v", vlan={"id": 5, "parent": "gone"})
    context = changed_port(topology(context, netdevs=[*context.topology.netdevs, tagged]), 1, netdevs=["v"])

    assert "lossless" == of(context).verdict


def test_old_and_link_local_addresses_are_not_in_use() -> None:
    """RoCE v1 beside v2; where nothing can be routed, what there is."""
    context = vlan(roce(), "0:3")
    gids = context.topology.nics[1].ports[0].gids
    old = Gid(index=8, gid="2001:db8::1", type="IB/RoCE v1", netdev="eth1")
    local = [msgspec.structs.replace(gid, netdev="eth1.5") for gid in gids if gid.gid.startswith("fe80")]

    assert "lossless" == of(changed_port(context, 1, gids=[*gids, old])).verdict
    assert "lossless" == of(changed_port(context, 1, gids=local)).verdict


def test_a_pfc_list_that_is_short_says_nothing_of_the_rest() -> None:
    """A map that leads beyond it leads to no lossless priority."""
    context = dcb(vlan(roce(), "0:3"), pfc=[False, True, False])

    assert ("lossy", 0) == (of(context).verdict, of(context).priority)


def test_one_of_two_vlans_unread_is_unknown() -> None:
    """The map of each counts."""
    context = vlan(roce(), "0:3")
    second = msgspec.structs.replace(context.netdevs["eth1.5"], id="eth1.6", label="eth1.6", vlan={"id": 6})
    gids = context.topology.nics[1].ports[0].gids
    more = Gid(index=9, gid="2001:db8::1", type="RoCE v2", netdev="eth1.6")
    context = changed_port(topology(context, netdevs=[*context.topology.netdevs, second]), 1, gids=[*gids, more])

    assert "unknown" == of(context).verdict
    assert "could not be read" in of(context).reason


def test_a_service_level_of_0_asks_for_nothing() -> None:
    """One job leaves it at the default; the file's is still that of all others."""
    context = said(vlan(roce(), ""), system={"NCCL_IB_SL": "3"}, job={"NCCL_IB_SL": "0"})

    assert "lossless" == of(context).verdict


def test_how_a_priority_is_known() -> None:
    """For the evidence of every finding about it."""
    assert "no VLAN tag" == of(dcb(roce(), trust="pcp")).how
    assert "VLAN tag of eth1.5" == of(vlan(roce(), "0:3")).how


def test_a_bridge_with_ports_is_no_bond() -> None:
    """What is set at its members says nothing of RoCE on the bridge itself."""
    context = roce()
    bridge = msgspec.structs.replace(context.topology.netdevs[1], id="br0", label="br0")
    context = dcb(changed_netdev(context, 1, master="br0"), pfc=only())
    context = changed_port(topology(context, netdevs=[*context.topology.netdevs, bridge]), 1, netdevs=["br0"])

    assert ("lossless", "br0") == (of(context).verdict, of(context).each.netdev.label)
