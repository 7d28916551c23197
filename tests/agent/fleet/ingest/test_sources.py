"""Reports from wherever they come: files, folders, archives, lines, streams; whole, damaged or gone."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import sys
import tarfile
import tempfile
import time
import tracemalloc
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from agent.fleet import store
from agent.fleet.ingest import streams
from agent.fleet.ingest.files import Staging
from agent.fleet.ingest.sources import UnreadableSource, check_sources, list_items
from agent.fleet.ingest.streams import BadStream, find_spans, read_pieces
from agent.fleet.ingest.worker import BatchDone, IngestWorker, ReportBatch, Setup
from agent.fleet.reading import Naming, Unfit, unpack
from agent.model.report import REPORT_LIMIT_BYTES
from agent.ship.payload import parse_payload
from tests.agent.fleet.small import report, rows, take, taken

PACK = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def setup_at(place: Path) -> Setup:
    spill, staging = place / "spill", place / "staging"
    for each in (spill, staging):
        each.mkdir(exist_ok=True)
    return Setup(str(place / "d"), Staging(str(staging), 1), str(spill), Naming(), datetime.now(timezone.utc))


def test_a_folder_with_what_ship_leaves_there(tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    one, two, three = (parse_payload(report(f"gpu{n}")) for n in range(3))
    for each, compress, name in ((one, "gzip", ""), (two, "zstd", "landing"), (three, "none", "")):
        path = drop / (each.object_key(compress) if name else each.file_name(compress))
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"gzip": PACK[".gz"], "zstd": PACK[".zst"], "none": bytes}[compress](each.data)
        path.write_bytes(data)
    (drop / ".half.json.tmp").write_bytes(b"{")
    (drop / ".hidden").mkdir()
    (drop / ".hidden" / "report.json").write_bytes(b"{")
    (drop / "README.md").write_text("not a report")

    made = taken(tmp_path / "d", drop)
    assert (made.read, made.fresh, made.quarantined) == (3, 3, 0)


@pytest.mark.parametrize("suffix", ["", *PACK])
def test_archives_and_lines_however_they_are_packed(tmp_path: Path, suffix: str) -> None:
    pack = PACK.get(suffix, bytes)
    lines = b"\n".join([report("gpu1"), b"", report("gpu2")])
    (tmp_path / f"a.ndjson{suffix}").write_bytes(pack(lines))
    (tmp_path / f"b.tar{suffix}").write_bytes(
        pack(tar({"x/r.json": report("gpu3"), "x/r.json.gz": PACK[".gz"](report("gpu4"))}))
    )
    made = taken(tmp_path / "d", tmp_path / f"a.ndjson{suffix}", tmp_path / f"b.tar{suffix}")

    assert (made.fresh, made.quarantined, made.nodes) == (4, 0, 4)


def test_what_stdin_holds_is_seen_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [json.dumps(json.loads(report(f"gpu{n}")), indent=2).encode() + b"\n" for n in range(3)]
    forms = {
        "lines": b"".join(report(f"gpu{n}") + b"\n" for n in range(3)),
        "files one after the other": b"".join(whole),
        "gzip files one after the other": b"".join(map(gzip.compress, whole)),
        "tar": tar({f"{n}.json": each for n, each in enumerate(whole)}),
        "tar.gz": gzip.compress(tar({f"{n}.json": each for n, each in enumerate(whole)})),
    }
    for name, data in forms.items():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        made = taken(tmp_path / name.replace(" ", "-"), "-")
        assert (made.fresh, made.quarantined) == (3, 0), name


def test_one_file_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(report())
    (tmp_path / "s.json.zst").write_bytes(PACK[".zst"](report("gpu2")))
    (tmp_path / "odd name").write_bytes(report("gpu3"))

    assert taken(tmp_path / "d", *(tmp_path / n for n in ("r.json", "s.json.zst", "odd name"))).nodes == 3


def test_a_report_of_a_later_minor_version(tmp_path: Path) -> None:
    later = json.loads(report(schema_minor=99, weather={"rain": [1, {}]}))
    later["topology"]["gpus"][0]["colour"] = "green"
    del later["source"], later["summary"]["counts"]

    assert take(tmp_path / "d", json.dumps(later).encode()).fresh == 1
    assert rows(tmp_path / "d", "host", "schema_minor, source, error") == [(99, None, 0)]


def test_damaged_lines_name_their_place_and_the_others_are_taken(tmp_path: Path) -> None:
    long = b'{"x": "' + b"x" * (2 * REPORT_LIMIT_BYTES) + b'"}'
    lines = [report("gpu1"), b"{", long, report("gpu2"), report("gpu3")[:-9]]
    (tmp_path / "a.ndjson").write_bytes(b"\n".join(lines))
    made = taken(tmp_path / "d", tmp_path / "a.ndjson")

    assert (made.fresh, made.quarantined) == (2, 3)
    told = [json.loads(each) for each in (tmp_path / "d" / "quarantine" / "reasons.ndjson").read_text().splitlines()]
    assert [each["source"].rpartition(":")[2] for each in told] == ["2", "3", "5"]


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        (
            "a.ndjson.gz",
            gzip.compress(report("gpu1") + b"\n" + os.urandom(99_999).hex().encode())[:-9000],
            "truncated gzip",
        ),
        ("a.tar", b"", "empty"),
    ],
)
def test_a_stream_that_ends_early_gives_what_it_had(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    if name == "a.tar":
        data = tar({"1.json": report("gpu1"), "2.json": report("gpu2") + b" " * 9000})[:6000]
        why = "a damaged archive"
    (tmp_path / name).write_bytes(data)
    made = taken(tmp_path / "d", tmp_path / name)

    assert (made.fresh, made.quarantined) == (1, 1)
    assert why in (tmp_path / "d" / "quarantine" / "reasons.ndjson").read_text()


def test_an_archive_leads_nowhere_and_its_other_members_are_left_alone(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, kind in (("l.json", tarfile.SYMTYPE), ("d.json", tarfile.CHRTYPE), ("f.json", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        for name in ("../../out.json", "/abs.json", "notes.txt"):
            member = tarfile.TarInfo(name)
            member.size = len(report(name.strip("./")))
            archive.addfile(member, io.BytesIO(report(name.strip("./"))))
    (tmp_path / "a.tar").write_bytes(stream.getvalue())
    made = taken(tmp_path / "d", tmp_path / "a.tar")

    assert (made.read, made.fresh) == (2, 2)
    assert not (tmp_path.parent.parent / "out.json").exists()


def test_members_of_an_archive_are_taken_as_files_of_a_folder(tmp_path: Path) -> None:
    inner = tar({"deep.json": report("deep")})
    members = {
        "./x/plain.json": report("gpu1"),
        "x/packed.json.zst": PACK[".zst"](report("gpu2")),
        "x/lines.ndjson": report("gpu3") + b"\n{\n" + report("gpu4"),
        "x/lines.jsonl.gz": PACK[".gz"](report("gpu5") + b"\n" + report("gpu6")),
        "x/cut.ndjson.gz": PACK[".gz"](report("gpu7") + b"\n" + os.urandom(9999).hex().encode())[:-900],
        "x/old.json.bak": report("gpu8"),
        "x/.hidden.json": report("gpu9"),
        ".x/hidden.json": report("gpu9"),
        "x/inner.tar": inner,
    }
    (tmp_path / "a.tar").write_bytes(tar(members))
    made = taken(tmp_path / "d", tmp_path / "a.tar")

    assert rows(tmp_path / "d", "host", "node") == [(f"gpu{n}",) for n in (1, 2, 3, 4, 5, 6, 7)]
    told = [json.loads(each) for each in (tmp_path / "d" / "quarantine" / "reasons.ndjson").read_text().splitlines()]
    assert {each["source"].partition("a.tar:")[2]: each["reason"].partition(":")[0] for each in told} == {
        "x/lines.ndjson:2": "not JSON, or damaged",
        "x/cut.ndjson.gz": "truncated gzip",
        "x/inner.tar": "an archive within an archive is not opened",
    }
    for name, data in members.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "folder" / "x" / "inner.tar").unlink()
    assert taken(tmp_path / "e", tmp_path / "folder").fresh == made.fresh


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(report())
    with pytest.raises(UnreadableSource, match=r"none: No such file"):
        taken(tmp_path / "d", tmp_path / "r.json", tmp_path / "none")
    assert not (tmp_path / "d").exists()


def test_a_file_that_vanishes_is_told_and_one_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(3):
        (source / f"{number}.json").write_bytes(report(f"gpu{number}"))
    for name in ("pipe.json", "pipe.ndjson", "pipe.tar.gz", "reasons.ndjson"):
        os.mkfifo(source / name)
    from agent.fleet.ingest import worker

    real = worker._read_local

    def here(store: Any, path: str, follow: bool) -> bytes:
        if path == "1.json":
            (source / "1.json").unlink()
        return real(store, path, follow)

    monkeypatch.setattr(worker, "_read_local", here)
    made = taken(tmp_path / "d", source)
    assert (made.fresh, len(made.vanished), len(made.unread)) == (2, 1, 4)
    assert "1.json: No such file" in made.vanished[0]
    assert "pipe.json: exists and is not a file" in made.unread[0]


@given(
    st.binary(max_size=3000)
    | st.binary(max_size=300).map(gzip.compress)
    | st.binary(max_size=600).map(lambda b: tar({"a.json": b})[:-600])
)
def test_any_bytes_are_a_stream_or_a_reason(data: bytes) -> None:
    with contextlib.suppress(BadStream):
        assert sum(len(each.data) for each in read_pieces(io.BytesIO(data))) <= 1 << 20


@given(st.integers(0, 1 << 30), st.integers(0, 255))
def test_mutated_archives(place: int, value: int) -> None:
    data = bytearray(tar({"a.json": report(), "b.json.gz": gzip.compress(report())}))
    data[place % len(data)] = value
    for each in (bytes(data), gzip.compress(bytes(data))[: 1 + place % len(data)]):
        with contextlib.suppress(BadStream):
            assert len(list(read_pieces(io.BytesIO(each)))) <= 2


def tar(members: dict[str, bytes]) -> bytes:
    """A tar with these files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


