"""The command that writes a fleet: folders, lines, truth, fabric, and wrong words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agent.reports import read_report
from bench.fleet.make import main

SMALL = ["--nodes", "20", "--mix", "l40s-roce", "--fault", "none"]


def test_a_folder_of_reports_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--sweeps", "2", "--out", str(tmp_path), "--gz", "--truth", str(tmp_path / "truth.json")]) == 0
    folders = sorted(path.name for path in (tmp_path / "raw").iterdir())
    assert folders == ["2026-01-15T080000Z", "2026-01-15T090000Z"]
    files = sorted(path.name for path in (tmp_path / "raw" / folders[1]).iterdir())
    assert files == [f"gpu{n:04d}.json.gz" for n in range(1, 21)]
    report = read_report(str(tmp_path / "raw" / folders[1] / "gpu0007.json.gz"))
    assert (report.node.hostname, report.generated_at[:13]) == ("gpu0007", "2026-01-15T09")
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert (truth["nodes"], truth["oddities"], truth["reports"][1]["files"]) == (20, [], 20)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("40 reports, ")


@pytest.mark.parametrize("packed", [False, True])
def test_lines_in_a_file(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "fleet"
    assert main([*SMALL, "--ndjson", "--out", str(path), *(["--gz"] if packed else [])]) == 0
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    assert sorted(json.loads(line)["node"]["hostname"] for line in data.splitlines()) == [
        f"gpu{n:04d}" for n in range(1, 21)
    ]


def test_the_fabrics_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert main(["--nodes", "20", "--mix", "gb200-ib", "--fault", "none", "--fabric", str(one)]) == 0
    assert one.read_text().startswith("#\n# Topology file: generated on ")
    both = ["--mix", "gb200-ib", "--mix", "a100-ib"]
    assert main(["--nodes", "40", *both, "--fault", "none", "--fabric", str(two)]) == 0
    assert sorted(path.name for path in two.iterdir()) == ["a100-ib-1.ibnetdiscover", "gb200-ib-1.ibnetdiscover"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--nodes", "0"], "0 nodes: from 1 to"),
        (["--fault", "mtu=1"], "no kind 'mtu' of fault"),
        (["--fault", "mtu-1500=x"], "--fault mtu-1500=x: KIND=COUNT is wanted"),
        (["--mix", "h200"], "no platform 'h200'"),
        (["--mix", "cpu=x"], "--mix cpu=x: PLATFORM=SHARE is wanted"),
        ([*SMALL, "--out", "/proc/nothing/here"], "/proc/nothing"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
