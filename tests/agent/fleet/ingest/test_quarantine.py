"""What is no report goes to quarantine with its reason, once; what is hostile and still a report is taken."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agent.fleet.dataset import open_dataset
from agent.fleet.ingest.files import Staging
from agent.fleet.ingest.quarantine import Quarantine, RefusedBytes
from agent.fleet.store import store_of
from agent.model.report import REPORT_LIMIT_BYTES
from tests.agent.fleet.ingest.test_sources import PACK, tar
from tests.agent.fleet.small import report, rows, take, taken

BAD: dict[str, tuple[Any, str]] = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "text": (b"hello", "not JSON"),
    "binary": (bytes(range(256)), "not JSON"),
    "cut": (report()[:-30], "not JSON, or damaged"),
    "cut gzip": (gzip.compress(report())[:-30], "truncated gzip"),
    "damaged gzip": (gzip.compress(report())[:40] + b"xxxxxxxxx", "gzip"),
    "cut zstd": (PACK[".zst"](report())[:-30], "truncated zstd"),
    "damaged zstd": (PACK[".zst"](report())[:40] + b"x" * 60, "zstd"),
    "a list": (b"[]", "not a report that this version reads"),
    "foreign": (b'{"schema": "prometheus/2"}', "its schema is 'prometheus/2'"),
    "another version": (report(schema="fabricscope.report/2"), "its schema is 'fabricscope.report/2'"),
    "no schema": (b"{}", "it has no schema field"),
    "wrong type": (report(topology={"gpus": [{"id": 7}]}), "Expected `str`, got `int` - at `$.topology.gpus[0].id`"),
    "wrong type in what is read later": (report(topology={"pci": [{"id": "a", "vendor": []}]}), "in topology.pci[0]"),
    "a number beyond 64 bits": (report(schema_minor=1 << 70), "schema_minor"),
    "two of one id": (report(topology={"gpus": [{"id": "a"}, {"id": "a"}]}), "twice - in topology.gpus"),
    "two functions of one id": (report(topology={"pci": [{"id": "a"}, {"id": "a"}]}), "twice - in topology.pci"),
    "no name": (report(""), "it names no node"),
    "a long name": (report("x" * 3_000_000), "its host name has 3000000 characters"),
    "no time": (report(generated_at="", observed_at=None), "generated_at is no time: ''"),
    "a wrong time": (report(observed_at="yesterday"), "observed_at is no time: 'yesterday'"),
    "time beyond the calendar": (report(observed_at="0001-01-01T00:00:00+14:00"), "is no time"),
    "two reports in one gzip": (
        gzip.compress(report("gpu8")) + gzip.compress(report("gpu9")),
        "one a line",
    ),
    "something behind a gzip": (gzip.compress(report()) + b"more", "no gzip behind the one before"),
    "something behind a zstd": (PACK[".zst"](report()) + b"more", "no zstd behind the one before"),
    "a second gzip cut off": (gzip.compress(report()) + gzip.compress(b" ")[:-4], "truncated gzip"),
    "a gzip of very many parts": (gzip.compress(b"") * 20_000, "more than 10000 parts"),
    "a time before there were clocks": (
        report().replace(b'"2026-01-15T08:00:00Z"', b'"0001-01-01T00:00:00Z"'),
        "its time is before 1970",
    ),
    "too large": (report(padding="x" * REPORT_LIMIT_BYTES), "larger than a report can be"),
    "a gzip bomb": (gzip.compress(b"{" + b" " * 80_000_000), "larger than a report can be"),
    "deep": (b'{"schema": "fabricscope.report/1", "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", ""),
    "a lone surrogate": (report().replace(b'"V"', b'"\\ud800 x"'), "not JSON, or damaged"),
    "bytes that are no text": (report().replace(b'"V"', b'"\xff\xfe"'), ""),
}


@pytest.mark.parametrize("name", BAD)
def test_quarantine(name: str, tmp_path: Path) -> None:
    data, why = BAD[name]
    source = tmp_path / "in"
    source.mkdir()
    (source / "good.json").write_bytes(report())
    (source / "bad.json").write_bytes(data)
    made = taken(tmp_path / "d", source)
    again = taken(tmp_path / "d", source)

    assert (made.read, made.fresh, made.quarantined, again.quarantined) == (2, 1, 1, 1)
    (line,) = (tmp_path / "d" / "quarantine" / "reasons.ndjson").read_text().splitlines()
    told = json.loads(line)
    assert why in told["reason"]
    assert len(told["reason"]) <= 500
    assert told["source"] == str(source / "bad.json")
    if data:
        assert (tmp_path / "d" / told["file"]).read_bytes() == data[: 4 << 20]
        assert told["sha256"][:16] in told["file"]
    else:
        assert told["file"] is None


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_report_in_several_packed_parts(tmp_path: Path, suffix: str) -> None:
    pack, data = PACK[suffix], report(padding=os.urandom(100_000).hex())
    packed = pack(data[:100]) + pack(b"") + pack(data[100:]) + b"\0" * 700
    (tmp_path / f"r.json{suffix}").write_bytes(packed)
    made = taken(tmp_path / "d", tmp_path / f"r.json{suffix}")

    assert (made.read, made.fresh, made.quarantined) == (1, 1, 0)


def test_what_is_in_quarantine_can_be_tried_again(tmp_path: Path) -> None:
    source, dataset = tmp_path / "in", tmp_path / "d"
    source.mkdir()
    (source / "bad.json").write_bytes(b"{")
    (source / "large.json").write_bytes(b" " * (REPORT_LIMIT_BYTES + 9))
    (source / "lines.ndjson").write_bytes(b"{]\n" + report() + b"\n")
    assert taken(dataset, source).quarantined == 3
    place = dataset / "quarantine"
    before = {each.name: each.read_bytes() for each in place.iterdir()}
    assert len(before) == 4

    for _ in range(2):
        made = taken(dataset, place)
        assert (made.read, made.quarantined) == (3, 3)
        assert {each.name: each.read_bytes() for each in place.iterdir()} == before
        assert open_dataset(str(dataset)).manifest.quarantined == 3
    with tarfile.open(tmp_path / "whole.tar", "w") as archive:
        archive.add(dataset, "d")
    for whole in (dataset, tmp_path / "whole.tar"):
        assert taken(tmp_path / "other", whole).read == 3, "its manifest and its reasons are no reports"


INPUTS = {
    "lines.ndjson": lambda bad: b"\n".join([*bad, report()]),
    "lines.ndjson.gz": lambda bad: gzip.compress(b"\n".join([*bad, report()])),
    "archive.tar": lambda bad: tar({"good.json": report(), **{f"x/{n}.json": data for n, data in enumerate(bad)}}),
}


@pytest.mark.parametrize("name", INPUTS)
def test_one_input_is_one_entry_however_much_it_holds(name: str, tmp_path: Path) -> None:
    """Nothing of it is lost, and to try it again adds nothing."""
    bad = [b"{%d]" % number for number in range(300)]
    (tmp_path / name).write_bytes(INPUTS[name](bad))
    dataset, place = tmp_path / "d", tmp_path / "d" / "quarantine"
    made = taken(dataset, tmp_path / name)

    assert (301, 1, 300) == (made.read, made.fresh, made.quarantined)
    (line,) = (json.loads(text) for text in (place / "reasons.ndjson").read_text().splitlines())
    assert (300, str(tmp_path / name)) == (line["count"], line["source"])
    assert line["reason"].startswith("300 of its reports, the first: ")
    with tarfile.open(dataset / line["file"]) as archive:
        kept = [archive.extractfile(member).read().rstrip() for member in archive]  # type: ignore[union-attr]
    assert bad == kept
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert 2 == len(before)
    for source in (place, tmp_path / name):
        assert 300 == taken(dataset, source).quarantined
        assert before == {path.name: path.read_bytes() for path in place.iterdir()}
    assert 300 == open_dataset(str(dataset)).manifest.quarantined


def test_workers_may_read_one_input_in_any_order(tmp_path: Path) -> None:
    """The same archive comes of it."""
    written = set()
    for backwards in (False, True):
        folder = tmp_path / f"{backwards}"
        (folder / "staged").mkdir(parents=True)
        kept = [RefusedBytes(str(folder / f"{worker}")) for worker in range(2)]
        refusals = [kept[n % 2].keep(f"in:{n}", "in", n, "why", b"%d" % n) for n in range(40)]
        quarantine = Quarantine(store_of(str(folder / "d")), Staging(str(folder / "staged"), 1), "")
        quarantine.add(refusals[::-1] if backwards else refusals)
        (line,) = quarantine.write()
        assert line.file
        written.add((line, (folder / "staged" / line.file).read_bytes()))

    assert 1 == len(written)


@pytest.mark.parametrize(("bound", "kept"), [("INPUT_REPORTS", 20), ("INPUT_BYTES", 20 // 3), ("BUDGET_REPORTS", 20)])
def test_what_is_kept_of_refused_reports_is_bounded(
    bound: str, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In number and in bytes, of one input and of all; what is beyond is counted, and other inputs have room."""
    monkeypatch.setattr(f"agent.fleet.ingest.quarantine.{bound}", 20)
    (tmp_path / "many.ndjson").write_bytes(b"\n".join([b"{]"] * 200 + [report()]))
    (tmp_path / "other.ndjson").write_bytes(b"[]\n" * 5)
    made = taken(tmp_path / "d", tmp_path / "many.ndjson", tmp_path / "other.ndjson")

    lines = [json.loads(text) for text in (tmp_path / "d/quarantine/reasons.ndjson").read_text().splitlines()]
    assert (205, [(200, 600), (5, 15)]) == (made.quarantined, [(line["count"], line["size"]) for line in lines])
    with tarfile.open(tmp_path / "d" / lines[0]["file"]) as archive:
        assert kept == len(archive.getnames())
    assert bool(lines[1]["file"]) == (bound != "BUDGET_REPORTS")


