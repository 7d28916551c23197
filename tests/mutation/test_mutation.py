"""Mutants of the rules: what a mutant is, and that of a few of them no new one goes unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutation.children import CannotRun, survivors
from tests.mutation.mutants import mutants
from tests.mutation.patch import look_around, put
from tests.mutation.reach import Reach
from tests.mutation.run import list_mutants

ROOT = Path(__file__).resolve().parents[2]
FAMILY = "cxl"  # a small one: CI runs a 60th of all mutants, `make mutants` all


@pytest.mark.release
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("real_commands")
def test_no_new_mutant_goes_unnoticed() -> None:
    """A new one wants a test of its guard; one that is noticed now leaves known.txt."""
    command = [sys.executable, "-m", "tests.mutation.run", FAMILY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)

    assert 0 == done.returncode, f"{done.stdout[-5000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("if a: return", ["`a` -> `False`", "`a` -> `True`"]),
        ("return not (a and b)", ["`not (a and b)` -> `True`", "`a and b` without `a`", "`a and b` without `b`"]),
        ("return a or b.c(d)", ["`a or b.c(d)` without `a`", "`a or b.c(d)` without `b.c(d)`"]),
        ("x = a or ''", []),
        ("while True: a()", []),
        ("yield Unknown(a, 'b' if c else 'd')", []),
        ("yield Fail(a, summary='b' if c else 'd')", []),
        ("return a.unknown(b or c)", []),
        ("return a.not_applicable('d' if b < c else 'e', detail=b or c)", []),
        ("raise E(f'{a if b else c}')", []),
        ("[a for a in b if c]", ["`c` -> `False`", "`c` -> `True`"]),
        ("any(a is b for a in c)", ["`a is b` -> `False`", "`a is b` -> `True`"]),
        ("f(a < b)", ["`a < b` -> `False`", "`a < b` -> `True`", "`a < b` -> `a <= b`"]),
        ("if a and b >= c: d()", ["`a and b >= c` -> `False`", "`a and b >= c` without `a`",
            "`a and b >= c` without `b >= c`", "`b >= c` -> `b > c`"]),
        ("while a == 2: b()", ["`a == 2` -> `False`", "`a == 2` -> `True`",
            "`a == 2`: `2` -> `1`", "`a == 2`: `2` -> `3`"]),
        ("if a:\n  b()\n  return", ["no return after `a`", "`a` -> `False`", "`a` -> `True`"]),
    ],
)  # fmt: skip
def test_what_is_changed(code: str, changes: list[str]) -> None:
    """Conditions, their operands, limits and early ends; no text."""
    body = code.replace("\n", "\n  ")

    assert [f"m.f: {text}" for text in changes] == [mutant.name for mutant in mutants("m", f"def f():\n  {body}\n")]


def test_constants_move_by_a_step() -> None:
    """Whole numbers by one, others by a tenth; of a threshold its default."""
    result = [
        mutant.name
        for mutant in mutants("m", "A = 5\nB: float = 2.0\nC = Threshold('a.b', 1.0, 'what', 'unit')\nD = 'x'")
    ]

    assert ["4", "6", "1.8", "2.2", "0.9", "1.1"] == [name.rpartition("-> ")[2].strip("`") for name in result]


def test_two_of_the_same_have_two_names() -> None:
    """The list of known ones tells them apart."""
    names = [item.name for item in mutants("m", "def f():\n  if a: b()\n  if a: c()\n")]

    assert len(names) == len(set(names)) == 4


def test_parts_are_all_mutants_and_each_is_of_few_families() -> None:
    """What a part tries, no other tries again; its first and its last are neighbours."""
    names = ["neuron", "affinity"]
    every = [mutant.name for mutant in list_mutants(names, "1/1")]
    parts = [[mutant.name for mutant in list_mutants(names, f"{part}/4")] for part in (1, 2, 3, 4)]

    assert every == [name for part in parts for name in part]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(".affinity." in name for name in parts[0])
    assert all(".neuron." in name for name in parts[3])


class OnceCheck:
    """A check that passes in one process and not in the next."""

    family, modules, is_quick = "", frozenset[str](), True

    def __init__(self, name: str, end: Callable[[], None]) -> None:
        self.name, self._end, self._pid = name, end, os.getpid()

    def run(self) -> None:
        if os.getpid() != self._pid:
            self._end()


def _fail() -> None:
    raise AssertionError


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (_fail, "once fails without a mutant when it is run again"),
        (lambda: os._exit(3), "ended its process, status 768"),
    ],
)
def test_a_check_that_fails_without_a_mutant_is_an_error(end: Callable[[], None], message: str) -> None:
    """Else it would notice every mutant that it reaches."""
    reach = Reach(set())
    reach.follow(OnceCheck("well", lambda: None))
    assert [] == survivors([], reach, 1)

    reach.follow(OnceCheck("once", end))
    with pytest.raises(CannotRun, match=f"^{message}$"):
        survivors([], reach, 1)


TWICE = """import sys, pytest
from tests.mutation.checks import TestCheck
class Twice:
    def pytest_runtestloop(self, session):
        for item in session.items * 2:
            TestCheck(item).run()
        return True
