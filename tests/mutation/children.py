"""A process for every mutant: it ends after it, so that no mutant meets another."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn

from tests.mutation.checks import Check
from tests.mutation.mutants import Mutant
from tests.mutation.patch import put
from tests.mutation.reach import Reach

CPU_SECONDS, CPU_SECONDS_OF_ROW = 20, 2  # of one check: a mutant that loops for ever is noticed, too
ENDLESS = "it does not end"


class Outcome(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    tests: int  # how many reach it
    noticed_by: tuple[str, ...]  # the first check that failed, or all rows that did; (): survived


class CannotRun(Exception):
    """What the harness needs does not hold: a check fails on the code as it is, a mutant cannot be made."""


def survivors(mutants: list[Mutant], reach: Reach, jobs: int, *, every: bool = False) -> list[Outcome]:
    """Every mutant with the check that notices it first, or with every row that does, in the order given; `jobs` at a
    time.

    Raises CannotRun, before any mutant where a check fails without one.
    """
    _require_all_pass(reach.lines)
    outcomes: dict[int, Outcome] = {}
    running: dict[int, tuple[int, list[Check], int]] = {}
    for number, mutant in enumerate(mutants):
        checks = reach.checks(mutant)
        if not checks:
            outcomes[number] = Outcome(mutant, 0, ())
            continue
        while len(running) >= jobs:
            _reap(mutants, running, outcomes)
        pid, read = _fork(lambda: put(mutant), checks, every=every)  # noqa: B023  # the child runs it at once
        running[pid] = (number, checks, read)
    while running:
        _reap(mutants, running, outcomes)
    return [outcomes[number] for number in range(len(mutants))]


def _require_all_pass(checks: Iterable[Check]) -> None:
    """Run all checks once more, as each mutant does, on the code as it is: what fails now would notice every mutant."""
    listed = list(checks)
    pid, read = _fork(lambda: None, listed, every=False)
    if failed := _outcome(os.waitpid(pid, 0)[1], read, listed):
        raise CannotRun(f"{failed[0]} fails without a mutant when it is run again")


def _fork(prepare: Callable[[], None], checks: list[Check], *, every: bool) -> tuple[int, int]:
    """A child that runs the checks, and where it writes what noticed."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        _run_child(prepare, checks, write, every=every)
    os.close(write)
    return pid, read


def _run_child(prepare: Callable[[], None], checks: list[Check], write: int, *, every: bool) -> NoReturn:
    """Writes the numbers of the checks that noticed, and at the end a full stop; nothing where the child was ended."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        prepare()
    except BaseException as e:  # noqa: BLE001  # the parent raises it
        os.write(write, f"cannot be made: {e!r}".encode())
        os._exit(0)
    noticed = False
    for number, check in enumerate(checks):
        if noticed and not (every and check.is_quick):
            continue
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_OF_ROW if check.is_quick else CPU_SECONDS)
        try:
            check.run()
        except BaseException:  # noqa: BLE001  # a test may fail by anything
            os.write(write, f"{number} ".encode())
            noticed = True
    os.write(write, b".")
    os._exit(0)


def _reap(
    mutants: list[Mutant], running: dict[int, tuple[int, list[Check], int]], outcomes: dict[int, Outcome]
) -> None:
    pid, status = os.wait()
    number, checks, read = running.pop(pid)
    try:
        noticed = _outcome(status, read, checks)
    except CannotRun as e:
        raise CannotRun(f"{mutants[number].name} {e}") from e
    outcomes[number] = Outcome(mutants[number], len(checks), noticed)


def _outcome(status: int, read: int, checks: list[Check]) -> tuple[str, ...]:
    """What noticed. Raises CannotRun where the child was not ended by its own clock and did not reach its end."""
    with os.fdopen(read) as pipe:
        written = pipe.read()
    endless = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
    if not endless and not written.endswith("."):
        raise CannotRun(written or f"ended its process, status {status}")
    noticed = tuple(checks[int(number)].name for number in written.rstrip(".").split())
    return (*noticed, ENDLESS) if endless else noticed
