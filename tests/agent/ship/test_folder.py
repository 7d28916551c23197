"""A folder as the target: whole files, no folder of ours, and no run that hangs with a file server."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

from agent.ship.folder import Folder
from agent.ship.parcel import parcel
from tests.agent.ship.servers import (
    Run,
    report,
)


def test_a_file_drop(run: Run, tmp_path: Path) -> None:
    """Whole, named by host and time, and the same report is the same file; what a killed run left there is replaced."""
    drop = tmp_path / "drop"
    drop.mkdir()
    name = parcel(report()).file_name("gzip")
    (drop / f".{name}.tmp").write_text("half")
    for _ in range(2):
        assert run.ship(Folder(str(drop), "gzip"), report()).all_gone

    assert [f"n1_20260115T000000Z_{parcel(report()).digest[:16]}.json.gz"] == [each.name for each in drop.iterdir()]
    assert report() == gzip.decompress((drop / name).read_bytes())


def test_a_drop_that_is_not_there_costs_no_report(run: Run, tmp_path: Path) -> None:
    """It may be a mount; it is not made."""
    made = run.ship(Folder(str(tmp_path / "none"), "gzip"), report())

    assert (0, 1) == (made.taken, made.waiting)
    assert "No such file" in (made.why or "")
    assert not (tmp_path / "none").exists()


def test_a_drop_that_hangs_does_not_hold_the_run(run: Run, tmp_path: Path) -> None:
    """As on a file server that is gone: here, a file that cannot be opened without somebody at its other end."""
    drop = tmp_path / "drop"
    drop.mkdir()
    name = parcel(report()).file_name("gzip")
    target = Folder(str(drop), "gzip")
    os.mkfifo(drop / name)
    target._write = lambda *_: (drop / name).read_bytes()  # type: ignore[method-assign]  # the one call that hangs
    started = time.monotonic()
    made = run.ship(target, report(), seconds=1)

    assert time.monotonic() - started < 8
    assert "hangs" in (made.why or "")
