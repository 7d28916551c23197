r"""Where evidence comes from and goes to: "-" for what is piped into a command, \`capture\`, \`scan --capture\`."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from agent.cli import stdin
from agent.cli.main import run
from fixtures import build
from probes.capture import extras
from tests.conftest import ROOT
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


# Evidence that is piped into a command: "-" in place of a path.


XID = b"[ 1843.308145] NVRM: Xid (PCI:0000:b3:00): 79, pid=4711, GPU has fallen off the bus.\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies lie while a command runs."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def pipe(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("words", [["scan", "-"], ["scan", "--source", "-"]])
def test_an_output_is_read_as_from_a_file(
    words: list[str], tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stdin").write_bytes(XID)
    assert run(["scan", "--format", "json", str(tmp_path / "stdin")]) == 0
    of_file = json.loads(capsys.readouterr().out)
    pipe(XID, monkeypatch)
    assert run([*words, "--format", "json"]) == 0
    piped = json.loads(capsys.readouterr().out)

    assert piped["source"]["path"] == "-"
    assert [file["name"] for file in piped["source"]["files"]] == ["stdin"]
    assert piped["findings"] == of_file["findings"] != []
    assert str(tmp_path) not in json.dumps(piped)
    assert list(folder.iterdir()) == []


def test_archives_and_reports_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (capture,) = (ROOT / "fixtures" / "captures").glob("cpu-only-vm*")
    pipe(capture.read_bytes(), monkeypatch)
    assert run(["scan", "-", "--format", "json"]) == 0
    report = capsys.readouterr().out
    pipe(report.encode(), monkeypatch)
    assert run(["scan", "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["checks"] == json.loads(report)["checks"]
    pipe(XID, monkeypatch)
    assert run(["check", "--source", "-"]) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "error: stdin: it is empty\n"),
        (b"hello\n", "error: stdin: is not recognized: "),
        (b"our GPU 3 is idle\n", "of GPU 3: `nvidia-smi -q -i 3; "),
        (b"0: NCCL INFO Bootstrap\n" * 3, "job -` reads it\n"),
        (b" #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec]\n 65536 1000 0.00 391.1\n", "job -` reads it\n"),
        (
            b"   Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\n"
            b"----------  ------  ------  ------  ------  ------  ------  ------  ------\n"
            b" Ethernet4       0       0       0       7       0       0       0       0\n",
            "--switches FILE` reads them\n",
        ),
    ],
    ids=["empty", "unknown", "parts", "job", "perftest", "switch"],
)
def test_what_is_no_source_is_refused_by_its_name(
    content: bytes, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe(content, monkeypatch)
    assert run(["scan", "-"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert str(folder) not in error
    assert list(folder.iterdir()) == []


def test_what_never_ends_is_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In bytes, and in time."""
    monkeypatch.setattr(stdin, "_LIMIT_BYTES", 1 << 20)
    pipe(bytes(3 << 20), monkeypatch)
    assert run(["scan", "-"]) == 2
    assert capsys.readouterr().err.startswith("error: stdin: more than ")

    silent, kept_open = os.pipe()
    with os.fdopen(silent) as reader:
        monkeypatch.setattr(sys, "stdin", reader)
        assert run(["scan", "-", "--timeout", "0.2"]) == 2
    os.close(kept_open)
    assert capsys.readouterr().err.startswith("error: stdin: cannot be opened within 0.2 s")
    assert list(folder.iterdir()) == []
