"""Each row of tests/matrix/rules/*.toml: what its rule answers about that machine, and nothing that goes without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.model.finding import Finding, Location
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.instructions import build_steps, find_values
from agent.rules.location import NOUNS
from agent.rules.rule import Fail, Result
from tests.agent.rules.build import server, virtual
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
from tests.texts import PLACEHOLDER, list_devices, list_texts

SERVER, GUEST = server(), virtual(server())


@pytest.mark.parametrize("rule", sorted(tables()))
def test_a_rule_answers_as_its_rows_state(rule: str) -> None:
    """Faults with severity and cause, what is unknown, does not apply or passes; words; and findings to act on."""
    healthy: dict[str, States] = {}
    built: dict[tuple[str, str], set[bool]] = {}
    failures = []
    for row in rows(rule).values():
        if row.machine not in healthy:
            healthy[row.machine] = healthy_states(rules()[rule], row.machine)
        case = machine_of(tables()[rule], row)
        answers = list(rules()[rule].check(case))
        if lines := list(dict.fromkeys(check_row(rule, row, case, answers, healthy[row.machine]))):
            more = f" (and {len(lines) - 1} more)" if lines[1:] else ""
            failures.append(f'{rule} on "{row.machine}", "{row.name}": {lines[0]}{more}')
        for part in _list_parts(answers):
            built.setdefault((part.situation, part.cause), set()).add(bool(part.remedy))
    failures += [line for key, has_remedy in built.items() for line in check_remedies(rule, *key, has_remedy)]
    assert not failures, "\n".join(["", *failures])


def check_row(rule: str, row: Row, case: RuleContext, answers: list[Result], healthy: States) -> Iterator[str]:
    """What differs from a row, each in a line."""
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
        for finding in judge(case, [rules()[rule]])[1]:
            yield from check_finding(finding, _list_own(case, answers))


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


def check_finding(finding: Finding, own: set[str]) -> Iterator[str]:
    """Whatever makes a rule fire: steps for its own devices, an impact, and no value of the device left to fill in."""
    if not finding.steps or not all(step.do for step in finding.steps):
        yield "expected steps that state something, got " + (repr(finding.steps) if finding.steps else "none")
    if unfilled := [text for text in list_texts(finding) if PLACEHOLDER.search(text)]:
        yield f"expected no placeholder, got {unfilled}"
    if re.search(r"\d %|(?<![\d.])0%", finding.impact):
        yield f"expected a share that is no 0% and without a space, got {finding.impact!r}"
    if others := list_devices(finding) - own:
        yield f"expected no commands for {sorted(others)}, got {finding.steps}"


def _list_own(case: RuleContext, answers: list[Result]) -> set[str]:
    """Whatever a command may be for: values of the devices of the faults, and what the faults themselves name."""
    parts = _list_parts(answers)
    values = {value for part in parts for row in find_values(case, part) for value in row.values()}
    texts = [f"{part.remedy} {part.summary} {' '.join(sorted(part.ids))}" for part in parts]
    return values | {word.strip("`,;:.") for text in texts for word in text.split()}


def _list_parts(answers: list[Result]) -> list[Fail]:
    """The faults and their parts."""
    return [part for answer in answers if isinstance(answer, Fail) for part in (answer, *answer.parts)]


def check_remedies(rule: str, situation: str, cause: str, has_remedy: set[bool]) -> Iterator[str]:
    """A remedy that faults of all rows build is printed on some form factor; one that no page prints is not built."""
    printed = {_prints_remedy(rule, situation, cause, form) for form in (*NOUNS, None)}
    if True not in has_remedy and printed == {True}:
        yield f"{rule} {situation or cause}: no remedy for its step"
    if True in has_remedy and True not in printed:
        yield f"{rule} {situation or cause}: no page prints its remedy"


def _prints_remedy(rule: str, situation: str, cause: str, form: str | None) -> bool:
    fault = Fail("node", "node", "", "", remedy="THE REMEDY", situation=situation, cause=cause)
    case = GUEST if form == "virtual" else SERVER
    steps = build_steps(case, rule, fault, Location(part="GPU", form_factor=form))
    return any("THE REMEDY" in step.do for step in steps)


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
    used = {guard for table in tables().values() for names in table.circumstances.values() for guard in names}
    assert used == set(guards())


@pytest.mark.parametrize("path", sorted(FOLDER.parent.rglob("*.toml")), ids=lambda path: path.name)
def test_lines_of_tables_are_short(path: Path) -> None:
    """120 letters, but for outputs of tools, which are as the tools print them."""
    text = re.sub(r'""".*?"""|\'\'\'.*?\'\'\'', "", path.read_text(), flags=re.DOTALL)
    assert [] == [line for line in text.splitlines() if len(line) > 120]
