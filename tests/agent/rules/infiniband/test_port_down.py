"""ib-port-down: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.infiniband.links import ib_port_down as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_nics,
    changed_port,
    changed_ports,
    fails,
    function,
    kinds,
    nic_id,
    node,
    probe,
    server,
    topology,
)

NIC = nic_id(1)
PORT = f"port:{NIC}/1"
DARK = {"state": "DOWN", "phys_state": "Polling", "rate_gbit_s": None}


def down():
    return changed_port(server(), 1, **DARK)


def second_ports(case, **changes):
    """A second function on every card, uncabled unless told otherwise."""
    twins = [_second(each, **({**DARK} | changes)) for each in case.topology.nics]
    functions = [
        msgspec.structs.replace(case.functions[each.pci], id=f"{each.pci[:-1]}1") for each in case.topology.nics
    ]
    return topology(case, nics=[*case.topology.nics, *twins], pci=[*case.topology.pci, *functions])


def _second(nic, **changes):
    place = f"{nic.pci[:-1]}1"
    ports = [msgspec.structs.replace(port, **changes) for port in nic.ports]
    return msgspec.structs.replace(nic, id=place, pci=place, label=f"{nic.label}b", ports=ports)


def test_a_dark_rail_among_bright_ones_is_an_error() -> None:
    """State and physical state are the evidence; the share of the rails is the cost."""
    (fault,) = fails(rule, down())

    assert (PORT, "mlx5_1/1", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert fault.summary.startswith("DOWN, physical state Polling: no signal")
    assert "1 of 4 rails: this node injects 25% less" in fault.impact
    assert ["DOWN", "Polling"] == [row.value for row in fault.evidence]
    assert "/sys/class/infiniband/mlx5_1/ports/1/state" == fault.evidence[0].source


@pytest.mark.parametrize("phys_state", ["PortConfigurationTraining", "LinkErrorRecovery", "LinkUp"])
def test_a_plugged_storage_port_needs_no_sibling(phys_state: str) -> None:
    """Training, recovery and link up show a cable; storage is a warning."""
    case = changed_port(changed_nic(server(), 1, role="storage"), 1, state="DOWN", phys_state=phys_state)

    assert [(PORT, "warning")] == [(fault.subject, fault.severity) for fault in fails(rule, case)]


def test_rails_of_different_boards_are_siblings() -> None:
    """What one rail has, all have, whatever card they are on."""
    assert [PORT] == [fault.subject for fault in fails(rule, changed_nic(down(), 1, board_id="MT_OTHER"))]


def test_all_rails_dark_are_one_critical_finding() -> None:
    """The fabric, or nobody cabled this node: it takes part in no job either way."""
    (fault,) = fails(rule, changed_ports(server(), **DARK))

    assert ("node", "critical", "all-rails", "medium") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert {f"{nic_id(n)}/1" for n in range(4)} <= fault.places


def test_no_subnet_manager_is_the_cause() -> None:
    """The wire is up and the port is not: ib-no-sm stands for it."""
    _, findings, _ = judge(changed_port(server(), 1, state="INIT"), every_rule())

    assert [("ib-no-sm", [f"ib-port-down {PORT}"])] == [(f.rule, f.absorbs) for f in findings]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
        pytest.param(lambda c: changed_nic(c, 1, role="unknown"), NotApplicable, id="role unknown"),
        pytest.param(lambda c: changed_nic(c, 1, role="auxiliary"), NotApplicable, id="auxiliary"),
        pytest.param(lambda c: function(c, NIC, physical_function=nic_id(0)), NotApplicable, id="virtual function"),
        pytest.param(lambda c: function(c, NIC, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, NIC, state="changed_during_scan"), NotApplicable, id="vanished"),
        pytest.param(lambda c: node(c, uptime_seconds=239.0), Unknown, id="just booted"),
        pytest.param(lambda c: changed_port(c, 1, state=None), Unknown, id="state not read"),
        pytest.param(lambda c: changed_port(c, 1, link_layer=None), Unknown, id="link layer not read"),
        pytest.param(lambda c: changed_nic(c, 1, role="storage"), Unknown, id="storage without a sibling"),
        pytest.param(lambda c: changed_port(c, 1, state="ACTIVE"), Pass, id="active"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(down()), PORT)

    assert isinstance(answer, kind), answer


def test_an_ethernet_port_is_not_judged() -> None:
    """RoCE has rules of its own."""
    assert [] == answers(rule, changed_port(down(), 1, link_layer="Ethernet"), PORT)


def test_a_single_dark_rail_is_unknown() -> None:
    """Not cabled, or the fabric is down: one port cannot tell."""
    assert {Unknown} == kinds(rule, changed_ports(server(1), **DARK))


def test_second_ports_that_nobody_cabled_are_not_applicable() -> None:
    """All second ports are dark while the first ones shine."""
    assert {Pass, NotApplicable} == kinds(rule, second_ports(server()))


def test_storage_of_another_board_is_no_sibling() -> None:
    """An optional second storage card is not cabled as the first one."""
    case = changed_nic(changed_nic(down(), 1, role="storage"), 0, role="storage")
    (same,) = fails(rule, case)
    (answer,) = answers(rule, changed_nic(case, 1, board_id="MT_OTHER"), PORT)

    assert (PORT, "warning") == (same.subject, same.severity)
    assert isinstance(answer, NotApplicable)


@pytest.mark.parametrize(
    ("changes", "pci", "kind"),
    [
        ({"state": "no_driver"}, {}, Unknown),
        ({"state": "vfio"}, {}, NotApplicable),
        ({}, {"driver": "vfio-pci"}, NotApplicable),
        ({"limited": "mezz internal"}, {}, NotApplicable),
        ({"virtual_function": True}, {}, NotApplicable),
        ({}, {"class_code": "0x020000"}, NotApplicable),
        ({}, {"state": "asleep"}, NotApplicable),
    ],
)
def test_an_infiniband_function_without_an_rdma_device_is_not_clean(changes, pci, kind) -> None:
    """Unknown, where a job could have used it; one answer for the node where nothing of InfiniBand is left."""
    case = changed_nics(server(1), ports=[], rdma_device=None, **changes)

    assert {kind} == kinds(rule, function(case, nic_id(0), **pci))


def test_no_infiniband_is_not_applicable_even_without_the_class() -> None:
    """A node without RDMA has no /sys/class/infiniband; PCI tells that nothing is missing."""
    bare = probe(topology(server(1), nics=[]), "rdma", "absent", "no /sys/class/infiniband")
    blind = probe(probe(bare, "pci", "failed", "broken"), "rdma", "failed", "broken")

    assert [NotApplicable("node", "no InfiniBand port")] == list(rule.check(bare))
    assert "unknown" == judge(blind, [rule])[0][0].state


def test_the_reason_of_the_probe_is_told() -> None:
    """An InfiniBand function is there and nobody could read its ports."""
    case = probe(changed_nics(server(1), ports=[]), "rdma", "denied", "needs root")

    assert [Unknown(f"pci:{nic_id(0)}", "rdma: denied: needs root")] == list(rule.check(case))


def test_dark_storage_ports_are_unknown_and_cost_what_they_carry() -> None:
    """Two storage NICs without signal: nobody knows whether they were cabled; a trained one is no rail."""
    case = changed_ports(server(2), **DARK)
    for n in range(2):
        case = changed_nic(case, n, role="storage")
    plugged = changed_port(changed_nic(server(), 1, role="storage"), 1, state="DOWN", phys_state="LinkErrorRecovery")

    assert {Unknown} == kinds(rule, case)
    assert fails(rule, plugged)[0].impact.startswith("This port carries nothing")


def test_rails_of_which_one_could_not_be_read_stand_for_themselves() -> None:
    """Not all of them are known to be dark."""
    case = changed_port(changed_ports(server(2), **DARK), 1, phys_state="LinkUp")
    booting = node(case, uptime_seconds=10.0)

    assert {"node"} == {fault.subject for fault in fails(rule, case)}
    assert [] == fails(rule, booting)


def test_rdma_that_answered_is_enough() -> None:
    """No PCI bus, and an RDMA class without InfiniBand ports."""
    case = probe(topology(server(1), nics=[]), "pci", "failed", "broken")

    assert [NotApplicable("node", "no InfiniBand port")] == list(rule.check(case))


def test_what_lacks_is_told() -> None:
    """A driver, or the RDMA device of a driver that is there."""
    bare = changed_nics(server(1), ports=[])

    assert [Unknown(f"pci:{nic_id(0)}", "it has no RDMA device")] == list(rule.check(bare))
    assert [Unknown(f"pci:{nic_id(0)}", "no driver is bound to it")] == list(
        rule.check(changed_nics(bare, state="no_driver"))
    )


def one_second_port_lit(first_of_that_card: dict[str, str | None] | None = None):
    """Dual-port cards with one cable each; on card 0 the second port is lit, and the first is as told."""
    case = second_ports(server())
    lit = [
        msgspec.structs.replace(nic, ports=[msgspec.structs.replace(p, state="ACTIVE") for p in nic.ports])
        if nic.id == f"{nic_id(0)[:-1]}1" else nic
        for nic in case.topology.nics
    ]  # fmt: skip
    case = topology(case, nics=lit)
    return changed_port(case, 0, **first_of_that_card) if first_of_that_card else case


@pytest.mark.parametrize("first", [None, DARK], ids=["both of card 0", "its other port only"])
def test_which_port_of_a_card_is_cabled_is_the_builders_choice(first) -> None:
    """One lit second port does not make seven dark ones a fault."""
    assert [] == fails(rule, one_second_port_lit(first))


def test_a_card_with_fewer_lit_ports_than_its_siblings_lacks_one() -> None:
    """All cards have two cables; the second of one is dark."""
    case = second_ports(server(), state="ACTIVE", phys_state="LinkUp")
    dark = f"{NIC[:-1]}1"
    nics = [_second(case.topology.nics[1], **DARK) if nic.id == dark else nic for nic in case.topology.nics]

    assert [f"port:{dark}/1"] == [fault.subject for fault in fails(rule, topology(case, nics=nics))]


def test_a_dark_port_is_unknown_where_nothing_says_which_nics_are_rails() -> None:
    """GPUs are here, and no NIC could be told to be theirs: not clean; without GPUs nobody expects anything of it."""
    case = changed_nics(down(), role="unknown", role_evidence=["several models are as near"])
    (answer,) = answers(rule, case, PORT)

    assert (
        Unknown("port:" + NIC + "/1", "DOWN; which NICs are rails is not known: several models are as near") == answer
    )
    assert {NotApplicable} == kinds(rule, topology(case, gpus=[]))
    assert {NotApplicable} == kinds(rule, changed_nics(case, state="vfio"))


def test_what_a_nic_is_for_takes_its_place_on_the_bus() -> None:
    """Outputs of RDMA tools alone: unknown, where the PCI functions that are here would say that it is no rail."""
    case = changed_nic(down(), 1, role="unknown")
    alone = probe(probe(topology(case, pci=[]), "pci", "absent", "no sysfs"), "lspci", "absent", "no output")
    port = f"port:{nic_id(1)}/1"
    elsewhere = topology(case, pci=[f for f in case.topology.pci if f.id != nic_id(1)])

    assert {NotApplicable} == {type(answer) for each in (case, elsewhere) for answer in answers(rule, each, port)}
    placeless = changed_nic(elsewhere, 1, role="unknown", pci=None)  # which of the functions it is nobody tells
    assert ["what it is for is not known: where it is on the PCI bus is not known"] == [
        answer.reason for answer in answers(rule, placeless, port) if isinstance(answer, Unknown)
    ]
    assert {Unknown} == {type(answer) for answer in answers(rule, alone, port)}


@pytest.mark.parametrize(("rails", "told"), [(1, False), (2, True), (3, True)])
def test_the_share_of_a_rail_is_told_where_there_are_several(rails: int, told: bool) -> None:
    """Of one alone it is all."""
    case = changed_port(server(rails), 0, state="DOWN", phys_state="LinkUp")
    found = fails(rule, case)

    assert told == any("rails: this node injects" in fault.impact for fault in found)
    assert found


def test_a_nic_of_unknown_use_whose_function_is_here_is_not_unknown() -> None:
    """Only one that the half-read bus does not show may be a rail."""
    case = probe(changed_nic(down(), 1, role="unknown"), "pci", "failed", "x")

    assert [NotApplicable] == [type(answer) for answer in answers(rule, case, PORT)]
