"""docs/coverage.md: every check of the other tools has our rules, or the reason why there is none."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from tests import peers


def test_the_document_is_up_to_date() -> None:
    """`make docs` writes it."""
    assert peers.text() == peers.DOCUMENT.read_text()


def test_every_rule_that_is_named_is_one() -> None:
    """A rule that was renamed is renamed here too."""
    assert set() == {rule for row in peers.rows() for rule in row.rules} - {rule.name for rule in every_rule()}


def test_every_check_has_a_rule_or_a_reason() -> None:
    """And stands once for its tool."""
    table = peers.rows()

    assert [] == [row for row in table if not row.rules and not row.remark]
    assert len(table) == len({(row.peer, row.check) for row in table})
    assert [] == [row for row in table if "|" in "".join((row.peer, row.check, row.remark))]


@pytest.mark.parametrize(("arguments", "status"), [(["--check"], 0), ([], 2), (["--write", "x"], 2)])
def test_the_command_line(arguments: list[str], status: int) -> None:
    """Anything but the two words is refused."""
    assert status == peers.main(arguments)
