"""Output of many tasks in one stream: every report is found, in one piece, with the digest it has elsewhere."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from agent.fleet.ingest import streams
from agent.fleet.ingest.streams import read_pieces
from agent.reports import encode_compact
from tests.agent.fleet.small import report as spaced
from tests.agent.fleet.small import rows, taken
from tests.machines import scan_machine


def report(host: str, hour: float = 0) -> bytes:
    """On one line as `scan --format ndjson` writes it, with a text that looks like a label."""
    text = spaced(host, hour, gpus=[f"{host}-{gpu}" for gpu in range(60)], note="}  3: {x")
    return text.replace(b'"schema": ', b'"schema":', 1) + b"\n"


def srun(reports: dict[str, bytes], seed: int, width: int = 3) -> bytes:
    """As `srun --label` mixes them: at most 1 KiB of a task at a time, each part with its label and a newline."""
    shuffle = random.Random(seed)
    left = {f"{label:>{width}}: ".encode(): text for label, text in reports.items()}
    out = [b"srun: job 77 queued and waiting for resources\n"]
    while left:
        label = shuffle.choice(list(left))
        part, left[label] = left[label][:1024], left[label][1024:]
        out.append(label + part.removesuffix(b"\n") + b"\n")
        if not left[label]:
            del left[label]
    return b"".join(out)


@pytest.mark.parametrize("seed", range(20))
def test_what_srun_mixes_is_whole_again(seed: int) -> None:
    """And the line that is no report is reported as that."""
    reports = {str(number): report(f"gpu{number}") for number in range(12)}
    result = [piece.data for piece in read_pieces(io.BytesIO(srun(reports, seed)))]

    assert b"job 77 queued and waiting for resources" == result.pop(0)
    assert sorted(reports.values()) == sorted(result)


@pytest.mark.parametrize("name", ["job.ndjson", "job.ndjson.gz"])
def test_a_file_of_a_job_is_ingested(name: str, tmp_path: Path) -> None:
    """The reports are the same as those that come by themselves: nothing is counted twice."""
    import gzip

    reports = {str(number): report(f"gpu{number}") for number in range(5)}
    data = srun(reports, 1)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    result = taken(tmp_path / "d", tmp_path / name)
    assert (5, 1) == (result.fresh, result.quarantined)
    assert [(f"gpu{number}",) for number in range(5)] == rows(tmp_path / "d", "host", "node")
    (tmp_path / "plain.ndjson").write_bytes(b"".join(text for text in reports.values()))
    again = taken(tmp_path / "d", tmp_path / "plain.ndjson")
    assert (0, 5) == (again.fresh, again.repeated)


@pytest.mark.parametrize("label", ["gpu001: ", "gpu-1.cluster.example: ", "[pod/fabricscope-x7/scan] ", "12: "])
def test_labels_of_other_tools(label: str) -> None:
    """pdsh, clush, kubectl: one label in front of each line; two reports of one label are two."""
    lines = [report("a"), report("b", 1)]
    data = b"".join(label.encode() + line for line in lines)

    assert lines == [piece.data for piece in read_pieces(io.BytesIO(data))]
    mixed = data + lines[0] + label.encode() + b"done\n\n"
    assert [*lines, lines[0], b"done"] == [piece.data for piece in read_pieces(io.BytesIO(mixed))]


def test_a_task_that_ends_early_costs_only_its_own_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a report is a damaged one; and what is held has a bound."""
    data = b"1: " + report("a")[:500] + b"\n2: " + report("b") + b"1: " + report("c") + b"3: " + report("d")[:9]
    assert [report("b"), report("a")[:500] + b"\n", report("c")] == [
        piece.data for piece in read_pieces(io.BytesIO(data))
    ][:3]
    monkeypatch.setattr(streams, "HELD_BYTES", 4000)
    many = b"".join(b"%d: " % task + report("a")[:500] + b"\n" for task in range(100))
    assert 100 == len(list(read_pieces(io.BytesIO(many))))


def test_reports_of_a_scan_begin_as_labels_are_looked_for() -> None:
    """The first key, without a blank."""
    assert encode_compact(scan_machine("", "gpu-width-x8")).startswith(streams._START)