def test_reports_may_be_called_as_files_of_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "in" / "x").mkdir(parents=True)
    (tmp_path / "in" / "manifest.json").write_bytes(report("gpu1"))
    (tmp_path / "in" / "x" / "reasons.ndjson").write_bytes(report("gpu2") + b"\n")

    assert taken(tmp_path / "d", tmp_path / "in").fresh == 2


def test_what_is_hostile_and_still_a_report(tmp_path: Path) -> None:
    finding = {"rule": "r", "severity": "info", "impact": "", "remedy": ""}
    many = [{**finding, "subject": f"s{n}", "fingerprint": "f"} for n in range(30_000)]
    data = report("a\tb\x1b[31m", findings=many, nonsense="\x00")
    data = data.replace(b'"V"', b'"nul \\u0000 and \\\\u0000"').replace(b'"P"', b'"' + b"p" * 500_000 + b'"')
    assert len(data) < REPORT_LIMIT_BYTES
    made = take(tmp_path / "d", data)

    assert (made.fresh, made.quarantined) == (1, 0)
    ((node, vendor, length),) = rows(tmp_path / "d", "host", "node, vendor, length(product)")
    assert (node, vendor, length) == ("a?b?[31m", "nul \ufffd and \\u0000", 500_000)
    assert rows(tmp_path / "d", "finding", "count(*)") == [(30_000,)]


