"""What may notice a mutant: a row of tests/matrix/rules, what a rule answers about a healthy machine, a test of pytest.

A row takes less than a millisecond by itself, as its machine is made once for all mutants; pytest has one test for all
rows of a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol

import msgspec
import pytest

from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext
from tests.matrix.cases import causes
from tests.matrix.rule_rows import (
    Row,
    healthy_states,
    machine_of,
    machines_of,
    read_healthy,
    rows,
    rules,
    summarize,
    tables,
)
from tests.matrix.test_rule_rows import check_row

_UNIT_TESTS, _PASTED = "tests/agent/rules/", "tests/agent/fragments/"
ANY = "any"  # the family of a test that scans a text: what it reaches, it may be of


class Check(Protocol):
    """Something that is run on a mutant; it raises where it notices."""

    name: str
    family: str | None  # of rules; "" of what all share, None of none
    modules: frozenset[str]  # it is the first to ask about a mutant of these
    is_quick: bool  # all of its kind can be asked about a mutant

    def run(self) -> None: ...


class RowCheck:
    """A row of a rule's table."""

    is_quick = True

    def __init__(self, rule: str, row: Row) -> None:
        self.name, self.family = f'{rule}: "{row.name}"', families()[rule]
        self.modules = frozenset({rules()[rule].check.__module__})
        self._rule, self._row, self._case = rule, row, machine_of(tables()[rule], row)

    def run(self) -> None:
        rule, case = rules()[self._rule], fresh(self._case)
        answers = list(rule.check(case))
        healthy = healthy_states(rule, self._row.machine)
        for line in check_row(self._rule, self._row, case, answers, healthy):
            raise AssertionError(line)


class HealthyCheck:
    """What a rule answers about a machine without a change."""

    is_quick = True

    def __init__(self, rule: str, machine: str) -> None:
        self.name, self.family = f'{rule}: healthy.toml, "{machine}"', families()[rule]
        self.modules = frozenset({rules()[rule].check.__module__})
        self._rule, self._machine = rule, machine

    def run(self) -> None:
        result = summarize(rules()[self._rule], self._machine)
        assert read_healthy().get(self._rule, {}).get(self._machine) == result


class TestCheck:
    """A test that pytest collected."""

    is_quick = False

    def __init__(self, item: pytest.Item) -> None:
        self.name, self.family, self._item = item.nodeid, family_of(item), item
        self.modules: frozenset[str] = frozenset()

    def run(self) -> None:
        """Set up, run and tear down; what it raises is raised."""
        item, hook = self._item, self._item.ihook
        item._initrequest()  # type: ignore[attr-defined]  # else its fixtures are those of the run before
        try:
            hook.pytest_runtest_setup(item=item)
            # tmp_path asks at its end for the report of the set-up
            hook.pytest_runtest_makereport(item=item, call=pytest.CallInfo.from_call(lambda: None, "setup"))
            hook.pytest_runtest_call(item=item)
        finally:
            hook.pytest_runtest_teardown(item=item, nextitem=None)


def fresh(case: RuleContext) -> RuleContext:
    """The same machine, of which nothing has been worked out yet."""
    return msgspec.structs.replace(case)


def list_rows(wanted: set[str] | None = None) -> Iterator[Check]:
    """Rows, and answers about healthy machines, of all rules of these families, or of all."""
    for rule in tables():
        if wanted is None or families()[rule] in wanted:
            yield from (RowCheck(rule, row) for row in rows(rule).values())
            for machine in sorted(machines_of(rule) | read_healthy().get(rule, {}).keys()):
                yield HealthyCheck(rule, machine)


def family_of_module(module: str) -> str:
    """The package of a rule's module; "" of what all families share."""
    parts = module.split(".")
    return parts[2] if len(parts) > 3 else ""


@cache
def families() -> dict[str, str]:
    """The family of each rule by its name."""
    return {rule.name: family_of_module(rule.check.__module__) for rule in every_rule()}


def family_of(item: pytest.Item) -> str | None:
    """The family of rules that a test is of; "" of what they share, None of none."""
    if item.nodeid.startswith(_PASTED):
        return ANY
    if item.nodeid.startswith(_UNIT_TESTS):
        return item.nodeid.partition("::")[0].removeprefix(_UNIT_TESTS).rpartition("/")[0]  # "/" may be in an id
    request: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    cause = causes().get(request.get("name", ""))
    names = [*(result[0] for result in (*cause.finds, *cause.informs)), *cause.unknown] if cause else []
    return next((families()[name] for name in names if name in families()), None)
