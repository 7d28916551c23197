"""The lab's guest, booted once for all scenarios, and the rows of its table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.batches import IB, ROCE
from tests.lab.guest import Guest, GuestFailed
from tests.lab.judging import Lab
from tests.lab.setup import LAB, PLACE, ROOT, absent

ROWS = PLACE / "rows.json"
BUDGET_VARIABLE = "FABRICSCOPE_LAB_SECONDS"
RUN_BEGAN = time.monotonic()
Told = Callable[[str, str, str], None]
BEGAN = pytest.StashKey[float]()


@pytest.fixture(scope="session")
def guest() -> Iterator[Guest]:
    """The one guest. A test that uses it asks for `real_commands` too."""
    why = absent()
    if why:
        pytest.skip(why)
    try:
        one = Guest()
    except GuestFailed:  # once in some twenty boots an emulated CPU stands still before the kernel has said anything
        one = Guest()
    yield one
    one.close()


@pytest.fixture(scope="session")
def lab(guest: Guest) -> Lab:
    """That guest, and what was said of machines that it showed."""
    return Lab(guest)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file that ask for the same machine come after each other: to show another one takes its time."""
    shapes = [IB, ROCE]
    places = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in items))}

    def order(item: pytest.Item) -> tuple[int, int]:
        shape = getattr(item, "callspec", None) and item.callspec.params.get("shape")
        return places[item.path], shapes.index(shape) if item.path.parent == LAB and shape in shapes else 0

    items.sort(key=order)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seconds of a row begin before its fixtures: those of a module scan for all of its tests.

    Where a run has a bound (CI has one), a test that does not begin within it is left out, and says so.
    """
    bound = float(os.environ.get(BUDGET_VARIABLE, "inf"))
    if item.path.parent == LAB and time.monotonic() - RUN_BEGAN > bound:
        pytest.skip(f"the {bound:g} s of {BUDGET_VARIABLE} are spent: this machine is slow today")
    item.stash[BEGAN] = time.monotonic()


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    """Notes a row of docs/lab.md: scenario, what the kernel showed, what fabricscope said; seconds are added."""
    moments = [request.node.stash[BEGAN]]
    rows: dict[str, list[str]] = {}

    def tell(scenario: str, kernel: str, said: str) -> None:  # after what it tells was seen: what failed has no row
        moments.append(time.monotonic())
        name = f"{request.node.nodeid} {len(rows) + 1}" if rows else request.node.nodeid
        rows[name] = [scenario, kernel, said, f"{moments[-1] - moments[-2]:.0f}"]

    yield tell
    if rows:
        kept = json.loads(ROWS.read_text()) if ROWS.exists() else {}
        ROWS.write_text(json.dumps(kept | rows, indent=1))


def above_info(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Findings that are more than information: rule, severity, subject."""
    found = [(each["rule"], each["severity"], each["subject"]) for each in report["findings"]]
    return sorted(each for each in found if each[1] != "info")


def scan_here(source: Path, *options: str) -> dict[str, Any]:
    """The report of a source on this host."""
    command = [sys.executable, "-m", "fabricscope", "scan", "--source", str(source), "--format", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=60)
    report: dict[str, Any] = json.loads(done.stdout)
    return report
