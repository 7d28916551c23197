"""`job` and its old name: formats, exit codes, stdin, what cannot be read."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.cli.main import run
from agent.model.job_answer import SCHEMA_JOB
from tests.agent.job.jobs import begin, steps, warn

LOG = begin(2) + steps() + warn(1, "NET/IB : mlx5_1:1 Got async error event: port error", at="04:11:31")


def test_json_is_whole_and_the_same_in_every_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """But for the time at which it was made."""
    (tmp_path / "log").write_text(LOG)
    documents = []
    for _ in range(2):
        assert 0 == run(["job", str(tmp_path / "log"), "--format", "json"])
        document = json.loads(capsys.readouterr().out)
        del document["generated_at"]
        documents.append(document)

    assert documents[0] == documents[1]
    assert SCHEMA_JOB == documents[0]["schema"]
    assert {
        "schema",
        "schema_minor",
        "generator",
        "headline",
        "source",
        "job",
        "ranks",
        "causes",
        "consequences",
        "settings",
        "measured",
        "machine",
        "reports",
        "timeline",
        "notes",
        "cannot_tell",
        "where",
        "other_jobs",
        "other_jobs_more",
    } == set(documents[0])
    assert {"id", "confidence", "at_fault", "summary", "at", "evidence", "next", "findings"} == set(
        documents[0]["causes"][0]
    )


def test_the_page_is_one_file_that_loads_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the suffix of the output, too; names in the log are text in it."""
    (tmp_path / "log").write_text(LOG.replace("mlx5_1:1", "mlx5<b>:1") + warn(0, "<script>alert(1)</script>"))
    (tmp_path / "notes.json").write_text('{"a": 1}')
    page = tmp_path / "job.html"

    assert 0 == run(["job", str(tmp_path / "log"), str(tmp_path / "notes.json"), "-o", str(page)])
    text = page.read_text()
    assert "<script" not in text
    assert "Content-Security-Policy" in text
    assert "src=" not in text
    assert "Time line" in text
    assert '<span class="badge">at fault: ' in text
    assert "<td>no data of a job in it</td>" in text
    ElementTree.fromstring(text.split("<h2>Time line</h2><div>")[1].split("</table>")[0] + "</table>")


def test_stdin_and_compressed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Are read as files are."""
    (tmp_path / "log.gz").write_bytes(gzip.compress(LOG.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))

    for path in ("-", str(tmp_path / "log.gz")):
        assert 0 == run(["job", path])
        assert "port 1 of mlx5_1 on gpu1" in capsys.readouterr().out


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2."""
    (tmp_path / "empty").write_text("")
    (tmp_path / "text").write_text("apples and pears\n")
    (tmp_path / "bin").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "folder").mkdir()
    for arguments in (
        ["none"],
        ["empty"],
        ["text"],
        ["bin"],
        ["folder"],
        ["text", "--at", "2026-01-01T00:00:00Z"],
        ["text", "--format", "xml"],
    ):
        arguments[0] = str(tmp_path / arguments[0])
        assert 2 == run(["job", *arguments])
        assert 1 <= len(capsys.readouterr().err.strip().splitlines()) <= 2
    log = tmp_path / "log"
    log.write_text(LOG)
    for wrong in (
        ["--report", "x", "--source", "y"],
        ["--at", "noon", "--dataset", "x"],
        ["--at", "2026-01-01T00:00:00Z"],
    ):
        assert 2 == run(["job", str(log), *wrong])
        assert "error: " in capsys.readouterr().err


