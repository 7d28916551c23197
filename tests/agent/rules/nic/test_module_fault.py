"""roce-module-fault: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.node import Event
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.nic.optics import roce_module_fault as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_port,
    fails,
    kinds,
    probe,
    server,
    topology,
    virtual,
)
from tests.agent.rules.moves import moved, roce, without_window
from tests.agent.rules.roce.guards import NETDEV, NIC, PORT, PROVIDERS, ROLES, UNSEEN
from tests.agent.rules.rows import optical

NEEDS = "EPERM: reading a module's memory needs CAP_NET_ADMIN"


def module(**changes):
    return changed_netdev(server(ethernet=True), 1, module=msgspec.structs.replace(optical(), **changes))


def logged(code: str, case=None, subject: str | None = NIC, kind: str = "mlx5"):
    event = Event(kind=kind, code=code, text=f"mlx5_core {NIC}: {code}", source="/dev/kmsg", subject=subject, count=3)
    return replace(case or server(ethernet=True), events=(event,))


def counted(name: str, by: int = 1):
    case = roce()
    case = changed_netdev(case, 1, counters={**case.topology.netdevs[1].counters, name: 9}, module=optical())
    return moved(case, NETDEV, {name: by})


def test_a_module_in_fault_is_an_error() -> None:
    """What the module says, and what it is."""
    (fault,) = fails(rule, module(state="fault"))

    assert (PORT, "mlx5_1/1 (eth1)", "error") == (fault.subject, fault.label, fault.severity)
    assert "the module reports a fault: NVIDIA MMA4Z00-NS400 MT0001" == fault.summary
    assert ["ethtool -m eth1"] == [row.source for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.places


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"temperature_c": 69.9}, None),
        ({"temperature_c": 70.0}, "warning"),
        ({"temperature_c": 75.0}, "error"),
        ({"temperature_c": 90.0, "thresholds": {}}, None),
        ({"temperature_c": 90.0, "thresholds": {"temperature_high_alarm_c": 0.0}}, None),
        ({"temperature_c": None}, None),
        ({"temperature_c": None, "flags": ["temperature_high_alarm"]}, "error"),
        ({"flags": ["temperature_high_warning"]}, "warning"),
        ({"flags": ["temperature_low_alarm"]}, None),
        ({"state": "low_power"}, None),
    ],
)
def test_temperatures_against_the_modules_own_limits(changes, severity: str | None) -> None:
    """At the limit counts."""
    assert ([severity] if severity else []) == [fault.severity for fault in fails(rule, module(**changes))]


def test_one_heat_is_told_once() -> None:
    """The gravest level, with the temperature where the module tells it."""
    both = ["temperature_high_alarm", "temperature_high_warning"]
    (measured,) = fails(rule, module(flags=both))
    (silent,) = fails(rule, module(flags=both, temperature_c=None))

    assert ["45 C"] == [row.value for row in measured.evidence]
    assert ["flagged"] == [row.value for row in silent.evidence]
    assert "high alarm" in measured.summary


def test_a_sub_function_is_at_its_parents_function() -> None:
    """The log knows the function only; InfiniBand or not."""
    (fault,) = fails(rule, changed_nic(logged("module", server()), 1, id=f"{NIC}/sf1"))

    assert {f"{NIC}/sf1/1", f"{NIC}/sf1", NIC} == set(fault.places)


@pytest.mark.parametrize("name", ["module_high_temp", "module_bus_stuck", "module_bad_shorted"])
def test_counters_that_moved_are_errors(name: str) -> None:
    """Once is enough; what they stand at says nothing."""
    (fault,) = fails(rule, counted(name))

    assert "error" == fault.severity
    assert [(name, "+1", "ethtool -S eth1")] == [(row.what, row.value, row.source) for row in fault.evidence]
    assert [] == fails(rule, counted(name, 0))
    assert [] == fails(rule, without_window(counted(name)))
    assert [] == fails(rule, counted("module_unplug"))


@pytest.mark.parametrize(
    ("code", "active", "down"),
    [("module", "warning", "error"), ("temperature", "warning", "warning"), ("slot-power", "warning", "warning")],
)
def test_the_kernel_log_is_evidence(code: str, active: str, down: str) -> None:
    """Of an active port it may be past; of both kinds of ports."""
    for ethernet in (True, False):
        case = server(ethernet=ethernet)
        (fault,) = fails(rule, logged(code, case))

        assert (PORT, active) == (fault.subject, fault.severity)
        assert "(3 times since boot)" in fault.summary
        assert ["/dev/kmsg"] == [row.source for row in fault.evidence]
        assert [down] == [f.severity for f in fails(rule, logged(code, changed_port(case, 1, state="DOWN")))]
    assert [active] == [f.severity for f in fails(rule, logged(code, subject=f"pci:{NIC}"))]


@pytest.mark.parametrize(
    "case",
    [
        logged("health"),
        logged("module", kind="aer"),
        logged("module", subject=None),
        logged("module", subject="0000:99:00.0"),
        changed_nic(logged("module", server(), subject=None), 1, pci=None),
        changed_nic(logged("module", server(), subject="pci:None"), 1, pci=None),
        virtual(logged("module")),
        virtual(logged("module", server())),
        changed_nic(logged("module", server()), 1, virtual_function=True),
        changed_nic(logged("module", server()), 1, limited="mezz internal"),
        changed_nic(logged("module", server()), 1, role="management"),
    ],
)
def test_other_lines_and_other_ports_are_silent(case) -> None:
    """Of another device, another kind, another use."""
    assert [] == fails(rule, case)


def test_the_gravest_of_several_counts() -> None:
    """All are told."""
    case = logged("slot-power", module(temperature_c=76.0))
    (fault,) = fails(rule, case)

    assert "error" == fault.severity
    assert 2 == len(fault.evidence)
    assert ["warning"] == [f.severity for f in fails(rule, changed_nic(case, 1, role="storage"))]


@pytest.mark.parametrize("ethernet", [True, False])
def test_a_link_that_is_down_for_it_is_one_finding(ethernet: bool) -> None:
    """Cause and consequence."""
    case = logged("module", changed_port(server(8, ethernet), 1, state="DOWN", phys_state="Polling"))
    _, findings, _ = judge(case, every_rule())
    (found,) = (f for f in findings if f.severity != "info")

    assert ("roce-module-fault", "error") == (found.rule, found.severity)
    assert f"{'roce-link-down' if ethernet else 'ib-port-down'} {PORT}" in found.absorbs


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        *PROVIDERS,
        *UNSEEN,
        pytest.param(lambda c: changed_netdev(c, 1, module=None), Unknown, id="not read"),
        pytest.param(lambda c: changed_netdev(c, 1, module=optical()), Pass, id="healthy"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    case = circumstance(module(state="fault"))
    (answer,) = answers(rule, case, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(rule, case)


def test_what_may_not_be_read_is_one_reason_for_the_node() -> None:
    """And a line of the log is told all the same."""
    case = server(ethernet=True)
    for n in range(4):
        case = changed_netdev(case, n, module=None, module_reason=NEEDS)

    assert [Unknown("node", NEEDS)] == list(rule.check(case))
    assert [PORT] == [fault.subject for fault in fails(rule, logged("module", case))]


def test_without_ports_it_is_not_applicable() -> None:
    """One answer for the node; InfiniBand ports one each."""
    assert {NotApplicable} == kinds(rule, server())
    assert [NotApplicable("node", "no port of an RDMA device")] == list(rule.check(topology(server(), nics=[])))

    for name in ("pci", "rdma"):  # one of them is enough
        blind = probe(topology(server(), nics=[]), name, "failed", "broken")
        assert [NotApplicable("node", "no port of an RDMA device")] == list(rule.check(blind))
    unread = topology(server(), nics=[], pci=[])
    for name in ("pci", "lspci", "rdma", "rdma_tools"):
        unread = probe(unread, name, "absent", "a kernel log alone")
    assert [] == list(rule.check(unread))
    assert "unknown" == judge(unread, [rule])[0][0].state
    assert [] == answers(rule, server(), "node")
