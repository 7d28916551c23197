"""What explains what: a cause covers devices, and nothing graver is lost in it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from agent.model.finding import SEVERITIES
from agent.model.reasons import Reason
from agent.rules.consequences import RootFinding, find_standing
from agent.rules.node_wide import merge_failures
from agent.rules.rule import Fail, Rule


def fault(subject: str, *ids: str, **more: object) -> Fail:
    """A fault about these places, or about its subject."""
    ids = frozenset(ids or (subject,))
    return Fail(subject=subject, label=subject, summary=subject, impact="i", ids=ids, **more)  # type: ignore[arg-type]


def rule(name: str, *absorbs: str, severity: str = "error") -> Rule:
    """A rule that explains others."""
    return Rule(name, severity, "", (), (), absorbs, check=lambda context: iter(()))


def stand(*failures: tuple[Rule, Fail]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Rule, subject, severity and consequences of what stands."""
    rows: Sequence[RootFinding] = find_standing(failures)
    return [(row.rule.name, row.fault.subject, row.severity, row.absorbs) for row in rows]


CAUSE = rule("cause", "effect", severity="warning")
EFFECT = rule("effect")


def of_all(count: int, severity: str | None = None) -> Fail:
    """One finding for the node, of a fault on each of its ports."""
    one = merge_failures([fault(f"port{n}") for n in range(count)], "every port")
    return replace(one, severity=severity)


def test_a_cause_on_one_of_many_leaves_the_finding_of_all_as_it_is() -> None:
    """16 rails are dark, and one NIC has too little power: both are told, and the node stays critical."""
    rows = stand((CAUSE, fault("port3")), (EFFECT, of_all(16, "critical")))

    assert [("cause", "port3", "warning", ()), ("effect", "node", "critical", ())] == rows


def test_a_cause_on_most_leaves_the_others_by_themselves_and_takes_the_severity() -> None:
    """No subnet manager on 7 rails, and the cable of the 8th is out."""
    seven = merge_failures([fault(f"port{n}") for n in range(7)], "seven ports")
    rows = stand((CAUSE, seven), (EFFECT, of_all(8, "critical")))
    explained = tuple(f"effect port{n}" for n in range(7))

    assert [("cause", "node", "critical", explained), ("effect", "port7", "error", ())] == rows


def test_a_cause_on_all_takes_the_whole_finding() -> None:
    """By its own subject."""
    whole = merge_failures([fault(f"port{n}") for n in range(8)], "eight ports")

    assert [("cause", "node", "critical", ("effect node",))] == stand((CAUSE, whole), (EFFECT, of_all(8, "critical")))


def test_two_causes_together_explain_all_of_a_finding() -> None:
    """Each is as severe as what they explain."""
    first = merge_failures([fault(f"port{n}") for n in range(4)], "four ports")
    second = merge_failures([fault(f"port{n}") for n in range(4, 8)], "the others")
    rows = stand((CAUSE, first), (CAUSE, second), (EFFECT, of_all(8, "critical")))

    assert [("critical", ("effect node",))] * 2 == [(severity, absorbs) for _, _, severity, absorbs in rows]


@pytest.mark.parametrize(
    ("cause", "effect", "stands"), [("info", "warning", 2), ("info", "info", 1), ("warning", "error", 1)]
)
def test_an_info_explains_nothing_above_info(cause: str, effect: str, stands: int) -> None:
    """Any other cause takes the severity."""
    rows = stand((rule("cause", "effect", severity=cause), fault("a")), (rule("effect", severity=effect), fault("a")))

    assert stands == len(rows)
    assert effect in [severity for _, _, severity, _ in rows]


