"""Each cause, on each machine that it applies to, gives exactly the findings that it should; their page is complete."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from tests.conftest import IN_FULL, sample_of
from tests.matrix import table
from tests.matrix.cases import causes, filled, pairs
from tests.matrix.together import seen


def judged_pairs() -> list[tuple[str, str]]:
    """Every cause on every machine that it applies to; of a plain run a third, each on one, another for the next."""
    every = pairs()
    if IN_FULL:
        return list(sample_of(every))
    machines: dict[str, list[str]] = {}
    for name, shape in every:
        machines.setdefault(name, []).append(shape)
    of_each = [(name, shapes[at % len(shapes)]) for at, (name, shapes) in enumerate(machines.items())]
    return list(sample_of(of_each))


@pytest.mark.parametrize(("name", "shape"), judged_pairs())
def test_a_cause_is_found_once_and_by_name(name: str, shape: str) -> None:
    """Nothing else is said of that machine above info."""
    cause = causes()[name]
    report = seen(cause, shape)
    result = [(f.rule, f.severity, f.subject) for f in report.findings if f.severity != "info"]

    assert sorted(filled(cause.finds, shape)) == sorted(result)
    infos = {(f.rule, f.subject) for f in report.findings if f.severity == "info"}
    assert set(filled(cause.informs, shape)) <= infos
    assert set(cause.unknown) <= {check.rule for check in report.checks if check.state == "unknown"}


def test_every_cause_is_on_a_machine() -> None:
    """A cause that fits nowhere tests nothing."""
    assert set(causes()) == {name for name, _ in pairs()}
    assert IN_FULL or list(sample_of(list(causes()))) == list(dict.fromkeys(n for n, _ in judged_pairs()))


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
