"""What drivers state: which of it explains other findings. When it fires: tests/matrix/rules/host.toml."""

from __future__ import annotations

import pytest

from agent.rules.host.driver_sentences import driver_reports_failure
from agent.rules.host.service_failures import service_reports_failure
from agent.rules.rule import Fail, Rule
from tests.matrix.rule_rows import row


@pytest.mark.parametrize(
    ("rule", "name", "explains_ids"),
    [
        (driver_reports_failure, "the first cause of one device counts", None),
        (driver_reports_failure, "held by nouveau", frozenset()),
        (service_reports_failure, "the versions that it names", None),
        (service_reports_failure, "a manager on a node without NVSwitches", frozenset()),
    ],
    ids=lambda item: item.name if isinstance(item, Rule) else "",
)
def test_only_what_is_sure_explains_others(rule: Rule, name: str, explains_ids: frozenset[str] | None) -> None:
    context, _ = row(rule.name, name)
    assert [explains_ids] == [answer.explains_ids for answer in rule.check(context) if isinstance(answer, Fail)]
