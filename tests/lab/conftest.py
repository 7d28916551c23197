"""The lab's guests, who runs which of its tests, and the rows of its table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PART, PARTS
from tests.lab.batches import BATCHES, IB, ROCE
from tests.lab.judging import Lab
from tests.lab.place import LAB, ROOT, ROWS, absent
from tests.lab.qemu.frozen import freeze_shown
from tests.lab.qemu.guest import Guest, GuestFailed
from tests.lab.qemu.shown import MACHINES

LONGEST = (ROCE, IB, "test_two_guests.py", "test_systemd.py", "test_features.py")
ALONE = ("test_hanging.py", "test_watch.py")
BUDGET_VARIABLE = "FABRICSCOPE_LAB_SECONDS"
RUN_BEGAN = time.monotonic()
RecordRow = Callable[[str, str, str], None]
BEGAN = pytest.StashKey[float]()


def started(name: str, wire: int | None = None, shape: str | None = None) -> Guest:
    """A guest, or the test is skipped where there is no lab."""
    why = absent()
    if why:
        pytest.skip(why)
    if shape in MACHINES:
        freeze_shown(shape)
    try:
        return Guest(name, wire, shape=shape)
    except GuestFailed:  # an emulated CPU stands still now and then
        return Guest(name, wire, shape=shape)


@pytest.fixture(scope="module")
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    """The guest of a file of tests; it begins with the machine SHOWN of that file, if it has one.

    A test that uses it asks for `real_commands` too.
    """
    one = started(f"-{request.path.stem}", shape=getattr(request.module, "SHOWN", None))
    yield one
    one.close()


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A guest for all that ask for the same machine, and what was said of machines that it showed."""
    one = Lab(lambda shape: started(f"-{os.environ.get('PYTEST_XDIST_WORKER', 'causes')}", shape=shape))
    yield one
    one.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest groups come first; of a part of the lab (`make lab PART=2/3`) each third group."""
    groups = {item: group(item.nodeid) for item in items if item.get_closest_marker("lab")}
    items.sort(key=lambda item: LONGEST.index(groups[item]) if groups.get(item) in LONGEST else len(LONGEST))
    in_order = list(dict.fromkeys(groups[item] for item in items if item in groups))
    others = set(in_order).difference(in_order[PART - 1 :: PARTS])
    items[:] = [item for item in items if groups.get(item) not in others]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where several processes run tests, those of one group run in one of them, in their order."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGuest(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False
    return ByGuest(config, log)


def group(name: str) -> str:
    """Which tests ask for the same guest: those of one of the lab's machines, those of a file; some are alone."""
    words = re.split(r"[\[\]]", name)
    shapes = {batch_name: BATCHES[batch_name].shape for batch_name in BATCHES} | {IB: IB, ROCE: ROCE}
    for item, shape in shapes.items():
        if len(words) > 1 and f"{words[1]}-".startswith(f"{item}-"):
            return shape
    return name if any(item in name for item in ALONE) else name.partition("::")[0].rpartition("/")[2]


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
def record_row(request: pytest.FixtureRequest) -> Iterator[RecordRow]:
    """Notes a row of docs/lab.md: scenario, what the kernel showed, what fabricscope reported; seconds are added."""
    moments = [request.node.stash[BEGAN]]
    rows: list[list[str]] = []

    def tell(scenario: str, kernel: str, expected: str) -> None:  # after what it tells was seen: what failed has no row
        moments.append(time.monotonic())
        rows.append([scenario, kernel, expected, f"{moments[-1] - moments[-2]:.0f}"])

    yield tell
    if rows:
        name = request.node.nodeid
        ROWS.mkdir(exist_ok=True)
        (ROWS / f"{zlib.crc32(name.encode()):08x}.json").write_text(json.dumps({name: rows}, indent=1))


def above_info(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Findings that are more than information: rule, severity, subject."""
    result = [(finding["rule"], finding["severity"], finding["subject"]) for finding in report["findings"]]
    return sorted(item for item in result if item[1] != "info")


def scan_here(source: Path, *options: str) -> dict[str, Any]:
    """The report of a source on this host."""
    command = [sys.executable, "-m", "fabricscope", "scan", "--source", str(source), "--format", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=60)
    report: dict[str, Any] = json.loads(done.stdout)
    return report
