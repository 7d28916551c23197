"""Options about other times: --state-dir, --accept-inventory, --interval."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.cli.main import run
from tests.conftest import ROOT

pytestmark = pytest.mark.usefixtures("real_commands")


def scan_with(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str) -> tuple[dict[str, Any], str]:
    """The report on stdout, and what stood on stderr."""
    assert 0 == run(["scan", "--format", "json", *arguments])
    out, err = capsysbinary.readouterr()
    return json.loads(out), err.decode()


def test_a_second_scan_knows_the_first(
    capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The same evidence again is no later run: it says so, and is judged by the inventory no more and no less."""
    arguments = ("--source", str(capture), "--state-dir", str(tmp_path / "state"))
    first, output = scan_with(capsysbinary, *arguments)
    second, _ = scan_with(capsysbinary, *arguments)

    assert "" == output
    assert "first run with this state" in first["history"]["reason"]
    assert "or later" in second["history"]["reason"]
    assert first["summary"]["verdict"] == second["summary"]["verdict"]


def test_a_later_capture_is_compared(capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """An hour on, by the uptime of the host."""
    later = tmp_path / "later"
    subprocess.run(["cp", "-r", str(capture), str(later)], check=True)
    (later / "files" / "proc" / "uptime").write_text("867600.25 1.00\n")
    place = str(tmp_path / "state")
    scan_with(capsysbinary, "--source", str(capture), "--state-dir", place)
    report, output = scan_with(capsysbinary, "--source", str(later), "--state-dir", place)

    assert "" == output
    assert 3600.0 == report["counters_window"]["seconds"]
    assert report["history"]["inventory"]
    assert {"pass"} == {check["state"] for check in report["checks"] if check["rule"] == "inventory-lost"}


def test_a_state_that_cannot_be_used_is_one_line_and_the_exit_code_is_the_verdicts(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """State is a convenience."""
    for place in ("/dev/null/x", ""):
        assert 0 == run(["check", "--source", str(capture), "--state-dir", place])
        out, err = capsys.readouterr()

        assert 1 == len(err.splitlines())
        assert err.startswith(f"warning: the state cannot be used: {place}: ")
        assert out.startswith("FABRICSCOPE OK")


def test_a_run_of_a_few_probes_is_not_remembered(
    capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The next whole run would miss all others."""
    scan_with(capsysbinary, "--source", str(capture), "--state-dir", str(tmp_path), "--only", "kernel")

    assert [] == list(tmp_path.glob("host-*"))


def test_a_finished_report_is_judged_by_what_it_holds(
    capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The directory is neither read nor written, and a line says so; a window that it has stays."""
    place, state = tmp_path / "report.json", tmp_path / "state"
    assert 0 == run(["scan", "--source", str(capture), "--state-dir", str(state), "-o", str(place)])
    capsysbinary.readouterr()
    report, output = scan_with(capsysbinary, "--report", str(place), "--state-dir", str(tmp_path / "other"))

    assert 1 == len(output.splitlines())
    assert "finished report" in output
    assert not (tmp_path / "other").exists()
    assert report["history"] == json.loads(place.read_text())["history"]


def test_an_interval_and_a_capture_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A capture replays one reading."""
    assert 2 == run(["scan", "--interval", "5", "--capture", str(tmp_path / "c.tar.gz")])
    assert "one sample" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_this_host_is_read_twice() -> None:
    """By its own clock, and not for longer than the interval and two scans."""
    argv = [sys.executable, "-m", "fabricscope", "scan", "--interval", "1", "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    window = json.loads(done.stdout)["counters_window"]

    assert window["reset_reason"] is None
    assert 1.0 <= window["seconds"] < 30.0


def test_neither_is_loaded_where_it_is_not_asked_for(capture: Path) -> None:
    """A plain scan does not pay for it."""
    loaded = "[name for name in sys.modules if name.startswith('agent.history.')]"
    code = f"import sys; from agent.cli.main import run; run(sys.argv[1:]); print({loaded})"
    argv = [sys.executable, "-c", code, "scan", "--source", str(capture), "--format", "json", "-o", "/dev/null"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)

    assert "['agent.history.context']" == done.stdout.strip()
