"""The table of rules: what it has is used, documented, and fits the switch's command line."""

from __future__ import annotations

import re

import pytest

from agent.cli.main import run
from agent.fleet.lossless.catalogue import SwitchRule, choose_remedy, switch_rules
from agent.model.finding import SEVERITIES
from tests.conftest import ROOT

RULES = list(switch_rules().values())


def test_rules_of_the_code_and_of_the_table_are_the_same() -> None:
    folder = ROOT / "agent" / "fleet" / "lossless"
    used = {name for path in folder.glob("*.py") for name in re.findall(r'"(sw-[a-z-]+)"', path.read_text())}

    assert used == set(switch_rules())


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_every_rule_is_documented_and_has_a_fix_for_any_switch(rule: SwitchRule) -> None:
    """The page has it with its severity and title; a family that is not known gets no command of another."""
    page = (ROOT / "docs" / "fleet-lossless.md").read_text()

    assert f"| `{rule.id}` | {rule.severity} | {rule.title} |" in page
    assert rule.severity in SEVERITIES
    for family in ("sonic-enterprise", "eos", None):
        steps = choose_remedy(rule, family)
        assert steps
        assert not any("sudo " in step or "nv set" in step for step in steps)
    assert not any("nv set" in step for step in choose_remedy(rule, "sonic"))
    assert not any("sudo " in step for step in choose_remedy(rule, "nvue"))


def test_explain(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "sw-pfcwd-off"]) == 0
    page = capfd.readouterr().out
    assert run(["explain", "sw-ecn"]) == 0
    rows = capfd.readouterr().out

    assert page.startswith("sw-pfcwd-off (warning, of fabricscope fleet lossless)")
    assert [row.split()[0] for row in rows.splitlines()] == [
        "sw-ecn-missing", "sw-ecn-drops", "sw-ecn-order", "sw-ecn-uneven"
    ]  # fmt: skip
