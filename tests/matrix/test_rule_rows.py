"""Each row of tests/matrix/rules/*.toml: all that its rule answers about that machine."""

from __future__ import annotations

import pytest

from tests.matrix.rule_rows import answered, counted, guards, row, row_ids, rules, tables, wanted, words


@pytest.mark.parametrize(("rule", "name"), row_ids())
def test_a_rule_answers_as_its_row_says(rule: str, name: str) -> None:
    """Faults with severity and cause, what is unknown and what does not apply, how many pass; and the words."""
    case, expected = row(rule, name)
    answers = list(rules()[rule].check(case))

    assert wanted(expected) == counted(answered(answers, rules()[rule].severity), wanted(expected))
    text = words(answers)
    assert [] == [said for said in expected.says if said not in text], text


def test_every_guard_keeps_a_rule_silent() -> None:
    """One that no rule names tests nothing."""
    assert set(guards()) == {guard for table in tables().values() for guard in table.silent_when}
