"""A real disk without room, on our side and on the other: what can be kept is, and the rest is counted."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.ship.run import RunResult
from agent.ship.run import ship as run_ship
from agent.ship.target import FolderTarget, Target
from tests.agent.ship.servers import QUICK, Down, Run, Up, report


@pytest.fixture
def small_disk(tmp_path: Path, real_commands: None) -> Iterator[Path]:
    """A real file system of 160 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "fabricscope-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path) -> None:
    """Leave no room."""
    with contextlib.suppress(OSError), open(disk / "ballast", "ab", buffering=0) as file:
        while True:
            file.write(b"x" * 512)


def test_a_full_disk(small_disk: Path) -> None:
    """A healthy report that waits goes for a finding; what has no room is tried at once; all of it is counted."""
    run = Run(small_disk.parent, [])
    on_disk = Run(small_disk, run.warnings)
    spool = on_disk.path

    def ship(target: Target, *reports: bytes) -> RunResult:
        paths = [run.file(data, f"{number}.json") for number, data in enumerate(reports)]
        return run_ship(paths, target, on_disk.spool(), time.monotonic() + 30, QUICK, run.warnings.append)

    ship(Down(), *[report(number, pad=2500) for number in range(5)])
    fill(small_disk)
    result = ship(Down(), report(10, "error", pad=2500))
    assert (1, 5) == (result.dropped["healthy"], result.waiting)
    assert 1 == sum("_error_" in name for name in on_disk.waiting)

    fill(small_disk)
    result = ship(Down(), report(0, "ok", pad=2400))  # the oldest of all, and healthy
    assert (1, 5) == (result.dropped["healthy"], result.waiting)
    fill(small_disk)
    up = Up()
    result = ship(up, report(11, "ok", pad=9000))
    assert (6, True) == (result.accepted, result.all_handed_over)
    (small_disk / "ballast").unlink()
    ship(Up())
    assert 2 == on_disk.state["dropped"]["healthy"]  # type: ignore[index]  # a map
    assert 6 == on_disk.state["handed_over"]
    assert spool.exists()


def test_a_full_drop(small_disk: Path, tmp_path: Path) -> None:
    """The other end is full: nothing half is left there, and the report waits."""
    fill(small_disk)
    run = Run(tmp_path, [])
    result = run.ship(FolderTarget(str(small_disk), "none"), report(pad=5000))

    assert 1 == result.waiting
    assert "No space left" in (result.reason or "")
    assert ["ballast"] == [item.name for item in small_disk.iterdir()]
    (small_disk / "ballast").unlink()
    assert run.ship(FolderTarget(str(small_disk), "none")).all_handed_over