def test_counters_beyond_64_bits_are_kept_at_their_end(tmp_path: Path) -> None:
    gpu = {"id": "a", "pcie_counters": {"replays": 2**64 - 1, "nak": 3, "zero": 0}}
    take(tmp_path / "d", report(topology={"gpus": [gpu]}))

    assert rows(tmp_path / "d", "counter", "name, value") == [("nak", 3), ("replays", 2**63 - 1)]


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    """It may lead to what only who ingests may read; nothing of it is kept. One that is named is a source."""
    secret, source = tmp_path / "shadow", tmp_path / "in"
    source.mkdir()
    secret.write_bytes(b"root:secret")
    (source / "good.json").write_bytes(report())
    (source / "linked.json").symlink_to(secret)
    (source / "linked.ndjson").symlink_to(secret)
    (source / "linked.tar").symlink_to(secret)
    taken(tmp_path / "d", source)

    kept = [path for path in (tmp_path / "d").rglob("*") if path.is_file() and b"secret" in path.read_bytes()]
    assert [] == kept
    (tmp_path / "named.json").symlink_to(source / "good.json")
    assert 1 == taken(tmp_path / "e", tmp_path / "named.json").fresh


def test_quarantine_is_not_for_all_users(tmp_path: Path) -> None:
    """What is in it is not known."""
    (tmp_path / "bad.json").write_bytes(b"{")
    taken(tmp_path / "d", tmp_path / "bad.json", report_file(tmp_path))

    place = tmp_path / "d" / "quarantine"
    assert 0o700 == place.stat().st_mode & 0o777
    assert [0o600] == [path.stat().st_mode & 0o777 for path in place.iterdir() if path.name != "reasons.ndjson"]


def test_a_file_whose_name_is_no_text_is_named(tmp_path: Path) -> None:
    """In the list of reasons, which is UTF-8."""
    source = tmp_path / "in"
    source.mkdir()
    for name in (b"bad-\xff\n.json", b"bad-\xfe.ndjson"):
        (Path(os.fsdecode(os.fsencode(source) + b"/" + name))).write_bytes(b"{")
    taken(tmp_path / "d", source, report_file(tmp_path))

    reasons = (tmp_path / "d" / "quarantine" / "reasons.ndjson").read_text(encoding="utf-8")
    assert "bad-\\\\udcff\\n.json" in reasons
    assert "bad-\\\\udcfe.ndjson" in reasons


def report_file(folder: Path) -> Path:
    """A report that can be taken."""
    (folder / "good.json").write_bytes(report())
    return folder / "good.json"
