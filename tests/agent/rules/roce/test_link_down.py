"""roce-link-down: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import Lane, TransceiverModule
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.links import roce_link_down as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_nics,
    changed_port,
    changed_ports,
    fails,
    function,
    kinds,
    node,
    probe,
    server,
    topology,
)
from tests.agent.rules.roce.qos import NIC, PORT, ROLES, UNSEEN

DARK = {"state": "DOWN", "phys_state": "Disabled", "rate_gbit_s": None}


def down(gpus: int = 4, **interface):
    result = {"operstate": "down", "speed_gbit_s": None, **interface}
    return changed_netdev(changed_port(server(gpus, ethernet=True), 1, **DARK), 1, **result)


def never_used(context):
    """No module in any cage, and no address."""
    return topology(
        context, netdevs=[msgspec.structs.replace(n, module=None, addresses=[]) for n in context.topology.netdevs]
    )


def twins(context, **changes):
    """A second function on every card, down unless told otherwise."""
    nics, functions = [], []
    for nic in context.topology.nics:
        place = f"{nic.pci[:-1]}1"
        ports = [msgspec.structs.replace(port, **({**DARK, "netdevs": []} | changes)) for port in nic.ports]
        nics.append(msgspec.structs.replace(nic, id=place, pci=place, label=f"{nic.label}b", ports=ports))
        functions.append(msgspec.structs.replace(context.functions[nic.pci], id=place))
    return topology(context, nics=[*context.topology.nics, *nics], pci=[*context.topology.pci, *functions])


def test_a_dark_rail_among_bright_ones_is_an_error() -> None:
    """States of port and interface, and the module, are the evidence; the share of the rails is the cost."""
    (fault,) = fails(rule, down())

    assert (PORT, "mlx5_1/1 (eth1)", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "DOWN: eth1 has no carrier" == fault.summary
    assert "1 of 4 rails: this node injects 25% less" in fault.impact
    assert ["DOWN", "down", "up", "OSFP NVIDIA MMA4Z00-NS400 MT0001 ready"] == [row.value for row in fault.evidence]
    assert "/sys/class/infiniband/mlx5_1/ports/1/state" == fault.evidence[0].source
    assert {NIC, f"{NIC}/1"} <= fault.ids


def module(*dark: int) -> TransceiverModule:
    return TransceiverModule(lanes=[Lane(lane=n, flags=["rx_los"] if n in dark else []) for n in (1, 2)])


@pytest.mark.parametrize(
    ("interface", "cause", "words"),
    [
        ({"admin_up": False}, "set down", "eth1 is set down"),
        ({"admin_up": False, "module": module(1, 2)}, "set down", "eth1 is set down"),
        (
            {"module": None, "module_reason": "EIO: no module answers", "module_reason_code": "no-module"},
            "no module",
            "no module answers in the cage",
        ),
        ({"module": module(1, 2)}, "no light", "no light comes in on any lane"),
        ({"module": module(2)}, "no light", "no light comes in on lane 2 of"),
        ({"module": module(), "admin_up": None}, "", "has no carrier"),
        ({"module": None, "module_reason": "EPERM: needs CAP_NET_ADMIN"}, "", "has no carrier"),
        ({"module": None}, "", "has no carrier"),
    ],
)
def test_the_reason_is_told(interface, cause: str, words: str) -> None:
    """What an administrator did comes before what the module says."""
    (fault,) = fails(rule, down(**interface))

    assert cause == fault.cause
    assert words in fault.summary


def test_storage_is_less_grave_and_costs_what_it_carries() -> None:
    """One step below a rail, with a sibling of its board."""
    context = changed_nic(changed_nic(down(), 1, role="storage"), 0, role="storage")
    (fault,) = fails(rule, context)

    assert "warning" == fault.severity
    assert fault.impact.startswith("This port carries nothing")


def test_all_rails_dark_are_one_critical_finding() -> None:
    """The fabric, or nobody cabled this node."""
    (fault,) = fails(rule, changed_ports(server(ethernet=True), **DARK))

    assert ("node", "critical", "all-rails", "medium") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert 4 <= len(fault.evidence)


def test_one_finding_for_a_node_with_a_dark_rail() -> None:
    """No other rule says the same."""
    _, findings, _ = judge(down(8), every_rule())

    assert ["roce-link-down"] == [f.rule for f in findings if f.severity != "info"]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES[:5],
        *ROLES[6:],
        *UNSEEN,
        pytest.param(lambda c: function(c, NIC, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: node(c, uptime_seconds=239.0), Unknown, id="just booted"),
        pytest.param(lambda c: changed_port(c, 1, state="ACTIVE"), Pass, id="active"),
        pytest.param(lambda c: never_used(changed_nic(c, 1, role="storage")), Unknown, id="storage without a sibling"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    context = circumstance(down())
    (answer,) = answers(rule, context, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, context)


def test_a_single_dark_rail_is_unknown() -> None:
    """Not cabled, or the fabric is down: one port cannot tell."""
    assert {Unknown} == kinds(rule, changed_ports(never_used(server(1, ethernet=True)), **DARK))


def test_a_cable_that_shows_needs_no_sibling() -> None:
    """Drivers that tell a physical state beside the port's."""
    context = changed_port(server(1, ethernet=True), 0, state="DOWN", phys_state="LinkUp")

    assert ["error"] == [fault.severity for fault in fails(rule, context)]


