"""Which test reaches which line of the rules: only those can notice a change there."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.mutation.mutants import Mutant

# Tests of what all families share: its own, and those of three families, which together use all of it; all tests of
# all families would take minutes for every mutant that none of them notices
_OF_SHARED = ("test_", "pcie/", "nvlink/", "infiniband_runtime/")


class Reach:
    """Follows tests through the lines of the rules' modules."""

    def __init__(self, rules: Path, modules: set[str]) -> None:
        self._files = {sys.modules[m].__file__: m for m in modules if m in sys.modules}
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
        """Tests that reach a mutant: its family's, for what all share some families'; those of its rule come first."""
        if mutant.owner:
            keys = [(mutant.module, number) for number in mutant.lines]
            found = {item for key in keys for item in self._by_line.get(key, ())}
        else:  # a constant
            found = set(self._seconds)
        own = f"test_{mutant.module.rpartition('.')[2]}.py"
        families = (f"{mutant.module.split('.')[2]}/",) if mutant.module.count(".") > 2 else _OF_SHARED
        mine = [item for item in found if item.nodeid.startswith(tuple(f"tests/agent/rules/{f}" for f in families))]
        return sorted(mine, key=lambda item: (own not in item.nodeid, self._seconds[item], item.nodeid))


def execute(item: pytest.Item) -> None:
    """Set up, run and tear down one test; what it raises is raised."""
    hook = item.ihook
    try:
        hook.pytest_runtest_setup(item=item)
        hook.pytest_runtest_call(item=item)
    finally:
        hook.pytest_runtest_teardown(item=item, nextitem=None)