sys.exit(pytest.main(["-pno:cacheprovider", sys.argv[1]], plugins=[Twice()]))
"""


@pytest.mark.usefixtures("real_commands")
def test_a_test_with_fixtures_can_be_run_again(tmp_path: Path) -> None:
    """Its folder is a new one each time."""
    file = tmp_path / "test_own.py"
    file.write_text("def test_own(tmp_path):\n    (tmp_path / 'own').mkdir()\n")
    done = subprocess.run(
        [sys.executable, "-c", TWICE, str(file)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )

    assert 0 == done.returncode, done.stdout[-2000:]


SHELVED = """from __future__ import annotations
from functools import cache, cached_property, partial
def _guard(limit, number): return number < limit
def _made(limit):
    def inner(number): return number < limit
    return inner
def decorated(check): return (check,)
@decorated
def kept(number): return number < 5
@cache
def cached(number): return number < 5
TABLE = {"lambda": (lambda n: n < 5, lambda n: n < 7), "partial": partial(_guard, 5), "closure": _made(5)}
class Held:
    @staticmethod
    def static(number): return number < 5
    @cached_property
    def property(self): return self.number < 5
HELD = Held()
HELD.number = 5
"""


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("_guard: `number < limit` -> `number <= limit`", "TABLE['partial'](5)"),
        ("_made: `number < limit` -> `number <= limit`", "TABLE['closure'](5)"),
        ("TABLE.<lambda>: `n < 5` -> `n <= 5`", "TABLE['lambda'][0](5)"),
        ("TABLE.<lambda>: `n < 7` -> `n <= 7`", "TABLE['lambda'][1](7)"),
        ("kept: `number < 5` -> `number <= 5`", "kept[0](5)"),
        ("cached: `number < 5` -> `number <= 5`", "cached(5)"),
        ("Held.static: `number < 5` -> `number <= 5`", "Held.static(5)"),
        ("Held.property: `self.number < 5` -> `self.number <= 5`", "HELD.property"),
        ("_made: `number < limit` -> `True`", "TABLE['closure'](9)"),
    ],
)
def test_a_function_is_changed_wherever_it_is_held(
    name: str, ask: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a table, a partial, a closure, below a decorator, behind a cache that knows the old answer."""
    module = ModuleType("agent.rules.shelved")
    module.__file__ = str(tmp_path / "shelved.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(SHELVED, module.__file__, "exec", dont_inherit=True), vars(module))
    (mutant,) = [mutant for mutant in mutants(module.__name__, SHELVED) if mutant.name.endswith(f".{name}")]
    look_around()

    assert not eval(ask, vars(module))
    put(mutant)
    assert eval(ask, vars(module))
