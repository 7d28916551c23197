"""Mutants of all rules against the rules' tests: `python -m tests.mutation.run [roce.mtu_small | roce ...]`.

Everything is collected and imported once; one run shows which check reaches which line; then every mutant gets a
forked child, which runs the checks that reach it until one fails: the rows of tests/matrix/rules and the tests of its
family, then the rows of all families, the causes of tests/matrix and the pasted texts of tests/agent/fragments. Those
that none notices, nor mypy where only a look for None is left out, are printed and compared with `known.txt`: mutants
that cannot be noticed ("= " and why) and those that no test notices yet ("- "). A check that fails without a mutant
ends the run with 2: it would notice all.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.mutation.checks import ANY, Check, TestCheck, family_of, family_of_module, list_rows
from tests.mutation.children import CannotRun, Outcome, survivors
from tests.mutation.mutants import Mutant, judges, mutants
from tests.mutation.patch import look_around
from tests.mutation.reach import Reach, families_of
from tests.mutation.typed import refused

ROOT = Path(__file__).resolve().parents[2]
RULES, TESTS = ROOT / "agent" / "rules", ROOT / "tests" / "agent" / "rules"
NO_TESTS = Path(__file__)  # where a family has rows alone
LAST = [
    ROOT / "tests" / "matrix" / "test_matrix.py",
    *sorted((ROOT / "tests" / "agent" / "fragments").glob("test_*.py")),
]
KNOWN = Path(__file__).with_name("known.txt")


def modules(wanted: list[str]) -> list[str]:
    """Modules of rules and of what they share: all, or those below the names given."""
    result = [path.relative_to(ROOT) for path in sorted(RULES.rglob("*.py"))]
    names = [name for path in result if judges(name := ".".join(path.with_suffix("").parts))]
    full = [f"agent.rules.{name}" for name in wanted]
    return [n for n in names if not full or any(n == w or n.startswith(f"{w}.") for w in full)]


def known() -> dict[str, str]:
    """Mutants that are known to survive, each with why; "" where a test is missing."""
    listed = {}
    for line in KNOWN.read_text().splitlines():
        if line[:2] in ("- ", "= "):
            name, _, why = line[2:].partition("  # ")
            listed[name] = why
    return listed


class Run:
    """A plugin that runs mutants where pytest would run tests."""

    def __init__(self, wanted: list[Mutant], jobs: int, *, all_rows: bool, every: bool = False) -> None:
        self.wanted, self.jobs, self.all_rows, self.every = wanted, jobs, all_rows, every
        self.outcomes: list[Outcome] = []
        self.lines: dict[str, list[str]] = {}  # that each check comes through
        self.error: Exception | None = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Collected and imported: look where the checks go, then let them meet the mutants."""
        reach = Reach({m.module for m in self.wanted})
        wanted = {family for mutant in self.wanted for family in families_of(mutant)}
        tests = [TestCheck(item) for item in _once_each(session.items) if family_of(item) in {*wanted, ANY}]
        try:
            for check in [*list_rows(None if self.all_rows else wanted), *tests]:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    _follow(reach, check)
            look_around()
            self.outcomes = survivors(self.wanted, reach, self.jobs, every=self.every)
            self.lines = {check.name: sorted(map(str, lines)) for check, lines in reach.lines.items()}
        except CannotRun as e:
            self.error = e
        return True


def _follow(reach: Reach, check: Check) -> None:
    try:
        reach.follow(check)
    except pytest.skip.Exception:
        pass
    except BaseException as e:
        raise CannotRun(f"{check.name} fails without a mutant: {e!r:.300}") from e


