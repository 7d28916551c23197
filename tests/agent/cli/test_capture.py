"""`capture` and `scan --capture`: where the evidence goes, what is said of it, and pseudonyms."""

from __future__ import annotations

import json
import os
import re
import stat
import tarfile
from pathlib import Path

import pytest

from agent.cli.main import run
from fixtures import build
from probes.capture import extras
from tests.machines import SMALL


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine's capture, in a folder in which we are."""
    place = tmp_path / "machine"
    build.write_capture(SMALL, None, place)
    monkeypatch.chdir(tmp_path)
    return place


def hostname(machine: Path) -> str:
    """What it calls itself."""
    name: str = json.loads((machine / "manifest.json").read_text())["hostname"]
    return name


def test_a_capture_without_a_place_sorts_by_host_and_time(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And stderr says where it is; stdout is empty."""
    assert 0 == run(["capture", "--source", str(machine)])
    (archive,) = machine.parent.glob("*.tar.gz")
    output = capsys.readouterr()

    assert re.fullmatch(rf"fabricscope-{hostname(machine)}-\d{{8}}T\d{{6}}Z\.tar\.gz", archive.name)
    assert ("", f"wrote {archive.name}\n") == (output.out, output.err)
    assert 0o600 == archive.stat().st_mode & 0o777


def test_a_redacted_capture_is_named_by_a_pseudonym(machine: Path) -> None:
    """The same that stands in it."""
    assert 0 == run(["capture", "--redact", "--source", str(machine)])
    (archive,) = machine.parent.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        file = tar.extractfile("manifest.json")
        assert file is not None
        manifest = json.load(file)

    assert hostname(machine) not in archive.name
    assert re.fullmatch(r"host-[0-9a-f]{6}", manifest["hostname"])
    assert archive.name.startswith(f"fabricscope-{manifest['hostname']}-")


def test_a_scan_keeps_its_evidence_with_pseudonyms(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report names everything; the file beside it does not."""
    assert 0 == run(["scan", "--source", str(machine), "--format", "json", "--capture", "c", "--redact"])

    assert hostname(machine) == json.loads(capsys.readouterr().out)["node"]["hostname"]
    assert hostname(machine) != json.loads(Path("c/manifest.json").read_text())["hostname"]


def test_pseudonyms_without_a_capture_are_wrong_usage(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody may think that the report is redacted."""
    assert 2 == run(["scan", "--source", str(machine), "--redact"])
    output = capsys.readouterr()

    assert "" == output.out
    assert output.err.startswith("error: --redact needs --capture")


def test_a_capture_that_is_not_whole_says_so(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line on stderr and in its manifest; it is written all the same."""
    monkeypatch.setattr(extras, "SECONDS", -1.0)
    monkeypatch.setattr(extras, "GROUPS", extras.GROUPS[:1])

    assert 0 == run(["capture", "--source", str(machine), "-o", "c"])
    line = "pci files: /sys/bus/pci/devices/* and what follows: not read within -1 s"
    assert f"warning: c is not complete: {line}\nwrote c\n" == capsys.readouterr().err
    assert [line] == json.loads(Path("c/manifest.json").read_text())["missing"]


def test_more_than_a_capture_may_hold_is_not_written(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reader would accept it."""
    monkeypatch.setattr("probes.capture.writer.ENTRIES_LIMIT", 10)

    assert 2 == run(["capture", "--source", str(machine), "-o", "c.tar"])
    assert "more than a capture may hold" in capsys.readouterr().err
    assert not Path("c.tar").exists()


def test_a_pipe_or_device_is_not_replaced_by_a_capture(machine: Path, tmp_path: Path) -> None:
    """One line, and it stays what it is."""
    os.mkfifo(tmp_path / "pipe.tar")

    assert 2 == run(["capture", "--source", str(machine), "--output", str(tmp_path / "pipe.tar")])
    assert stat.S_ISFIFO((tmp_path / "pipe.tar").lstat().st_mode)
    assert ["pipe.tar"] == [item.name for item in tmp_path.iterdir() if "pipe" in item.name]
