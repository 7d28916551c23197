"""roce-link-down: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Lane, TransceiverModule
from agent.rules.roce.links import roce_link_down as rule
from agent.rules.rule import NotApplicable
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_port,
    fails,
    server,
)
from tests.agent.rules.roce.qos import NIC, PORT

DARK = {"state": "DOWN", "phys_state": "Disabled", "rate_gbit_s": None}


def down(gpus: int = 4, **interface):
    result = {"operstate": "down", "speed_gbit_s": None, **interface}
    return changed_netdev(changed_port(server(gpus, ethernet=True), 1, **DARK), 1, **result)


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
