"""docs/fault-matrix.md is what the tables of causes say now."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from tests.matrix import table
from tests.matrix.cases import causes


def test_the_document_is_up_to_date() -> None:
    """`make docs` writes it."""
    assert table.text() == table.DOCUMENT.read_text()


def test_every_rule_that_a_cause_names_is_one() -> None:
    """A rule of another name would be looked for in vain."""
    named = {rule for cause in causes().values() for rule in (*(found[0] for found in cause.finds), *cause.unknown)}
    named |= {rule for cause in causes().values() for rule, _ in cause.informs}

    assert set() == named - {rule.name for rule in every_rule()}


@pytest.mark.parametrize(("arguments", "status"), [(["--check"], 0), ([], 2), (["--write", "x"], 2)])
def test_the_command_line(arguments: list[str], status: int) -> None:
    """Anything but the two words is refused."""
    assert status == table.main(arguments)
