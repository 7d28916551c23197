"""Who may read what is written: files with facts of a host have one mode, and a copy is never for more users."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.ship.run import RetryPolicy, ship
from agent.ship.target import FolderTarget
from fixtures import build
from tests.agent.fleet.small import report as small_report
from tests.agent.fleet.small import take, taken
from tests.agent.ship.servers import Down, Run, report
from tests.machines import SMALL


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """What a login shell has."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*") if not path.is_dir()
    }


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_copies_of_a_report_are_not_for_more_users_than_the_report(mode: int, tmp_path: Path) -> None:
    """In the spool and in a folder of `ship --to`: as the report, and never for all users."""
    shipping = Run(tmp_path / "node", [])
    shipping.folder.mkdir()
    source = tmp_path / "report.json"
    source.write_bytes(report())
    source.chmod(mode)
    drop = tmp_path / "drop"
    drop.mkdir()
    ship([str(source)], None, shipping.spool(), 1e12, RetryPolicy(), shipping.warnings.append)
    waiting = modes(shipping.path / "waiting")
    assert [mode & 0o640] == list(waiting.values())
    ship([], FolderTarget(str(drop), "gzip"), shipping.spool(), 1e12, RetryPolicy(), shipping.warnings.append)
    assert [mode & 0o640] == list(modes(drop).values())


def test_a_spool_is_for_its_user_alone(tmp_path: Path) -> None:
    """As the state directory; also what is aside and what is counted."""
    shipping = Run(tmp_path, [])
    shipping.ship(Down(), report())
    (shipping.path / "waiting" / shipping.waiting[0]).write_bytes(b"damaged")
    shipping.ship(Down())

    assert 0o700 == shipping.path.stat().st_mode & 0o777
    assert {"lock": 0o600} == {name: mode for name, mode in modes(shipping.path).items() if name == "lock"}
    assert {0o640} == {mode for name, mode in modes(shipping.path).items() if name != "lock"}


def test_a_dataset_is_not_for_all_users(tmp_path: Path) -> None:
    """Tables, manifest, what is known, what was refused."""
    pytest.importorskip("duckdb")
    take(tmp_path / "d", small_report("n1"))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.json").write_text("{")
    taken(tmp_path / "d", tmp_path / "bad")
    found = modes(tmp_path / "d")

    assert len(found) > 20
    assert {0o600, 0o640} == set(found.values())
    assert {name for name, mode in found.items() if mode == 0o600} == {".lock"} | {
        name for name in found if name.startswith("quarantine/") and not name.endswith("reasons.ndjson")
    }


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        (["scan", "--format", "json"], 0o640),
        (["scan", "--format", "html"], 0o640),
        (["scan", "--format", "text"], 0o640),
        (["export", "prometheus"], 0o644),
        (["export", "nfd"], 0o644),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_outputs_are_for_other_users_only_where_another_program_reads_them(
    arguments: list[str], mode: int, tmp_path: Path
) -> None:
    """The collector of Prometheus runs as its own user; a page of a host has its serial numbers."""
    build.write_capture(SMALL, None, tmp_path / "machine")

    assert 0 == run([*arguments, "--source", str(tmp_path / "machine"), "--output", str(tmp_path / "out")])
    assert mode == (tmp_path / "out").stat().st_mode & 0o777
