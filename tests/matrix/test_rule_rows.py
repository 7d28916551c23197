"""Each row of tests/matrix/rules/*.toml: all that its rule answers about that machine."""

from __future__ import annotations

import re

import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from tests.matrix.rule_rows import answered, counted, guards, row, row_ids, rules, tables, wanted, words
from tests.texts import PLACEHOLDER, list_texts


@pytest.mark.parametrize(("rule", "name"), row_ids())
def test_a_rule_answers_as_its_row_says(rule: str, name: str) -> None:
    """Faults with severity and cause, what is unknown and what does not apply, how many pass; and the words."""
    case, expected = row(rule, name)
    answers = list(rules()[rule].check(case))

    assert wanted(expected) == counted(answered(answers, rules()[rule].severity), wanted(expected))
    text = words(answers)
    assert [] == [item for item in expected.says if item not in text], text
    assert [] == [item for item in expected.omits if item in text], text
    if expected.absorbs:
        assert expected.absorbs in [f.absorbs for f in judge(case, every_rule())[1] if f.rule == rule]
    if expected.state:
        (check,) = judge(case, [rules()[rule]])[0]
        state, _, reason = expected.state.partition(": ")
        assert state == check.state
        assert any(reason in str(why) for why in (check.reason, *(row.reason for row in check.unknown_subjects)))


def test_every_guard_keeps_a_rule_silent() -> None:
    """One that no rule names tests nothing."""
    assert set(guards()) == {guard for table in tables().values() for guard in table.silent_when}


@pytest.mark.parametrize("rule", sorted(rules()))
def test_a_finding_can_be_acted_on(rule: str) -> None:
    """Whatever makes a rule fire: steps, an impact, and no value of the device left to fill in."""
    for name in (name for of, name in row_ids() if of == rule and not name.startswith("silent when")):
        for finding in judge(row(rule, name)[0], [rules()[rule]])[1]:
            assert finding.steps
            assert all(step.do for step in finding.steps), "a step that states nothing"
            assert [] == [text for text in list_texts(finding) if PLACEHOLDER.search(text)]
            assert not re.search(r"\d %|(?<![\d.])0%", finding.impact), finding.impact
