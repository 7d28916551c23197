"""A healthy machine gets no finding, and no unknown answer, from any rule."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.report import History
from agent.rules.catalogue import every_rule, rules_for
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.host.inventory_matching import build_inventory
from agent.rules.rule import Fail, Unknown
from tests.agent.rules import moves
from tests.agent.rules.build import changed_gpus, changed_netdev, changed_nics, kinds, server, software, topology

RUN = "2026-01-15T07:00:00Z"


def healthy(ethernet: bool) -> RuleContext:
    """A machine with all counters, an hour after the last run, which saw the same devices."""
    context, counted = moves.roce() if ethernet else moves.infiniband(), moves.gpus().topology
    context = topology(context, gpus=counted.gpus, pci=counted.pci)
    for n, netdev in enumerate(server(ethernet=ethernet).topology.netdevs):
        context = changed_netdev(context, n, qos=netdev.qos)
    context = changed_nics(changed_gpus(context, numa_node=0), numa_node=0)
    return replace(context, history=History(last_run=RUN, runs=1, inventory=build_inventory(context.topology)))


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.name)
@pytest.mark.parametrize("ethernet", [False, True], ids=["infiniband", "roce"])
def test_a_healthy_machine_is_clean(rule, ethernet) -> None:
    """Neither a fault nor a doubt; where there is nothing of its kind, the gate of its family says so."""
    context = healthy(ethernet)
    gated = next(item for item in rules_for(context) if item.name == rule.name)
    seen = kinds(rule, context) | kinds(gated, context)

    assert seen
    assert not seen & {Fail, Unknown}


def test_a_machine_without_gpus_and_nics_has_nothing_to_check() -> None:
    """What is not there cannot be wrong: not applicable, never unknown."""
    bare = software(topology(server(1), pci=[], gpus=[], nics=[], paths=[]), modules=[])
    bare = replace(bare, history=History(last_run=RUN, runs=1))
    checks, findings, summary = judge(bare, every_rule())

    assert [] == findings
    assert {"not_applicable"} == {check.state for check in checks if check.rule != "probe-hung"}  # of the scan itself
    assert "nothing_to_check" == summary.verdict
