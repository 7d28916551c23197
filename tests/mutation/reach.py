"""Which test reaches which line of the rules: only those can notice a change there.

A rule's tests are its family's in tests/agent/rules and its rows in tests/matrix/rules; causes of tests/matrix are laid
over whole machines, which takes long: they are asked only where nothing else noticed.
"""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

import pytest

from agent.rules.catalogue import every_rule
from tests.matrix.cases import causes
from tests.mutation.mutants import Mutant
from tests.mutation.patch import forget

# Tests of what all families share: its own, and those of some families, which together use all of it; all tests of
# all families would take minutes for every mutant that none of them notices
_OF_SHARED = ("pcie", "nvlink", "infiniband")
_UNIT_TESTS = "tests/agent/rules/"


class Reach:
    """Follows tests through the lines of the rules' modules."""

    def __init__(self, rules: Path, modules: set[str]) -> None:
        self._files = {importlib.import_module(m).__file__: m for m in modules}  # some are imported when needed
        self._by_line: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
        self._seconds: dict[pytest.Item, float] = {}
        self._wanted: dict[CodeType, bool] = {}
        self.broken: list[pytest.Item] = []

    def follow(self, item: pytest.Item) -> None:
        """Run one test and keep the lines that it comes through; one that fails as things are is left out."""
        seen: set[tuple[str, int]] = set()
        files = self._files

        def line(frame: FrameType, event: str, _: Any) -> Any:
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            return line

        def call(frame: FrameType, event: str, _: Any) -> Any:
            return line(frame, event, _) if frame.f_code.co_filename in files else None

        forget()
        start = perf_counter()
        sys.settrace(call)
        try:
            execute(item)
        except BaseException as e:  # noqa: BLE001  # a test may fail by anything
            if not isinstance(e, pytest.skip.Exception):
                self.broken.append(item)
            return
        finally:
            sys.settrace(None)
        self._seconds[item] = perf_counter() - start
        for file, number in seen:
            self._by_line[files[file], number].append(item)

    def tests(self, mutant: Mutant) -> list[pytest.Item]:
        """Tests that reach a mutant: its family's, for what all share some families'; the quickest first."""
        if mutant.owner:
            keys = [(mutant.module, number) for number in mutant.lines]
            result = {item for key in keys for item in self._by_line.get(key, ())}
        else:  # a constant
            result = set(self._seconds)
        families = families_of(mutant)
        mine = [item for item in result if family_of(item) in families]
        own = f"test_{mutant.module.rpartition('.')[2]}.py"
        return sorted(mine, key=lambda item: (own not in item.nodeid, self._seconds[item], item.nodeid))


def families_of(mutant: Mutant) -> tuple[str, ...]:
    """The families whose tests may notice a mutant: its own, or some of those that use what all share."""
    return (family,) if (family := family_of_module(mutant.module)) else ("", *_OF_SHARED)


def family_of_module(module: str) -> str:
    """The package of a rule's module; "" of what all families share."""
    parts = module.split(".")
    return parts[2] if len(parts) > 3 else ""


def family_of(item: pytest.Item) -> str | None:
    """The family of rules that a test is of; "" of what they share, None of none."""
    if item.nodeid.startswith(_UNIT_TESTS):
        return item.nodeid.partition("::")[0].removeprefix(_UNIT_TESTS).rpartition("/")[0]  # "/" may be in an id
    request: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    if "rule" in request:  # a row
        return _families().get(request["rule"])
    cause = causes().get(request.get("name", ""))
    names = [*(result[0] for result in (*cause.finds, *cause.informs)), *cause.unknown] if cause else []
    return next((_families()[name] for name in names if name in _families()), None)


@cache
def _families() -> dict[str, str]:
    return {rule.name: family_of_module(rule.check.__module__) for rule in every_rule()}


def execute(item: pytest.Item) -> None:
    """Set up, run and tear down one test; what it raises is raised."""
    hook = item.ihook
    try:
        hook.pytest_runtest_setup(item=item)
        # tmp_path asks at its end for the report of the set-up
        hook.pytest_runtest_makereport(item=item, call=pytest.CallInfo.from_call(lambda: None, "setup"))
        hook.pytest_runtest_call(item=item)
    finally:
        hook.pytest_runtest_teardown(item=item, nextitem=None)
