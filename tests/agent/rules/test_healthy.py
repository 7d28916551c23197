"""A healthy machine gets no finding, and no unknown answer, from any rule."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.rule import Fail, Unknown
from tests.agent.rules.build import kinds, server, topology


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.name)
@pytest.mark.parametrize("ethernet", [False, True], ids=["infiniband", "roce"])
def test_a_healthy_machine_is_clean(rule, ethernet) -> None:
    """Neither a fault nor a doubt."""
    seen = kinds(rule, server(8, ethernet))

    assert seen
    assert not seen & {Fail, Unknown}


def test_a_machine_without_gpus_and_nics_is_ok() -> None:
    """What is not there cannot be wrong: not applicable, never unknown."""
    bare = topology(server(1), pci=[], gpus=[], nics=[], paths=[])
    checks, findings, summary = judge(bare, every_rule())

    assert [] == findings
    assert {"not_applicable"} == {check.state for check in checks if check.rule != "probe-hung"}  # of the scan itself
    assert "ok" == summary.verdict
