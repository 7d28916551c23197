"""Each row of tests/matrix/rules/*.toml: all that its rule answers about that machine."""

from __future__ import annotations

import re

import pytest

from agent.model.finding import Location
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.instructions import build_steps, find_values
from agent.rules.location import NOUNS
from agent.rules.rule import Fail
from tests.agent.rules.build import server, virtual
from tests.matrix.rule_rows import answered, counted, guards, row, row_ids, rules, tables, wanted, words
from tests.texts import PLACEHOLDER, list_devices, list_texts


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
            assert list_devices(finding) <= _list_own(row(rule, name)[0], rule), finding.steps


def _list_own(case: RuleContext, rule: str) -> set[str]:
    """Whatever a command may be for: values of the devices of the faults, and what the faults themselves name."""
    faults = [answer for answer in rules()[rule].check(case) if isinstance(answer, Fail)]
    parts = [part for fault in faults for part in (fault, *fault.parts)]
    values = {value for part in parts for row in find_values(case, part) for value in row.values()}
    texts = [f"{part.remedy} {part.summary} {' '.join(sorted(part.places))}" for part in parts]
    return values | {word.strip("`,;:.") for text in texts for word in text.split()}


@pytest.mark.parametrize("rule", sorted(rules()))
def test_a_remedy_is_built_where_the_page_prints_it(rule: str) -> None:
    """Of every fault that a row builds, and of every part of it: printed on some form factor, or not built at all."""
    built: dict[tuple[str, str], set[bool]] = {}
    for of, name in row_ids():
        answers = rules()[rule].check(row(rule, name)[0]) if of == rule else ()
        for fault in (answer for answer in answers if isinstance(answer, Fail)):
            for part in (fault, *fault.parts):
                built.setdefault((part.situation, part.cause), set()).add(bool(part.remedy))
    for (situation, cause), has_remedy in built.items():
        printed = {_prints_remedy(rule, situation, cause, form) for form in (*NOUNS, None)}
        assert True in has_remedy or printed != {True}, f"{rule} {situation or cause}: no remedy for its step"
        assert has_remedy == {False} or True in printed, f"{rule} {situation or cause}: no page prints its remedy"


def _prints_remedy(rule: str, situation: str, cause: str, form: str | None) -> bool:
    fault = Fail("node", "node", "", "", remedy="THE REMEDY", situation=situation, cause=cause)
    case = virtual(server()) if form == "virtual" else server()
    steps = build_steps(case, rule, fault, Location(part="GPU", form_factor=form))
    return any("THE REMEDY" in step.do for step in steps)
