"""`install-units`: what it writes passes systemd's own checks, and what it refuses is one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.units import list_parts
from tests.conftest import ROOT

ANALYZE = shutil.which("systemd-analyze")
PROGRAM = "/bin/true"
CAPABLE, PLAIN = 2.2, 1.8  # systemd's score, 0 to 10: with CAP_SYS_ADMIN, which alone is most of it, and without


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where units go below a prefix."""
    return tmp_path / "etc/systemd/system"


def install(tmp_path: Path, *more: str) -> int:
    """Every part, below a prefix."""
    every = ",".join(part for part in list_parts() if part != "scan")
    return run(["install-units", "--prefix", str(tmp_path), "--exec", PROGRAM, "--with", every, *more])


def test_the_scan_alone_by_default(tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Readable for everybody, and told in a line each; below a prefix there is nothing to start."""
    assert 0 == run(["install-units", "--prefix", str(tmp_path), "--exec", PROGRAM])
    output = capsys.readouterr()

    assert ["fabricscope-scan.service", "fabricscope-scan.timer"] == sorted(os.listdir(place))
    assert [f"wrote  {place}/{n}" for n in sorted(os.listdir(place))] + [
        f"They start {PROGRAM}"
    ] == output.out.splitlines()
    assert "" == output.err


def test_what_is_written_passes_systemds_checks(tmp_path: Path, place: Path, real_commands: None) -> None:
    """No complaint about any unit, and little that a service could do."""
    if ANALYZE is None:
        pytest.skip("systemd-analyze is not installed")
    assert 0 == install(tmp_path)
    result = [str(path) for path in sorted(place.iterdir())]
    checked = subprocess.run(
        [ANALYZE, "verify", "--man=no", *result], capture_output=True, text=True, check=False, timeout=60
    )
    assert ("", 0) == (checked.stdout + checked.stderr, checked.returncode)

    services = [path for path in result if path.endswith(".service")]
    scored = subprocess.run(
        [ANALYZE, "security", "--offline=true", *services], capture_output=True, text=True, check=False, timeout=60
    ).stdout
    found = dict(re.findall(r"Overall exposure level for (\S+): ([0-9.]+)", scored))
    assert {os.path.basename(path) for path in services} == set(found)
    for name, score in found.items():
        capable = "AmbientCapabilities=CAP_SYS_ADMIN" in (place / name).read_text()
        assert float(score) <= (CAPABLE if capable else PLAIN), name


def test_a_second_run_changes_nothing_and_a_newer_program_replaces(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an upgrade does it."""
    assert [0, 0] == [install(tmp_path), install(tmp_path)]
    assert all(
        line.startswith(("as it was", "They"))
        for line in capsys.readouterr().out.splitlines()[-len(os.listdir(place)) - 1 :]
    )

    assert 0 == run(
        ["install-units", "--prefix", str(tmp_path), "--exec", "/opt/other", "--unit-dir", "/etc/systemd/system"]
    )
    assert "ExecStart=/opt/other scan" in (place / "fabricscope-scan.service").read_text()


def test_a_unit_that_was_changed_by_hand_is_kept_and_so_are_all_others(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All or nothing; --force replaces it."""
    place.mkdir(parents=True)
    (place / "fabricscope-scan.timer").write_text("[Timer]\n")

    assert 2 == install(tmp_path)
    output = capsys.readouterr().err
    assert output.startswith(f"error: {place}/fabricscope-scan.timer is not written by install-units: not replaced")
    assert 1 == len(output.splitlines())
    assert ["fabricscope-scan.timer"] == os.listdir(place)
    assert 0 == install(tmp_path, "--force")
    assert "OnCalendar=hourly" in (place / "fabricscope-scan.timer").read_text()


def test_printing_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the place of each, as `systemctl cat` has it."""
    assert 0 == install(tmp_path, "--print")

    assert f"# {tmp_path}/etc/systemd/system/fabricscope-scan.timer\n" in capsys.readouterr().out
    assert [] == os.listdir(tmp_path)


def test_what_runs_next_is_told_with_the_choice_between_timer_and_watch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both keep the same report. The place is given in full, as on a host."""
    (tmp_path / "units").mkdir()
    assert 0 == run(
        ["install-units", "--unit-dir", str(tmp_path / "units"), "--exec", PROGRAM, "--with", "ship, watch"]
    )

    assert capsys.readouterr().out.splitlines()[-6:] == [
        "",
        "Next:",
        "    systemctl daemon-reload",
        "    systemctl enable --now fabricscope-scan.timer fabricscope-ship.path",
        "or, in place of fabricscope-scan.timer:",
        "    systemctl enable --now fabricscope-watch.service",
    ]


def test_a_program_that_a_service_cannot_reach_is_refused(tmp_path: Path, real_commands: None) -> None:
    """As it stands in a home or in /tmp: the first timer would be the first to notice."""
    program = tmp_path / "fabricscope"
    program.write_text(f"#!{sys.executable}\nfrom fabricscope import console\nconsole()\n")
    program.chmod(0o755)
    done = subprocess.run(
        [program, "install-units", "--prefix", str(tmp_path / "root")], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert (2, "", False) == (done.returncode, done.stdout, (tmp_path / "root").exists())
    assert re.fullmatch(
        r"error: \S+ (is below|is not readable for) .*: install fabricscope below /opt .*\n", done.stderr
    )