def test_second_ports_that_nobody_cabled_are_not_applicable() -> None:
    """All second ports are dark while the first ones shine; and which port of a card is cabled is a choice."""
    context = twins(server(ethernet=True))
    lit = twins(server(ethernet=True), state="ACTIVE", phys_state="LinkUp")
    one = topology(context, nics=[*context.topology.nics[:4], lit.topology.nics[4], *context.topology.nics[5:]])

    assert {Pass, NotApplicable} == kinds(rule, context)
    assert [] == fails(rule, one)


def test_a_dark_port_is_unknown_where_nothing_says_which_nics_are_rails() -> None:
    """GPUs are here, and no NIC could be told to be theirs; without GPUs nobody expects anything of it."""
    context = changed_nics(down(), role="unknown", role_evidence=["several models are as near"])
    (answer,) = answers(rule, context, PORT)
    (lit,) = answers(rule, changed_port(context, 1, state="ACTIVE"), PORT)

    assert Unknown(PORT, "DOWN; which NICs are rails is not known: several models are as near") == answer
    assert isinstance(lit, NotApplicable)
    assert {NotApplicable} == kinds(rule, topology(context, gpus=[]))
    assert {NotApplicable} == kinds(rule, changed_ports(context, link_layer="unspecified"))


def test_one_known_rail_is_enough() -> None:
    """A NIC of unknown use beside rails is not expected."""
    assert [NotApplicable(PORT, "role unknown: nothing is expected of it")] == answers(
        rule, changed_nic(down(), 1, role="unknown"), PORT
    )


@pytest.mark.parametrize(
    ("interface", "rows"),
    [
        ({"admin_up": False}, ["eth1 is set: down", "module of eth1: OSFP NVIDIA MMA4Z00-NS400 MT0001 ready"]),
        ({"admin_up": None, "module": None, "module_reason": "EPERM"}, ["module of eth1: EPERM"]),
        ({"module": None}, ["eth1 is set: up"]),
    ],
)
def test_what_was_not_read_is_no_evidence(interface, rows: list[str]) -> None:
    """Beside the states of port and interface."""
    (fault,) = fails(rule, down(**interface))

    assert rows == [f"{row.what}: {row.value}" for row in fault.evidence[2:]]


def test_what_a_rail_costs_is_its_share() -> None:
    """Of two; of a single one all."""
    single = changed_port(server(1, ethernet=True), 0, state="DOWN", phys_state="LinkUp")

    assert fails(rule, down(2))[0].impact.startswith("1 of 2 rails: this node injects 50% less")
    assert fails(rule, single)[0].impact.startswith("This port carries nothing")


def test_a_cable_without_lanes_has_no_light_to_lose() -> None:
    """Copper measures none."""
    (fault,) = fails(rule, down(module=TransceiverModule(media="copper")))

    assert ("", "DOWN: eth1 has no carrier") == (fault.cause, fault.summary)


@pytest.mark.parametrize(
    ("circumstance", "found"),
    [
        pytest.param(lambda c: node(c, uptime_seconds=60.0), [], id="just booted"),
        pytest.param(lambda c: changed_ports(c, netdevs=[]), [], id="all interfaces elsewhere"),
        pytest.param(lambda c: changed_port(c, 1, netdevs=[]), ["error"] * 3, id="one elsewhere"),
    ],
)
def test_all_rails_dark_is_said_only_where_all_were_judged(circumstance, found: list[str]) -> None:
    """A port that is unknown may be another matter."""
    context = circumstance(changed_ports(server(ethernet=True), **DARK))

    assert found == [fault.severity for fault in fails(rule, context)]
    assert Unknown in kinds(rule, context)


def test_a_bus_that_was_not_read_is_the_reason_that_is_told() -> None:
    """It would say what the NIC is for; evidence of roles cannot."""
    context = probe(changed_nics(down(), role="unknown"), "pci", "failed", "no permission")
    context = topology(context, pci=[item for item in context.topology.pci if item.id != NIC])
    (answer,) = answers(rule, context, PORT)

    assert isinstance(answer, Unknown)
    assert "what it is for is not known: pci: failed: no permission" == answer.reason
