"""`diff` from outside: any two of report and source, its exit codes, its two forms."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from agent.cli.main import run
from agent.diff.change import SCHEMA, Diff
from fixtures.build import write_capture
from tests.machines import SMALL

pytestmark = pytest.mark.usefixtures("real_commands")


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