def test_a_device_covers_its_links_and_a_link_covers_itself() -> None:
    """A GPU that is gone explains its links; one inactive link explains neither the GPU nor another link."""
    other_link = (EFFECT, fault("link7", "gpu1/7"))
    gpu = (EFFECT, fault("gpu1"))

    assert 1 == len(stand((CAUSE, fault("gpu1")), other_link))
    assert 2 == len(stand((CAUSE, fault("link3", "gpu1/3")), other_link))
    assert 2 == len(stand((CAUSE, fault("link3", "gpu1/3")), gpu))
    assert 1 == len(stand((CAUSE, fault("link3", "gpu1/7")), other_link))
    assert 2 == len(stand((CAUSE, fault("gpu1", "gpu1", "gpu1/3", explains_parts=False)), other_link))


def test_what_a_cause_covers_may_be_more_than_it_is_about() -> None:
    """An Xid is about the GPU's log, and explains what is wrong with the GPU."""
    assert 1 == len(
        stand((CAUSE, fault("gpu1", "gpu1/xid", explains_ids=frozenset({"gpu1"}))), (EFFECT, fault("gpu1")))
    )
    assert 2 == len(stand((CAUSE, fault("gpu1", "gpu1/xid")), (EFFECT, fault("gpu1"))))


def test_a_chain_ends_at_the_cause_that_stands() -> None:
    """Root, consequence, and its consequence."""
    middle, last = rule("middle", "last"), rule("last", severity="critical")
    rows = stand((rule("root", "middle"), fault("a")), (middle, fault("a")), (last, fault("a")))

    assert [("root", "a", "critical", ("last a", "middle a"))] == rows


@pytest.mark.parametrize(("first", "second", "stands"), [("warning", "error", "second"), ("error", "error", "first")])
def test_of_two_that_explain_each_other_the_graver_stands(first: str, second: str, stands: str) -> None:
    """Of equal ones the first."""
    rows = stand(
        (rule("first", "second", severity=first), fault("a")), (rule("second", "first", severity=second), fault("a"))
    )

    assert [stands] == [row[0] for row in rows]
    assert 1 == len(rows[0][3])


def test_of_equal_ones_the_one_that_assumes_no_context_stands() -> None:
    assumed = fault("a", depends_on=Reason("role-not-known", why="no PCI list"))
    rows = stand((rule("first", "second"), assumed), (rule("second", "first"), fault("a")))

    assert [("second", "a", "error", ("first a",))] == rows


def test_a_place_of_the_whole_is_one_of_each_part() -> None:
    """The fabric as a whole is what every GPU's lost links share."""
    whole = of_all(8)
    whole = replace(whole, ids=whole.ids | {"fabric"})

    assert [("cause", "fabric", "error", ("effect node",))] == stand((CAUSE, fault("fabric")), (EFFECT, whole))


def test_half_of_a_finding_stands_whole() -> None:
    """Less than half stands part by part."""
    four = merge_failures([fault(f"port{n}") for n in range(4)], "four ports")
    five = merge_failures([fault(f"port{n}") for n in range(5)], "five ports")

    assert ["node"] == [row[1] for row in stand((CAUSE, four), (EFFECT, of_all(8))) if row[0] == "effect"]
    assert ["port5", "port6", "port7"] == [
        row[1] for row in stand((CAUSE, five), (EFFECT, of_all(8))) if row[0] == "effect"
    ]


def test_a_rule_that_names_itself_explains_nothing_by_that() -> None:
    """Each of its findings stands."""
    itself = rule("itself", "itself")

    assert ["a", "b"] == [row[1] for row in stand((itself, fault("a")), (itself, fault("b")))]


def test_a_place_without_a_name_explains_no_device() -> None:
    """A device that is a part of nothing is not a part of that."""
    assert 2 == len(stand((CAUSE, fault("node", "")), (EFFECT, fault("gpu1"))))


def test_two_that_explain_each_other_do_not_lift_a_third() -> None:
    """The graver explains the third, which explains the weaker: no circle, once the weaker is below the graver."""
    weak, strong, third = rule("weak", "strong"), rule("strong", "weak", "third"), rule("third", "weak")
    rows = stand(
        (weak, fault("a", severity="warning")),
        (strong, fault("a", severity="error")),
        (third, fault("a", severity="critical")),
    )

    assert [("strong", "a", "critical", ("third a", "weak a"))] == rows