def test_a_file_that_cannot_be_read_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is listed with the reason."""
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "core").write_bytes(b"\x7fELF\0\0\0\0" * 100)
    (tmp_path / "weights").write_bytes(b"\x98\x12\0\0\0\0\0\0" + b'{"layer.0": {"dtype": "BF16"}}')
    assert 0 == run(["job", str(tmp_path), "--format", "json"])
    files = {file["name"]: file for file in json.loads(capsys.readouterr().out)["source"]["files"]}

    assert ("NCCL log", "it is not a text file") == (files["log"]["read_as"], files["core"]["reason"])
    assert "it is not a text file" == files["weights"]["reason"]


@pytest.mark.parametrize("hole", [bytes(40), bytes(3_000_000)])
def test_a_log_with_a_hole_of_zeros_is_read(hole: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a crash of the host leaves it, or a log that was emptied while it was written."""
    start, end = LOG[: len(LOG) // 2].encode(), LOG[len(LOG) // 2 :].encode()
    for place, content in enumerate((hole + start + end, start + hole + end)):
        (tmp_path / f"log{place}").write_bytes(content)
        assert 0 == run(["job", str(tmp_path / f"log{place}"), "--format", "json"])

        assert "port-down" == json.loads(capsys.readouterr().out)["causes"][0]["id"]


@pytest.mark.parametrize("line", ["", "W0101 nic.cc:33] mlx5_2: 96 Gb/s, expected 390 Gb/s\n"])
def test_a_log_with_sentences_of_tools_is_still_the_log_of_a_job(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text(f"step 1 loss 2.1\n{line}step 2 loss 2.0\nERROR: heartbeat of GPU 5 expired\n")
    assert 0 == run(["job", str(tmp_path / "log"), "--format", "json"])
    (cause,) = json.loads(capsys.readouterr().out)["causes"]
    assert "GPU 5" in cause["summary"]


def test_links_and_pipes_in_a_folder_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe would block, a link may lead anywhere."""
    import os

    (tmp_path / "log").write_text(LOG)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert 0 == run(["job", str(tmp_path), "--format", "json"])

    files = json.loads(capsys.readouterr().out)["source"]["files"]
    assert [("link", None), ("log", "NCCL log"), ("pipe", None)] == [(file["name"], file["read_as"]) for file in files]


def test_the_old_name_states_the_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr; the answer is that of `job`."""
    (tmp_path / "log").write_text(LOG)
    assert 0 == run(["recommend", "explain-log", str(tmp_path / "log"), "--format", "json"])
    printed = capsys.readouterr()

    assert SCHEMA_JOB == json.loads(printed.out)["schema"]
    assert "fabricscope job" in printed.err


def test_the_time_line_has_a_lane_for_ranks_with_the_same_events() -> None:
    """Causes on top, a legend of what is drawn, long lists of ranks by their number."""
    from agent.model.job_answer import TimelineEntry
    from agent.outputs.html.job import draw_times

    odd = list(range(1, 64, 2))
    entries = [
        TimelineEntry(at="2026-11-03T04:11:31", ranks=[3], text="flap", role="cause"),
        TimelineEntry(at="2026-11-03T04:31:31", ranks=list(range(64)), text="waits", role="hang"),
        TimelineEntry(at="2026-11-03T04:31:31", ranks=odd, text="12", role="consequence"),
        TimelineEntry(at="2026-11-03T04:11:40", host="gpu9", text="x", role="fact"),
    ]
    picture = draw_times(entries)
    rows = {"".join(row[0].itertext()): row for row in picture.iter("tr")}
    roles = ("cause", "consequence", "hang", "fact")

    def marks(name: str) -> list[str | None]:
        return [element.get("class") for element in rows[name].iter() if element.get("class") in roles]

    assert {"32 ranks: 0, 2, ..", "rank 3", "31 ranks: 1, 5, ..", "gpu9", ""} == set(rows)
    assert ["hang", "consequence", "cause"] == marks("rank 3")
    assert (["hang"], ["fact"]) == (marks("32 ranks: 0, 2, .."), marks("gpu9"))
    assert ["2026-11-03T04:11:31", "+20 min"] == [span.text for span in rows[""].iter("span")]
    legend = picture.find("p")
    assert legend is not None
    assert ["cause", "consequence", "waited in a collective"] == ["".join(part.itertext()) for part in legend]
    few = draw_times(entries[:1])
    assert ["rank 3", "2026-11-03T04:11:31", "cause"] == [text for text in few.itertext() if "flap" not in text]
