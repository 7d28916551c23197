"""ib-limited-pf: functions that are not for jobs are named; others whose registers are refused, too."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.node import Event
from agent.rules.infiniband.links import ib_limited_pf as rule
from agent.rules.rule import Fail, NotApplicable
from tests.agent.rules.build import changed_nic, fails, function, kinds, nic_id, probe, server, topology, virtual

NIC = nic_id(1)


def refused(subject: str | None = NIC, kind: str = "mlx5", code: str = "access-reg"):
    line = Event(kind=kind, code=code, text="ACCESS_REG(0x805) failed", source="/dev/kmsg", subject=subject, count=7)
    return replace(server(), events=(line, line))


def test_functions_of_a_fabric_manager_are_one_info() -> None:
    """With what says so."""
    case = changed_nic(changed_nic(server(), 1, limited="mezz internal"), 2, limited="subsystem 15b3:0087")
    (fault,) = fails(rule, case)

    assert ("node", "info", "owned") == (fault.subject, fault.severity, fault.cause)
    assert "2 management functions, not NICs for jobs; exclude them from NCCL_IB_HCA: mlx5_1, mlx5_2" == fault.summary
    assert ["mezz internal", "subsystem 15b3:0087"] == [row.value for row in fault.evidence]


def test_refused_registers_of_a_rail_are_an_info() -> None:
    """Nothing says that it is limited: low confidence."""
    (fault,) = fails(rule, refused())

    assert (f"pci:{NIC}", "info", "low", "refused") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "refused a register 14 times" in fault.summary
    assert 2 == len(fault.evidence)
    assert 1 == len(fails(rule, refused(f"pci:{NIC}")))
    assert {Fail} == kinds(rule, refused())


def test_a_sub_function_is_at_its_parents_function() -> None:
    """The log knows the function only."""
    (fault,) = fails(rule, changed_nic(refused(), 1, id=f"{NIC}/sf1"))

    assert (f"pci:{NIC}", {NIC, f"{NIC}/sf1"}) == (fault.subject, set(fault.places))


def test_registers_of_a_limited_function_are_told_once() -> None:
    """That is what limited means."""
    assert ["node"] == [fault.subject for fault in fails(rule, changed_nic(refused(), 1, limited="mezz internal"))]


@pytest.mark.parametrize(
    "case",
    [
        virtual(refused()),
        changed_nic(refused(), 1, virtual_function=True),
        changed_nic(refused(), 1, software=True),
        changed_nic(refused(), 1, pci=None),
        changed_nic(refused("pci:None"), 1, pci=None),
        function(refused(), NIC, state="gone"),
        refused(None),
        refused("0000:99:00.0"),
        refused(kind="aer"),
        refused(code="health"),
        server(),
    ],
)
def test_a_guard_keeps_it_silent(case) -> None:
    """Refused by design, of another device, another line."""
    assert {NotApplicable} == kinds(rule, case)


def test_what_was_not_read_is_not_clean() -> None:
    """Nothing is said where neither the bus nor the RDMA devices were read; one of them is enough."""
    blind = probe(topology(server(), nics=[], pci=[]), "rdma", "failed", "broken")

    assert [] == list(rule.check(probe(blind, "pci", "failed", "broken")))
    assert {NotApplicable} == kinds(rule, blind)
    assert {NotApplicable} == kinds(rule, probe(server(), "pci", "failed", "broken"))
