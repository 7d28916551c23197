"""The lab's guest, booted once for all scenarios, and the rows of its table."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.guest import Guest, GuestFailed
from tests.lab.setup import PLACE, ROOT, absent

ROWS = PLACE / "rows.json"
Told = Callable[[str, str, str], None]


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


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    """Notes a row of docs/lab.md: scenario, what the kernel showed, what fabricscope said; seconds are added."""
    began = time.monotonic()
    rows: list[list[str]] = []
    yield lambda scenario, kernel, said: rows.append([scenario, kernel, said])
    if rows:  # a test tells its row last: one that failed has none
        kept = json.loads(ROWS.read_text()) if ROWS.exists() else {}
        kept[request.node.nodeid] = [*rows[-1], f"{time.monotonic() - began:.0f}"]
        ROWS.write_text(json.dumps(kept, indent=1))


def above_info(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Findings that are more than information: rule, severity, subject."""
    found = [(each["rule"], each["severity"], each["subject"]) for each in report["findings"]]
    return sorted(each for each in found if each[1] != "info")


def scan_here(source: Path) -> dict[str, Any]:
    """The report of a source on this host."""
    command = [sys.executable, "-m", "fabricscope", "scan", "--source", str(source), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=60)
    report: dict[str, Any] = json.loads(done.stdout)
    return report