@example(b"aaa" + b"b" * 18)  # a byte more than a report can have, and no newline
@given(st.lists(st.sampled_from([b"a", b"bb" * 9, b" ", b"\n", b"\r\n", b"{", b"{}", b"x" * 30])).map(b"".join))
def test_lines_of_a_file_are_those_of_a_stream(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as file:
        for name, value in (("_BLOCK", 7), ("REPORT_LIMIT_BYTES", 20), ("_KEPT", 5)):
            patch.setattr(f"agent.fleet.ingest.streams.{name}", value)
        file.write(data)
        file.seek(0)
        found = find_spans(file)
        if found is None:
            assert file.tell() == 0, "it is read as a stream then"
            return
        told = [(each.place, os.pread(file.fileno(), each.size, each.offset), each.trouble) for each in found]
        assert told == [tuple(each)[:3] for each in read_pieces(io.BytesIO(data))]


def test_a_file_of_lines_that_shrinks_or_goes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"\n".join(report(f"gpu{n}") for n in range(3)))
    found = list(list_items(check_sources([str(path)])))
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 100)
    worker = IngestWorker(setup_at(tmp_path))
    done = worker.do(ReportBatch(found))
    assert isinstance(done, BatchDone)
    assert (done.reports, len(done.nodes), len(done.refused)) == (3, 2, 1)
    path.unlink()
    gone = IngestWorker(setup_at(tmp_path)).do(ReportBatch(found))
    assert isinstance(gone, BatchDone)
    assert gone.vanished == [f"{path}:{n}: No such file or directory" for n in (1, 2, 3)]


