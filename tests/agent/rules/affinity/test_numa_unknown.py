"""numa-unknown: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import NumaNode
from agent.rules.affinity.placement import numa_unknown as rule
from agent.rules.engine import judge
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_nic,
    fails,
    function,
    gpu_id,
    kinds,
    nic_id,
    node,
    probe,
    server,
    topology,
    virtual,
)

GPU, NIC = gpu_id(1), nic_id(1)
NOWHERE = {"numa_node": None, "numa_declared": False}


def lost():
    return function(server(), GPU, **NOWHERE)


def test_one_device_without_a_node_is_a_warning_on_it() -> None:
    """The kernel's -1 is the evidence."""
    (fault,) = fails(rule, lost())

    assert (f"pci:{GPU}", "GPU1", "warning", "") == (
        fault.subject, fault.label, fault.severity or rule.severity, fault.cause,
    )  # fmt: skip
    assert "on a node that has 2" in fault.summary
    assert "wrong one of 2 NUMA nodes" in fault.impact
    assert ("-1", f"/sys/bus/pci/devices/{GPU}/numa_node") == (fault.evidence[0].value, fault.evidence[0].source)


def test_several_are_one_finding_for_the_node() -> None:
    """The firmware is the cause of all."""
    (fault,) = fails(rule, function(lost(), NIC, **NOWHERE))

    assert ("node", "node", frozenset({GPU, NIC})) == (fault.subject, fault.label, fault.places)
    assert "GPU1, mlx5_1" in fault.summary


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: function(c, GPU, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: function(c, GPU, numa_declared=None), Unknown, id="not read"),
        pytest.param(lambda c: function(c, GPU, numa_declared=True), Pass, id="declared"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    (answer,) = answers(rule, circumstance(lost()), f"pci:{GPU}")

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("nodes", "kind"),
    [
        ([NumaNode(id=0, cpus="0-111")], NotApplicable),
        ([NumaNode(id=0, cpus="0-111"), NumaNode(id=1, cpus="")], NotApplicable),
        ([NumaNode(id=0, cpus="0-55"), NumaNode(id=1, cpus=None)], Unknown),
    ],
)
def test_one_node_with_cpus_leaves_nothing_to_choose(nodes: list[NumaNode], kind) -> None:
    """Memory of GPUs and CXL is no node to run on; a node that nobody could read is unknown."""
    assert {kind} == kinds(rule, node(lost(), numa_nodes=nodes))


def test_only_gpus_and_rails_are_judged() -> None:
    """Storage and management have no part in it."""
    assert [] == fails(rule, changed_nic(function(server(), NIC, **NOWHERE), 1, role="storage"))


def test_nothing_to_judge_and_nothing_read() -> None:
    """No GPU and no rail; no NUMA nodes in the evidence."""
    bare = topology(server(1), gpus=[], nics=[])
    unread = probe(node(lost(), numa_nodes=[]), "numa", "absent", "not in this source")

    assert {NotApplicable} == kinds(rule, bare)
    assert "unknown" == judge(unread, [rule])[0][0].state
    assert "unknown" == judge(probe(bare, "pci", "failed", "broken"), [rule])[0][0].state


def test_an_unread_bus_is_the_reason_where_no_device_is_known() -> None:
    """Nobody knows what would have to have a node: what the CPUs are does not matter yet."""
    nodes = [NumaNode(id=0, cpus="0-55"), NumaNode(id=1, cpus=None)]
    bare = topology(node(server(1), numa_nodes=nodes), gpus=[], nics=[])
    (check,), _, _ = judge(probe(bare, "pci", "failed", "broken"), [rule])

    assert ("unknown", "pci: failed: broken") == (check.state, check.reason)
