r"""Options and a command about other times: \`--state-dir\`, \`--accept-inventory\`, \`--interval\`, \`diff\`."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.cli.main import run
from agent.diff.ledger import SCHEMA, Diff
from agent.version import VERSION
from fixtures.build import write_capture
from tests.conftest import ROOT
from tests.machines import SMALL

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
    assert 0 == run(["check", "--source", str(capture), "--state-dir", "/dev/null/x"])
    out, err = capsys.readouterr()

    assert 1 == len(err.splitlines())
    assert err.startswith("warning: the state cannot be used: /dev/null/x: ")
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


# `diff` from outside: any two of report and source, its exit codes, its two forms.


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy machine and a faulty one, as captures and as reports."""
    folder = tmp_path_factory.mktemp("diff")
    write_capture("8xh100-sxm-2s-8xcx7-ib-4nvsw", None, folder / "old")
    write_capture(None, "gpu-width-x8", folder / "new")
    for name in ("old", "new"):
        assert 0 == run(["scan", "--source", str(folder / name), "-o", str(folder / f"{name}.json")])
    (folder / "old.json.gz").write_bytes(gzip.compress((folder / "old.json").read_bytes()))
    return folder


@pytest.mark.parametrize("old", ["old", "old.json", "old.json.gz"])
@pytest.mark.parametrize("new", ["new", "new.json"])
def test_whatever_holds_a_machine_is_compared(
    places: Path, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report, packed or not, and a capture, in any pair: the same difference, and exit 1."""
    assert 1 == run(["diff", str(places / old), str(places / new)])

    output = capsys.readouterr()
    assert "GPU2  width: 16 -> 8" in output.out
    assert "pcie-width-downgraded" in output.out
    assert "" == output.err


@pytest.mark.parametrize("new", ["old", "old.json", "old.json.gz"])
def test_a_report_is_what_its_source_is(places: Path, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No differences, exit 0."""
    assert 0 == run(["diff", str(places / "old"), str(places / new)])

    assert "no differences" in capsys.readouterr().out


def test_sources_are_scanned_with_the_profile(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that there is not is refused, as by `scan`."""
    assert 2 == run(["diff", str(places / "old"), str(places / "old"), "--profile", "no-such-profile"])

    assert "no-such-profile" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["0.0.1", VERSION])
def test_reports_are_judged_by_the_configuration(
    places: Path, tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    new = json.loads((places / "new.json").read_text())
    new["generator"]["version"] = version
    (tmp_path / "new.json").write_text(json.dumps(new))
    (tmp_path / "rules.toml").write_text('[rules]\noff = ["pcie-width-downgraded"]\n')
    assert 1 == run(["diff", str(places / "old"), str(tmp_path / "new.json"), "--config", str(tmp_path / "rules.toml")])

    output = capsys.readouterr().out
    assert "GPU2  width: 16 -> 8" in output
    assert "pcie-width-downgraded" not in output


def test_json_is_versioned(places: Path, tmp_path: Path) -> None:
    """The suffix of the file chooses the form, as everywhere."""
    out = tmp_path / "diff.json"
    assert 1 == run(["diff", str(places / "old"), str(places / "new"), "-o", str(out)])

    assert SCHEMA == json.loads(out.read_text())["schema"]
    assert msgspec.json.decode(out.read_bytes(), type=Diff).changes


def test_a_report_of_another_version_is_judged_again(places: Path, tmp_path: Path) -> None:
    """New rules are no news of the machine: both sides are judged by this version."""
    older = json.loads((places / "old.json").read_text())
    older["generator"]["version"] = "0.0.1"
    older["findings"], older["checks"] = [], []
    (tmp_path / "older.json").write_text(json.dumps(older))

    assert 0 == run(["diff", str(tmp_path / "older.json"), str(places / "old.json")])


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b'{"schema": "fabricscope.report/1", "node"', "not a report"),
        (b'{"schema": "fabricscope.report/2"}', "fabricscope.report/2"),
        (b'{"schema": "fabricscope.report/1", "node": 7}', "a damaged report"),
        (b"nothing that anybody knows", "is not recognized"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    places: Path, tmp_path: Path, content: bytes, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, with the file's name and what is wrong; on either side."""
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    for pair in ((bad, places / "old.json"), (places / "old.json", bad)):
        assert 2 == run(["diff", *map(str, pair)])

        output = capsys.readouterr()
        assert "" == output.out
        assert ["error"] == [
            line.partition(":")[0] for line in output.err.splitlines() if not line.startswith("hint: ")
        ]
        assert str(bad) in output.err
        assert part in output.err


def test_two_shapes_are_two_hosts(places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before anything else."""
    write_capture(SMALL, None, tmp_path / "other")
    assert 1 == run(["diff", str(places / "old.json"), str(tmp_path / "other")])

    assert "two hosts" in capsys.readouterr().out.partition("Devices")[0]
