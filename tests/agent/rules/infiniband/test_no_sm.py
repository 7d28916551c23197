"""ib-no-sm: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.subnet import ib_no_sm as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    changed_port,
    changed_ports,
    fails,
    function,
    nic_id,
    node,
    server,
    virtual,
)

NIC = nic_id(1)
PORT = f"port:{NIC}/1"


def waiting():
    return changed_port(server(), 1, state="INIT", lid=0, sm_lid=0)


@pytest.mark.parametrize("state", ["INIT", "ARMED"])
def test_a_link_without_a_subnet_manager_is_an_error_on_that_port(state: str) -> None:
    """Others have one: this port, its partition or its switch port."""
    (fault,) = fails(rule, changed_port(waiting(), 1, state=state))

    assert (PORT, "mlx5_1/1", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert [f"{state}, LinkUp", "0x0", "0x0"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(
    ("lids", "fires"),
    [
        ({"lid": 0}, True),
        ({"sm_lid": 0}, True),
        ({"lid": 0xFFFF}, True),
        ({"lid": None, "sm_lid": None}, False),
        ({}, False),
    ],
)
def test_an_active_port_needs_its_lids(lids, fires: bool) -> None:
    """Active, and without an address or a manager's address; unread ones prove nothing."""
    assert fires == bool(fails(rule, changed_port(server(), 1, **lids)))


def test_no_manager_on_any_port_is_one_critical_finding() -> None:
    """The subnet has none; a dark port beside does not change that."""
    case = changed_ports(server(), state="INIT")
    (fault,) = fails(rule, case)
    (beside,) = fails(rule, changed_port(case, 3, state="DOWN", phys_state="Polling"))

    assert ("node", "critical") == (fault.subject, fault.severity)
    assert {f"{nic_id(n)}/1" for n in range(4)} <= fault.places
    assert "node" == beside.subject


def test_storage_alone_is_a_warning() -> None:
    """One step less grave, on the port and on all of them."""
    single = changed_nic(waiting(), 1, role="storage")
    whole = changed_ports(server(2), state="INIT")
    for n in range(2):
        whole = changed_nic(whole, n, role="storage")

    assert ["warning"] == [fault.severity for fault in fails(rule, single)]
    assert [("node", "warning")] == [(fault.subject, fault.severity) for fault in fails(rule, whole)]


def test_a_plugged_port_of_unknown_use_is_judged() -> None:
    """The wire is up: somebody wants it."""
    assert [(PORT, "warning")] == [
        (f.subject, f.severity) for f in fails(rule, changed_nic(waiting(), 1, role="unknown"))
    ]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_port(c, 1, phys_state="Polling"), NotApplicable, id="wire not up"),
        pytest.param(lambda c: changed_port(c, 1, phys_state=None), Unknown, id="wire not known"),
        pytest.param(lambda c: node(c, uptime_seconds=60.0), Unknown, id="just booted"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: function(c, NIC, physical_function=nic_id(0)), NotApplicable, id="virtual function"),
        pytest.param(lambda c: changed_port(c, 1, state=None), Unknown, id="state not read"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(waiting()), PORT)

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize("circumstance", [virtual, lambda c: changed_nic(c, 1, virtual_function=True)])
def test_lids_of_guests_prove_nothing(circumstance) -> None:
    """They may be 0 by design; a state of INIT still tells."""
    active = changed_port(server(), 1, lid=0)

    assert [Pass(PORT)] == answers(rule, circumstance(active), PORT)
    assert [PORT] == [fault.subject for fault in fails(rule, circumstance(waiting()))]


def test_an_ethernet_port_is_not_judged() -> None:
    """It has no subnet manager."""
    assert [] == answers(rule, changed_port(waiting(), 1, link_layer="Ethernet"), PORT)


def test_a_single_port_and_a_part_of_the_ports_stand_for_themselves() -> None:
    """The node is named only where the subnet is the cause."""
    part = changed_port(waiting(), 2, state="INIT")

    assert [f"port:{nic_id(0)}/1"] == [fault.subject for fault in fails(rule, changed_ports(server(1), state="INIT"))]
    assert [PORT, f"port:{nic_id(2)}/1"] == [fault.subject for fault in fails(rule, part)]


def test_an_unknown_uptime_is_no_excuse() -> None:
    """A capture without it is of a machine that ran."""
    assert [PORT] == [fault.subject for fault in fails(rule, node(waiting(), uptime_seconds=None))]
