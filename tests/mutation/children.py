"""A process for every mutant: it ends after it, so that no mutant meets another."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

import pytest

from tests.mutation.mutants import Mutant
from tests.mutation.patch import put
from tests.mutation.reach import Reach, execute

CPU_SECONDS = 10  # of one test: a mutant that loops for ever is noticed, too


class Outcome(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    tests: int  # how many reach it
    noticed_by: str | None  # the first test that failed; None: survived


def survivors(mutants: list[Mutant], reach: Reach, jobs: int) -> list[Outcome]:
    """Every mutant with the test that notices it, in the order given; `jobs` at a time."""
    outcomes: dict[int, Outcome] = {}
    running: dict[int, tuple[int, list[pytest.Item], int]] = {}
    for number, mutant in enumerate(mutants):
        tests = reach.tests(mutant)
        if not tests:
            outcomes[number] = Outcome(mutant, 0, None)
            continue
        while len(running) >= jobs:
            _reap(mutants, running, outcomes)
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            _child(mutant, tests, write)
        os.close(write)
        running[pid] = (number, tests, read)
    while running:
        _reap(mutants, running, outcomes)
    return [outcomes[number] for number in range(len(mutants))]


def _child(mutant: Mutant, tests: list[pytest.Item], write: int) -> None:
    """Says on the pipe which test noticed: its number, "none", or nothing where the process was ended."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    result = "none"
    try:
        put(mutant)
    except BaseException as e:  # noqa: BLE001  # said to the parent
        result = f"cannot be made: {e!r}"
    else:
        for number, item in enumerate(tests):
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            try:
                execute(item)
            except BaseException:  # noqa: BLE001  # a test may fail by anything
                result = str(number)
                break
    os.write(write, result.encode())
    os._exit(0)


def _reap(
    mutants: list[Mutant], running: dict[int, tuple[int, list[pytest.Item], int]], outcomes: dict[int, Outcome]
) -> None:
    pid, _ = os.wait()
    number, tests, read = running.pop(pid)
    with os.fdopen(read) as pipe:
        result = pipe.read()
    if result.startswith("cannot"):
        raise RuntimeError(f"{mutants[number].name} {result}")
    noticed = {"none": None, "": "it does not end"}.get(result, result)
    if noticed is not None and noticed.isdigit():
        noticed = tests[int(noticed)].nodeid
    outcomes[number] = Outcome(mutants[number], len(tests), noticed)
