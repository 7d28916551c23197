"""Evidence that is piped into a command: "-" in place of a path."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from agent.cli import stdin
from agent.cli.main import run
from tests.conftest import ROOT

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
        (b"0: NCCL INFO Bootstrap\n" * 3, "job -` reads it\n"),
    ],
    ids=["empty", "unknown", "job"],
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
