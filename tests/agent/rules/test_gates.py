"""The gates of families: shut only where it is certain that no rule of the family has anything to judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.rules import gates
from agent.rules.catalogue import every_rule, rules_for
from agent.rules.engine import judge
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import changed_nic, changed_port, node, probe, server, topology


def test_a_kind_of_port_that_is_not_here_shuts_its_gate() -> None:
    """Every port is known to be of the other kind."""
    assert isinstance(gates.roce(server()), NotApplicable)
    assert isinstance(gates.infiniband(server(ethernet=True)), NotApplicable)
    assert gates.roce(server(ethernet=True)) is None
    assert gates.infiniband(server()) is None


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(changed_port(server(), 1, link_layer=None), id="a port of unknown kind"),
        pytest.param(changed_nic(server(), 1, ports=[]), id="a NIC whose ports nobody shows"),
        pytest.param(probe(server(), "rdma", "denied", "no"), id="RDMA was not read"),
        pytest.param(probe(server(), "pci", "failed", "no"), id="the bus was not read"),
    ],
)
def test_a_gate_stays_open_where_there_is_doubt(case) -> None:
    """What could not be read may be RoCE."""
    assert gates.roce(case) is None


def test_counters_need_an_earlier_sample_and_a_settled_host() -> None:
    """Without one, what a counter stands at says nothing."""
    answer = gates.counted(server())
    assert isinstance(answer, Unknown)
    assert "--state-dir" in answer.reason
    assert isinstance(gates.device_runtime(topology(server(), gpus=[], nics=[])), NotApplicable)
    young = gates.counted(replace(node(server(), uptime_seconds=60.0)))
    assert isinstance(young, Unknown)


@pytest.mark.parametrize("ethernet", [True, False])
def test_a_shut_gate_says_what_the_rules_would(ethernet: bool) -> None:
    """Nothing is found or lost by not asking."""
    case = server(ethernet=ethernet)
    gated, _, summary = judge(case, rules_for(case))
    asked, _, expected = judge(case, every_rule())

    assert [check.rule for check in gated] == [check.rule for check in asked]
    assert [check.state for check in gated] == [check.state for check in asked]
    assert summary == expected
