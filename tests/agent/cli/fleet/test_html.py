"""`fleet html` from outside: a page from a real dataset, and one clear line for what cannot be done."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra fleet is not installed")
from agent.cli.main import run
from agent.fleet import racks
from agent.fleet.ingest.run import IngestOptions, ingest
from bench.fleet.plan import plan
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three nodes of one class; one of them calls itself something that no host list can hold."""
    place = tmp_path_factory.mktemp("html")
    lines = []
    for number, data in enumerate(plan(3, 1, {}, mix={"h100-ib": 1}).reports(0, one_line=True)):
        document = json.loads(data)
        if number == 2:
            document["node"]["hostname"] = "</script><b>[1-"
        lines.append(json.dumps(document))
    (place / "reports.ndjson").write_text("\n".join(lines) + "\n")
    ingest(
        IngestOptions(sources=[str(place / "reports.ndjson")], dataset=str(place / "ds")), lambda _stage, _done: None
    )
    return str(place / "ds")


def data_of(text: str) -> dict[str, Any]:
    """What the page's script reads."""
    return dict(json.loads(text.partition('<script id="data" type="application/json">')[2].partition("</script>")[0]))


def test_a_page_of_a_dataset(dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, and nothing on stdout; addresses of the pages that are there."""
    (tmp_path / "nodes").mkdir()
    names = data_of(_written(dataset, tmp_path))["names"]
    (tmp_path / "nodes" / f"{names[1]}.html").write_text("")
    text = _written(
        dataset, tmp_path, "--nodes-dir", str(tmp_path / "nodes"), "--title", "Hall <7>", "--rack", "^[a-z]+"
    )

    assert "" == capsys.readouterr().out
    assert 3 == len(names)
    assert {"1": f"./nodes/{names[1]}.html"} == data_of(text)["pages"]
    assert "<h1>Hall &lt;7&gt;</h1>" in text
    assert ["rack", "gpu"] == [data_of(text)["places"][0]["key"], data_of(text)["places"][0]["labels"][0]]
    assert "3 of 3 nodes are ok" in text


def test_the_page_and_the_command_count_alike(dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Coverage is one question with one answer."""
    text = _written(dataset, tmp_path)
    assert 0 == run(["fleet", "summary", "--dataset", dataset])

    (line,) = [line for line in capsys.readouterr().out.splitlines() if " rules judged on every node" in line]
    assert line.strip().partition(" judged")[0] in text


def test_a_part_of_the_fleet(dataset: str, tmp_path: Path) -> None:
    """Only the nodes that are meant, also where another calls itself something odd."""
    names = data_of(_written(dataset, tmp_path, "--where", "nodes=gpu[0001-0002]"))["names"]

    assert 2 == len(names) == len([name for name in names if name.startswith("gpu")])


def test_a_fabric_file_tells_leaves_and_units(dataset: str, tmp_path: Path) -> None:
    """Of InfiniBand, where reports do not."""
    (tmp_path / "fabric").write_text("".join(plan(3, 1, {}, mix={"h100-ib": 1}).fabric_text()))
    without, having = (
        data_of(_written(dataset, tmp_path)),
        data_of(_written(dataset, tmp_path, "--fabric", str(tmp_path / "fabric"))),
    )

    assert [] == [place["key"] for place in without["places"] if place["key"] == "unit"]
    assert ["unit"] == [place["key"] for place in having["places"] if place["key"] == "unit"]
    assert 8 == len(having["rails"]["leaves"])


def test_without_a_file_it_is_printed(dataset: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Stdout holds the page alone."""
    assert 0 == run(["fleet", "html", "--dataset", dataset])
    output = capsysbinary.readouterr()

    assert output.out.startswith(b"<!DOCTYPE html>")
    assert output.out.endswith(b"</html>\n")
    assert b"" == output.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no dataset given"),
        (["--dataset", "/nowhere/at/all"], "no dataset"),
        (["--dataset", "{dataset}", "--nodes-dir", "/nowhere/at/all"], "--nodes-dir /nowhere/at/all: No such file"),
        (["--engine", "duckdb://"], "no dataset given"),
        (["--dataset", "{dataset}", "--engine", "nonsense://u:secret@h"], "nonsense://h"),
        (["--dataset", "{dataset}", "--rack", "("], "no regular expression"),
        (["--dataset", "{dataset}", "--rack", "x" * 400], "longer than 300 letters"),
        (["--dataset", "{dataset}", "--fabric", "/nowhere/at/all"], "/nowhere/at/all: No such file"),
        (["--dataset", "{dataset}", "-o", "/nowhere/at/all.html"], "/nowhere/at/all.html: No such file"),
        (["--dataset", "{dataset}", "--stale-after", "nan"], "not a duration"),
        (["--dataset", "{dataset}", "--since", "never"], "never"),
        (["--dataset", "{dataset}", "--where", "nodes=none"], "no node of the dataset"),
    ],
)
def test_wrong_usage_is_one_line(
    dataset: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2, and no half page."""
    monkeypatch.delenv("FABRICSCOPE_DATASET", raising=False)
    assert 2 == run(["fleet", "html", *(word.format(dataset=dataset) for word in words)])
    output = capsys.readouterr()

    assert "" == output.out
    assert message in output.err
    assert 1 == len(output.err.splitlines())
    assert "secret" not in output.err


def test_a_pattern_that_never_ends_is_one_line(
    dataset: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many names there are. What was in force before is so again."""
    monkeypatch.setattr(racks, "SECONDS", 0.5)
    slow = "^" + "([a-z0-9]*)*" * 20 + "!$"  # a name has seven letters
    assert 2 == run(["fleet", "html", "--dataset", dataset, "--rack", slow])
    output = capsys.readouterr()

    assert "" == output.out
    assert "takes more than" in output.err
    assert 1 == len(output.err.splitlines())
    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_VIRTUAL)
    assert signal.SIG_DFL == signal.getsignal(signal.SIGVTALRM)


def test_a_damaged_dataset_is_one_line(dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A manifest that names files which are not there."""
    (tmp_path / "manifest.json").write_bytes((Path(dataset) / "manifest.json").read_bytes())

    assert 2 == run(["fleet", "html", "--dataset", str(tmp_path)])
    assert 1 == len(capsys.readouterr().err.splitlines())


@pytest.mark.usefixtures("real_commands")
def test_nothing_of_it_is_imported_before_it_is_asked_for() -> None:
    """The node's commands stay as light as they were."""
    heavy = "('agent.fleet', 'duckdb', 'sqlglot')"
    code = f"import sys, agent.cli.main; print([each for each in sys.modules if each.startswith({heavy})])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)

    assert "[]" == output.stdout.strip()


def _written(dataset: str, place: Path, *words: str) -> str:
    assert 0 == run(["fleet", "html", "--dataset", dataset, "-o", str(place / "fleet.html"), *words])
    return (place / "fleet.html").read_text()
