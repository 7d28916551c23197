"""The fault matrix is built from the tables of causes, whose rules exist."""

from __future__ import annotations

from agent.rules.catalogue import every_rule
from tests.matrix import table
from tests.matrix.cases import causes


def test_every_cause_has_a_line_with_its_rules() -> None:
    """In the section of its family, and every rule is in the page: with a cause, or in the list of those without."""
    page = table.text()
    lines = page.splitlines()

    for name, cause in causes().items():
        about = cause.about.replace("|", "\\|")
        rules = {f"`{rule}` {severity}" for rule, severity, _ in cause.finds}
        assert any(line.startswith(f"| {about} |") and all(rule in line for rule in rules) for line in lines), name
    assert [] == [rule.name for rule in every_rule() if f"`{rule.name}`" not in page]


def test_every_rule_that_a_cause_names_is_one() -> None:
    """A rule of another name would be looked for in vain."""
    named = {rule for cause in causes().values() for rule in (*(result[0] for result in cause.finds), *cause.unknown)}
    named |= {rule for cause in causes().values() for rule, _ in cause.informs}

    assert set() == named - {rule.name for rule in every_rule()}