ZSTD_BOMB = b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\x20" * (1 << 13)  # blocks of 128 KiB of blanks: 1 GiB


@pytest.mark.parametrize("name", ["gz", "bz2", "xz", "zst"])
def test_a_bomb_costs_no_memory(name: str, tmp_path: Path) -> None:
    """Neither as a report nor as a stream: bytes are decompressed as they are read, and no more of them."""
    blanks = b" " * (160 << 20)
    bomb = ZSTD_BOMB if name == "zst" else lzma.compress(blanks, preset=0) if name == "xz" else PACK[f".{name}"](blanks)
    tracemalloc.start()
    try:
        if name in ("gz", "zst"):
            with pytest.raises(Unfit):
                unpack(bomb)
        with contextlib.suppress(BadStream):  # that of zstd has no end
            assert all(piece.trouble for piece in read_pieces(io.BytesIO(bomb)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 150 << 20 > peak, f"{peak >> 20} MiB"


@pytest.mark.parametrize("name", sorted(PACK))
def test_a_stream_of_several_parts_however_they_are_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of one read is the beginning of the next."""
    monkeypatch.setattr("agent.fleet.ingest.streams._BLOCK", 700)
    monkeypatch.setattr("probes.compression.STEP_BYTES", 700)
    monkeypatch.setattr("probes.compression.ZSTD_STEP_BYTES", 13)
    reports = [report(f"gpu{number}", gpus=[f"{number}-{gpu}" for gpu in range(20)]) for number in range(6)]
    parts = [PACK[name](b"".join(text + b"\n" for text in reports[at : at + 2])) for at in (0, 2, 4)]

    assert reports == [piece.data.strip() for piece in read_pieces(io.BytesIO(b"".join(parts)))]
    with pytest.raises(BadStream, match="truncated"):
        list(read_pieces(io.BytesIO(b"".join(parts)[:-9])))


def test_a_sparse_file_and_a_deep_folder_hold_no_report_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a terabyte is not read to its end; a walk goes into itself, so that its depth has a limit."""
    assert store.MOST_LEVELS < 100
    monkeypatch.setattr(store, "MOST_LEVELS", 2)
    (tmp_path / "in/1/2/3/4").mkdir(parents=True)
    for place in ("in", "in/1/2", "in/1/2/3"):
        (tmp_path / place / "good.json").write_bytes(report(f"n{len(place)}"))
    with (tmp_path / "in/a.ndjson").open("wb") as file:
        file.truncate(1 << 40)
    began = time.process_time()
    result = taken(tmp_path / "dataset", tmp_path / "in")

    assert time.process_time() - began < 5
    assert 2 == result.fresh
    reasons = (tmp_path / "dataset" / "quarantine" / "reasons.ndjson").read_text()
    assert "a line of more than 64 MiB: nothing is read from it on" in reasons
    assert f'"{tmp_path}/in/1/2"' in reasons
    assert "folders below it are not read: 2 levels are" in reasons


def test_a_stream_without_a_line_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file is: what a packed one holds may be a terabyte, too."""
    monkeypatch.setattr(streams, "_MOST_SKIPPED", 100)
    monkeypatch.setattr(streams, "REPORT_LIMIT_BYTES", 20)
    pieces = list(read_pieces(io.BytesIO(b"{}\n" + b"x" * (3 << 20) + b"\n{}\n")))

    assert [("1", ""), ("2", streams._ENDLESS)] == [(piece.place, piece.trouble) for piece in pieces]