def _once_each(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """All tests, but of the machines that a cause is laid over the first."""
    seen = {item: item.callspec.params if hasattr(item, "callspec") else {} for item in items}
    causes = {given["name"]: item for item, given in reversed(seen.items()) if "shape" in given}
    return [item for item, given in seen.items() if causes.get(given.get("name", ""), item) is item]


def list_mutants(names: list[str], part: str) -> list[Mutant]:
    """The mutants of these modules; of all of them, family by family, the "3/20" is the third twentieth.

    A part is of few families: only their tests are collected and followed, which takes longer than the mutants do.
    """
    result = [
        mutant
        for module in sorted(modules(names), key=lambda module: (family_of_module(module), module))
        for mutant in mutants(module, ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text())
    ]
    chosen, parts = (int(word) for word in part.split("/"))
    return result[len(result) * (chosen - 1) // parts : len(result) * chosen // parts]


def run(wanted: list[Mutant], jobs: int) -> list[Outcome]:
    """These mutants and what became of each. Raises CannotRun."""
    families = {family for mutant in wanted for family in families_of(mutant)}
    places = [place for family in sorted(families) if family and (place := TESTS / family).exists()]
    places += sorted(TESTS.glob("test_*.py")) if "" in families else []
    outcomes = _met(wanted, places or [NO_TESTS], jobs, all_rows="" in families)
    typed = refused([o.mutant for o in outcomes if not o.noticed_by and o.mutant.narrows])
    outcomes = [o._replace(noticed_by=("mypy",)) if o.mutant.name in typed else o for o in outcomes]
    lived = [o.mutant for o in outcomes if not o.noticed_by]
    if not lived:
        return outcomes
    later = {o.mutant.name: o for o in _met(lived, LAST, jobs, all_rows=True)}
    return [last._replace(tests=o.tests + last.tests) if (last := later.get(o.mutant.name)) else o for o in outcomes]


def _met(wanted: list[Mutant], where: list[Path], jobs: int, *, all_rows: bool) -> list[Outcome]:
    """These mutants and what became of them among the tests of these places."""
    plugin = Run(wanted, jobs, all_rows=all_rows)
    off = [f"-pno:{name}" for name in ("cacheprovider", "logging", "terminal", "xdist", "faulthandler")]
    code = pytest.main([*off, "-s", "-o", "timeout=0", *map(str, where)], plugins=[plugin])
    if plugin.error:
        raise plugin.error
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise CannotRun(f"the rules' tests cannot be collected: run pytest {' '.join(map(str, where))}")
    return plugin.outcomes


def main() -> int:
    """1 where a mutant survives that is not known to, or, with all parts, a known one is noticed now or is no more; 2
    where the tests fail without a mutant."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.run", description=__doc__)
    parser.add_argument("rules", nargs="*", help="roce.mtu_small, or a whole family: roce; all where none is given")
    parser.add_argument("--part", default="1/1", help="2/20: the second twentieth of the mutants")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="only those of known.txt: which can be struck by now?")
    parser.add_argument("--update", action="store_true", help="write what survives to known.txt")
    parser.add_argument("--verbose", action="store_true", help="tell which test noticed each mutant")
    given = parser.parse_args()
    os.environ["HYPOTHESIS_PROFILE"] = "ci"  # each cause on all of its machines, also where a plain run began this
    listed = known()
    wanted = [m for m in list_mutants(given.rules, given.part) if not given.again or m.name in listed]
    try:
        outcomes = run(wanted, given.jobs)
    except CannotRun as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    lived = {o.mutant.name: o for o in outcomes if not o.noticed_by}
    for outcome in outcomes:
        if given.verbose or (not outcome.noticed_by and outcome.mutant.name not in listed):
            noticed = ", ".join(outcome.noticed_by) or f"none of {outcome.tests} tests"
            print(f"{outcome.mutant.lines[0]:4} {outcome.mutant.name}  <- {noticed}")
    request = tuple(f"{module}{end}" for module in modules(given.rules) for end in (".", ":"))
    request = request if given.rules else ("",)
    here = {mutant.name for mutant in wanted}
    gone = [n for n in listed if n not in lived and n.startswith(request) and (n in here or given.part == "1/1")]
    for name in gone:
        print(f"strike from known.txt, a test notices it now or it is no more: {name}")
    _tell(outcomes)
    if given.update:
        _write(outcomes, listed, gone)
        return 0
    return int(bool(lived.keys() - listed.keys() or (gone and given.part == "1/1")))


def _tell(outcomes: list[Outcome]) -> None:
    result, typed, left = Counter[str](), Counter[str](), Counter[str]()
    for outcome in outcomes:
        for family in (outcome.mutant.module.split(".")[2], "all"):
            result[family] += 1
            typed[family] += outcome.noticed_by == ("mypy",)
            left[family] += not outcome.noticed_by
    for family, count in sorted(result.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        tested = count - typed[family] - left[family]
        print(f"{family:20} {count:5} mutants: {tested:5} by a test, {typed[family]:4} by mypy, {left[family]:4} not")


def _write(outcomes: list[Outcome], listed: dict[str, str], gone: list[str]) -> None:
    lived = {o.mutant.name: "" for o in outcomes if not o.noticed_by}
    names = {name: why for name, why in {**lived, **listed}.items() if name not in gone}
    head = [line for line in KNOWN.read_text().splitlines() if line.startswith("#")]
    lines = [f"= {name}  # {why}" if why else f"- {name}" for name, why in sorted(names.items())]
    KNOWN.write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
