"""Each row of tests/matrix/rules/*.toml: what its rule answers about that machine, and nothing that goes without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.model.finding import Finding
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.rule import Result
from tests.matrix.rule_rows import (
    FOLDER,
    Row,
    States,
    fill,
    find_superfluous,
    guards,
    healthy_states,
    machine_of,
    machines_of,
    read_healthy,
    rows,
    rules,
    states,
    summarize,
    tables,
    wanted,
    words,
)
from tests.texts import PLACEHOLDER, list_texts

PAGE = 40  # rows of one test


def pages() -> list[tuple[str, int]]:
    """Every rule with the number of each of its pages of rows."""
    return [(rule, page) for rule in tables() for page in range(-(-len(rows(rule)) // PAGE))]


@pytest.mark.parametrize(("rule", "page"), pages())
def test_a_rule_answers_as_its_rows_state(rule: str, page: int) -> None:
    """Faults with severity and cause, what is unknown, does not apply or passes; words; and findings to act on."""
    healthy: dict[str, States] = {}
    failures = []
    for row in list(rows(rule).values())[page * PAGE : (page + 1) * PAGE]:
        if row.machine not in healthy:
            healthy[row.machine] = healthy_states(rules()[rule], row.machine)
        case = machine_of(tables()[rule], row)
        if lines := list(dict.fromkeys(check_row(rule, row, case, healthy[row.machine]))):
            more = f" (and {len(lines) - 1} more)" if lines[1:] else ""
            failures.append(f'{rule} on "{row.machine}", "{row.name}": {lines[0]}{more}')
    assert not failures, "\n".join(["", *failures])


def check_row(rule: str, row: Row, case: RuleContext, healthy: States) -> Iterator[str]:
    """What differs from a row, each in a line."""
    answers = list(rules()[rule].check(case))
    expected, result = wanted(row, healthy), states(answers, rules()[rule].severity)
    if expected != result:
        yield describe_difference(expected, result)
    yield from check_words(row, answers)
    if row.absorbs:
        absorbed = [finding.absorbs for finding in judge(case, every_rule())[1] if finding.rule == rule]
        if [*map(fill, row.absorbs)] not in absorbed:
            yield f"expected to absorb {[*map(fill, row.absorbs)]}, got {absorbed}"
    if row.state:
        (check,) = judge(case, [rules()[rule]])[0]
        state, _, reason = row.state.partition(": ")
        reasons = [str(why) for why in (check.reason, *(each.reason for each in check.unknown_subjects))]
        if state != check.state or not any(reason in why for why in reasons):
            yield f"expected {row.state}, got {check.state}: {reasons}"
    if not row.name.startswith("silent when"):
        yield from (line for finding in judge(case, [rules()[rule]])[1] for line in check_finding(finding))


def describe_difference(expected: States, result: States) -> str:
    """Subjects that are answered otherwise, in one line."""
    differ = [subject for subject in {**expected, **result} if expected.get(subject) != result.get(subject)]
    sides = ("; ".join(f"{s} {', '.join(side.get(s, ['no answer']))}" for s in differ) for side in (expected, result))
    return "expected {}, got {}".format(*sides)


def check_words(row: Row, answers: list[Result]) -> Iterator[str]:
    """Words that are missing in what people read, and those that are in it and should not be."""
    text = words(answers)
    if missing := [item for item in map(fill, row.says) if item not in text]:
        yield f"expected the words {missing}, got {text!r}"
    if present := [item for item in map(fill, row.omits) if item in text]:
        yield f"expected no words {present}, got {text!r}"


def check_finding(finding: Finding) -> Iterator[str]:
    """Whatever makes a rule fire: steps, an impact, and no value of the device left to fill in."""
    if not finding.steps or not all(step.do for step in finding.steps):
        yield "expected steps that state something, got " + (repr(finding.steps) if finding.steps else "none")
    if unfilled := [text for text in list_texts(finding) if PLACEHOLDER.search(text)]:
        yield f"expected no placeholder, got {unfilled}"
    if re.search(r"\d %|(?<![\d.])0%", finding.impact):
        yield f"expected a share that is no 0% and without a space, got {finding.impact!r}"


@pytest.mark.parametrize("rule", sorted(tables()))
def test_what_a_rule_answers_about_healthy_machines(rule: str) -> None:
    """As healthy.toml states; rows state what differs from it. `python -m tests.matrix.rule_rows` writes it again."""
    failures = []
    listed = read_healthy().get(rule, {})
    for machine in sorted(machines_of(rule) | listed.keys()):
        expected, result = listed.get(machine, "nothing listed"), summarize(rules()[rule], machine)
        if expected != result:
            failures.append(f'{rule} on "{machine}": expected {expected}, got {result}')
    assert not failures, "\n".join(["", *failures])


@pytest.mark.parametrize("rule", sorted(tables()))
def test_a_row_states_only_what_differs_from_the_healthy_machine(rule: str) -> None:
    """No answer, fact or row that is so without it."""
    table = tables()[rule]
    healthy = {machine: healthy_states(rules()[rule], machine) for machine in machines_of(rule)}
    failures = [
        f'{rule}, "{row.name}": {line}'
        for row in rows(rule).values()
        for line in find_superfluous(table, row, healthy[row.machine])
    ]
    assert not failures, "\n".join(["", *failures])


def test_every_guard_keeps_a_rule_silent() -> None:
    """One that no rule names tests nothing."""
    used = {guard for table in tables().values() for names in table.silent_when.values() for guard in names}
    assert used == set(guards())


@pytest.mark.parametrize("path", sorted(FOLDER.parent.rglob("*.toml")), ids=lambda path: path.name)
def test_lines_of_tables_are_short(path: Path) -> None:
    """120 letters, but for outputs of tools, which are as the tools print them."""
    text = re.sub(r'""".*?"""|\'\'\'.*?\'\'\'', "", path.read_text(), flags=re.DOTALL)
    assert [] == [line for line in text.splitlines() if len(line) > 120]
