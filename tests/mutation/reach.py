"""Which check reaches which line of the rules: only those can notice a change there."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from time import process_time
from types import CodeType, FrameType
from typing import Any

from tests.mutation.checks import Check, family_of_module
from tests.mutation.mutants import Mutant
from tests.mutation.patch import forget

# Tests of what all families share: its own, and those of some families, which together use all of it; all tests of
# all families would take minutes for every mutant that none of them notices
_OF_SHARED = ("pcie", "nvlink", "infiniband")

_TOO_LONG_SECONDS = 3  # a test of speed goes through all lines, and would be asked of every mutant that survives

Line = tuple[str, int]
CodeLine = tuple[CodeType, int]


class Reach:
    """Follows checks through the lines of the rules' modules."""

    def __init__(self, modules: set[str]) -> None:
        self._files = {importlib.import_module(m).__file__: m for m in modules}  # some are imported when needed
        self._by_line: dict[Line, list[Check]] = defaultdict(list)
        self.lines: dict[Check, set[Line]] = {}
        self.seconds: dict[Check, float] = {}

    def follow(self, check: Check) -> None:
        """Run one check and keep the lines that it comes through; what it raises is raised."""
        seen: set[CodeLine] = set()
        files = self._files

        def line(frame: FrameType, event: str, _: Any) -> Any:
            seen.add((frame.f_code, frame.f_lineno))
            return line

        def call(frame: FrameType, event: str, _: Any) -> Any:
            return line(frame, event, _) if frame.f_code.co_filename in files else None

        forget()
        start = process_time()
        sys.settrace(call)
        try:
            check.run()
        finally:
            sys.settrace(None)
        seconds = process_time() - start
        if seconds > _TOO_LONG_SECONDS:
            return
        self.seconds[check] = seconds
        self.lines[check] = {(files[code.co_filename], number) for code, number in seen}
        for key in self.lines[check]:
            self._by_line[key].append(check)

    def checks(self, mutant: Mutant) -> list[Check]:
        """Checks that reach a mutant: those of its own rule first, then the quickest."""
        if mutant.owner:
            keys = [(mutant.module, number) for number in mutant.lines]
            result = {check for key in keys for check in self._by_line.get(key, ())}
        else:  # a constant
            result = set(self.lines)
        return sorted(result, key=lambda check: (mutant.module not in check.modules, self.seconds[check], check.name))


def families_of(mutant: Mutant) -> tuple[str, ...]:
    """The families whose tests may notice a mutant: its own, or some of those that use what all share."""
    return (family,) if (family := family_of_module(mutant.module)) else ("", *_OF_SHARED)
