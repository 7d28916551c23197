"""Which parts are the odd ones out, which orders are a choice, and which counts are of a part."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.gpu import NvSwitch
from agent.model.nic import Netdev
from agent.model.pci import PciFunction
from agent.rules.context import RuleContext
from agent.rules.peers.outliers import counter_outlier
from agent.rules.peers.parts import PeerPart
from agent.rules.peers.voting import Vote, is_irregular, vote
from tests.agent.rules.build import changed_netdev, changed_port, fails, server, topology
from tests.agent.rules.peers.mutating import context_of
from tests.machines import scan_machine

OFTEN = {"carrier_down_count": 500}


def parts(count: int, positions: str = "", products: str = "", sockets: str = "") -> list[PeerPart]:
    """Parts in the order of the bus, with an attribute each."""
    return [
        PeerPart(
            "netdev", f"netdev:{n}", f"eth{n}", None, frozenset(), str(n), "rail",
            products[n] if products else "A", (positions[n],) if positions else (),
            int(sockets[n]) if sockets else None, f"{n:02}",
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "odd", "pattern", "halves"),
    [
        ("aaabaaaa", (3,), "", False),
        ("aabaabba", (2, 5, 6), "", False),  # 3:5
        ("aabbccd", (6,), "", False),  # 2:2:2:1
        ("aab", (2,), "", False),
        ("ab", (1,), "", True),
        ("aaaabbbb", (4, 5, 6, 7), "order on the bus", True),
        ("abababab", (1, 3, 5, 7), "order on the bus", True),
        ("abba", (1, 2), "", True),
        ("aaabaaab", (3, 7), "order on the bus", False),  # each fourth one
        ("abaa", (1,), "", False),
        ("aabb", (2, 3), "order on the bus", True),
        ("abaabaab", (1, 4, 7), "", False),  # nothing repeats to the end
        ("aaaabbcc", (4, 5, 6, 7), "order on the bus", True),
        ("aabbccdd", (2, 3, 4, 5, 6, 7), "order on the bus", True),  # two rails at each switch
        ("aabbcddc", (2, 3, 4, 5, 6, 7), "", True),
    ],
)
def test_a_minority_is_odd_and_halves_are_halves(values: str, odd: tuple[int, ...], pattern: str, halves: bool) -> None:
    """One in eight, three in eight, one of seven in pairs; what repeats or lies together is a choice."""
    verdict = vote(values, parts(len(values)))

    assert verdict is not None
    assert (odd, pattern, halves) == (verdict.odd, verdict.pattern, verdict.halves)
    assert set(range(len(values))) - set(odd) == set(verdict.usual) or halves or "c" in values


@pytest.mark.parametrize("values", ["abc", "abcdefgh", "aabcdefg"])
def test_each_its_own_is_no_difference(values: str) -> None:
    """An address, a VLAN of each rail: no value is the usual one."""
    assert None is vote(values, parts(len(values)))


@pytest.mark.parametrize(
    ("values", "attributes", "pattern"),
    [
        ("aaaabb", {"positions": "111122"}, "position on the card"),
        ("abaabb", {"products": "ABAABB"}, "board"),
        ("aabaaab", {"sockets": "0010001"}, "socket"),
        ("aaabaaa", {"positions": "1112111"}, ""),  # a position of its own is no order
        ("aabaaab", {"sockets": "0011001"}, ""),
        ("aabaaab", {"sockets": "0000000"}, ""),
    ],
)
def test_values_that_follow_an_attribute_are_a_choice(values: str, attributes: dict[str, str], pattern: str) -> None:
    """Each of at least two parts."""
    verdict = vote(values, parts(len(values), **attributes))

    assert verdict is not None
    assert pattern == verdict.pattern


def test_of_halves_the_first_value_is_the_usual_one() -> None:
    """It is what the others are compared with."""
    verdict = vote("abba", parts(4))

    assert verdict is not None
    assert ((0, 3), (1, 2)) == (verdict.usual, verdict.odd)


def test_halves_are_irregular_in_groups_where_an_order_could_be_seen() -> None:
    assert is_irregular(Vote((1, 2), (0, 3), "", True))
    assert not is_irregular(Vote((1,), (0,), "", True))
    assert not is_irregular(Vote((1, 2), (0, 3), "board", True))
    assert not is_irregular(Vote((1,), (0, 2, 3), "", False))
    assert not is_irregular(Vote((1, 2), (0, 3, 4), "", False))


def with_vlans(context: RuleContext, listed: bool, **counts: dict[str, int]) -> RuleContext:
    """A VLAN above each of four rails, with its counters by the name of the interface below."""
    for n in range(4):
        below = context.topology.netdevs[n]
        context = changed_netdev(context, n, counters={"carrier_down_count": 0, **counts.get(below.label, {})})
        name = f"{below.label}.5"
        above = Netdev(
            id=name, label=name, vlan={"id": 5, "parent": below.label}, nic=below.nic, operstate="up",
            counters={"carrier_down_count": 0, **counts.get(f"vlan{n}", {})},
        )  # fmt: skip
        context = topology(context, netdevs=[*context.topology.netdevs, above])
        if listed:
            context = changed_port(context, n, netdevs=[below.label, name])
    return context


def test_a_count_of_an_interface_is_no_less_for_the_vlan_above_it() -> None:
    """RDMA lists both as interfaces of the port."""
    (fault,) = fails(counter_outlier, with_vlans(server(ethernet=True), True, eth1=OFTEN))

    assert ("mlx5_1/1", "500") == (fault.label, fault.evidence[0].value.partition(";")[0])


def test_counts_of_vlans_are_those_of_the_interface_below() -> None:
    """None by itself is a finding, listed or not."""
    for listed in (True, False):
        assert [] == fails(counter_outlier, with_vlans(server(ethernet=True), listed, vlan1=OFTEN))


def test_only_large_counts_are_named() -> None:
    """Where fewer times those of peers are enough, the least count still is."""
    context = with_vlans(server(ethernet=True), True, eth1={**OFTEN, "rx_crc_errors_phy": 99, "rx_symbol_err_phy": 100})
    for n in (0, 2, 3):
        context = changed_netdev(
            context, n, counters={"carrier_down_count": 0, "rx_crc_errors_phy": 0, "rx_symbol_err_phy": 0}
        )
    context = replace(context, settings=replace(context.settings, thresholds={"counter-outlier.times": 2}))
    (fault,) = fails(counter_outlier, context)

    assert ["500", "100"] == [row.value.partition(";")[0] for row in fault.evidence]


@pytest.mark.parametrize("odd", [0, 2])
def test_an_nvswitch_is_compared_with_the_others(odd: int) -> None:
    """By what the ports above have counted: both ends are one link."""
    context, rows = server(), []
    for n in range(4):
        kinds = {"vendor": "0x10de", "device": "0x22a3", "class_code": "0x068000"}
        counts = {"correctable": {"TOTAL_ERR_COR": 300 if n == odd else 1}}
        rows.append(PciFunction(id=f"0000:e{n}:00.0", parent=f"0000:d{n}:00.0", **kinds))
        rows.append(PciFunction(id=f"0000:d{n}:00.0", vendor="0x10b5", device="0x8725", aer=counts))
    switches = [NvSwitch(id=f"0000:e{n}:00.0", pci=f"0000:e{n}:00.0") for n in range(4)]
    context = topology(context, pci=[*context.topology.pci, *rows], nvswitches=switches)
    (fault,) = fails(counter_outlier, context)

    assert (f"pci:0000:e{odd}:00.0", "300; peers 1 in the middle") == (fault.subject, fault.evidence[0].value)


def test_what_the_port_above_a_card_counted_is_of_its_first_function() -> None:
    """And a switch whose function is not known has no count."""
    context = context_of(scan_machine("8xh200-sxm-2s-16xcx7-roce-4nvsw"))
    above = context.functions["0000:10:00.1"].parent
    errors = {"correctable": {"TOTAL_ERR_COR": 5000}}
    changed = topology(
        context,
        pci=[
            replace(function, aer=errors if function.id == above else {"correctable": {"TOTAL_ERR_COR": 0}})
            for function in context.topology.pci
        ],
        nvswitches=[replace(one, pci="0000:ff:00.0") for one in context.topology.nvswitches],
    )
    assert ["pci:0000:10:00.0"] == [fault.subject for fault in fails(counter_outlier, changed)]