@pytest.mark.parametrize("severities", list(itertools.product(("warning", "error"), repeat=3)))
def test_of_a_circle_one_stands(severities: tuple[str, str, str]) -> None:
    """Three that explain each other in turn: the gravest, and of alike ones the first, with the others below it."""
    circle = [rule(name, of) for name, of in (("a", "b"), ("b", "c"), ("c", "a"))]
    rows = stand(*((one, fault("port0", severity=severity)) for one, severity in zip(circle, severities, strict=True)))

    assert rows
    assert max(severities, key=SEVERITIES.index) == max((row[2] for row in rows), key=SEVERITIES.index)
    assert 3 == sum(1 + len(row[3]) for row in rows)


JUDGE = Rule("judge", "error", "", (), fields=("netdev.mtu",), check=lambda context: iter(()))
PEERS = rule("peers", severity="warning")


def odd(field: str = "netdev.mtu", *peers: str, severity: str | None = None) -> Fail:
    """A part that differs from its peers."""
    return fault("port3", field=field, peers=frozenset(peers or ("port0", "port1", "port2")), severity=severity)


def test_a_rule_and_a_comparison_of_one_field_are_one_fault() -> None:
    """On one part, in any order; the more severe one stands, of equal ones the first."""
    explained = [("judge", "port3", "error", ("peers port3",))]

    assert explained == stand((JUDGE, fault("port3")), (PEERS, odd()))
    assert explained == stand((PEERS, odd()), (JUDGE, fault("port3")))
    assert [("peers", "port3", "warning", ("judge port3",))] == stand(
        (JUDGE, fault("port3", severity="info")), (PEERS, odd())
    )


def test_another_field_or_part_is_another_fault() -> None:
    """Nor does a rule explain comparisons of fields that it does not judge."""
    assert 2 == len(stand((JUDGE, fault("port3")), (PEERS, odd("netdev.qos.trust"))))
    assert 2 == len(stand((JUDGE, fault("port2")), (PEERS, odd())))
    assert 2 == len(stand((CAUSE, fault("port3")), (PEERS, odd())))


def test_what_most_peers_have_too_does_not_explain_the_difference() -> None:
    """The MTU is small on all four ports, and one of them has another one still."""
    small = merge_failures([fault(f"port{n}") for n in range(4)], "every port")
    of_half = [(JUDGE, fault(f"port{n}")) for n in (0, 3)]

    assert [("judge", "node", "error", ()), ("peers", "port3", "warning", ())] == stand((JUDGE, small), (PEERS, odd()))
    assert ["judge", "judge"] == [name for name, *_ in stand(*of_half, (PEERS, odd("netdev.mtu", "port0", "port1")))]
    assert 5 == len(stand(*((JUDGE, fault(f"port{n}", severity="info")) for n in range(4)), (PEERS, odd())))


def test_what_one_has_beyond_a_fault_of_all_stands_where_that_is_explained() -> None:
    """A switch took five links of each GPU, and one GPU has lost a sixth."""
    more = fault("gpu3", "gpu3/7")
    whole = replace(of_all(8), ids=frozenset({"count of switches"}), parts=(), residue=(more,))
    switch = fault("switch", "count of switches")

    assert [("effect", "node", "error", ())] == stand((EFFECT, whole))
    both = [("cause", "switch", "error", ("effect node",)), ("effect", "gpu3", "error", ())]
    assert both == stand((CAUSE, switch), (EFFECT, whole))
    gone = fault("gpu3", "gpu3/7")
    assert both[0] == stand((CAUSE, switch), (CAUSE, gone), (EFFECT, whole))[0]
    assert 2 == len(stand((CAUSE, switch), (CAUSE, gone), (EFFECT, whole)))
    covered = replace(switch, explains_ids=frozenset({"count of switches", "gpu3/7"}))
    assert 1 == len(stand((CAUSE, covered), (EFFECT, whole)))
    other = rule("other", severity="warning")
    assert 3 == len(stand((CAUSE, switch), (other, gone), (EFFECT, whole)))
