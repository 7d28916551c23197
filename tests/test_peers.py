"""tests/peers.tsv: every check of the other tools has our rules, or the reason why there is none."""

from __future__ import annotations

from agent.rules.catalogue import every_rule
from tests import peers


def test_the_summary_counts_every_check_and_names_every_rule_that_only_we_have() -> None:
    """Each row is in the total; a rule is in the list if no row names it."""
    table = peers.rows()
    lines = peers.summary().splitlines()
    total = next(line for line in lines if line.startswith("together"))
    named = {rule for row in table for rule in row.rules}

    assert [str(len(table)), str(sum(bool(row.rules) for row in table))] == total.split()[1:]
    assert {rule.name for rule in every_rule()} - named == set(lines[-1].partition(": ")[2].split(", "))


def test_every_rule_that_is_named_is_one() -> None:
    """A rule that was renamed is renamed here too."""
    assert set() == {rule for row in peers.rows() for rule in row.rules} - {rule.name for rule in every_rule()}


def test_every_check_has_a_rule_or_a_reason() -> None:
    """And stands once for its tool."""
    table = peers.rows()

    assert [] == [row for row in table if not row.rules and not row.remark]
    assert len(table) == len({(row.peer, row.check) for row in table})
    assert [] == [row for row in table if "|" in "".join((row.peer, row.check, row.remark))]
