"""A drop folder that is read again and again: known reports are skipped, files are moved out."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

from agent.fleet.ingest import known, moving, worker
from agent.fleet.ingest.moving import Keep
from agent.fleet.ingest.sources import UnreadableSource
from tests.agent.fleet.small import report, rows, take, taken

pytest.importorskip("duckdb")


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """Three reports in files, and lines of two more."""
    folder = tmp_path / "drop"
    (folder / "rack1").mkdir(parents=True)
    for number in (1, 2, 3):
        (folder / "rack1" / f"n{number}.json").write_bytes(report(f"n{number}"))
    (folder / "more.ndjson").write_bytes(report("n4") + b"\n" + report("n5") + b"\n")
    return folder


def files(folder: Path) -> list[str]:
    """All of them, below it."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def test_known_reports_are_not_decoded_again(drop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken(tmp_path / "d", drop)
    (drop / "n6.json").write_bytes(report("n6"))
    decoded = []
    read = worker.read
    monkeypatch.setattr(worker, "read", lambda text, *more: decoded.append(text) or read(text, *more))

    made = taken(tmp_path / "d", drop)

    assert (6, 1, 5, 6) == (made.read, made.fresh, made.repeated, made.nodes)
    assert 1 == len(decoded)


def test_a_file_that_is_replaced_while_it_is_read_stays(
    drop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another report by then, which is not in the dataset yet."""
    here = worker._read_local

    def read_and_replace(store: Any, path: str, follow: bool) -> Any:
        data = here(store, path, follow)
        if path.endswith("n2.json"):
            (drop / "rack1" / "n2.json").write_bytes(report("n22"))
        return data

    monkeypatch.setattr(worker, "_read_local", read_and_replace)
    first = taken(tmp_path / "d", drop, move=str(tmp_path / "taken"))
    monkeypatch.undo()
    assert (3, ["rack1/n2.json"]) == (first.moved, files(drop))
    assert ["it was replaced while it was read"] == [line.partition("not moved: ")[2] for line in first.unmoved]

    assert 1 == taken(tmp_path / "d", drop, move=str(tmp_path / "taken")).moved
    assert ("n22",) in rows(tmp_path / "d", "host", "node")


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is half of two reports: neither taken nor put into quarantine."""
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.json").write_bytes(report("n1"))
    real, grown = os.read, list[bool]()

    def read_and_grow(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        if data and not grown:
            grown.append(True)
            with open(source / "a.json", "ab") as file:
                file.write(b" ")
        return data

    monkeypatch.setattr(worker.os, "read", read_and_grow)
    made = taken(tmp_path / "d", source)
    monkeypatch.undo()
    assert (made.fresh, made.quarantined, len(made.unread)) == (0, 0, 1)
    assert made.unread[0].endswith("a.json: changed while it was read: the next ingest reads it")
    assert taken(tmp_path / "d", source).fresh == 1


@pytest.mark.parametrize(
    ("keep", "left"), [(Keep(), "12345"), (Keep(250), "45"), (Keep(None, 2.5), "345"), (Keep(250, 1.5), "45")]
)
def test_what_was_moved_is_bounded_by_bytes_and_days(keep: Keep, left: str, drop: Path, tmp_path: Path) -> None:
    """The oldest received reports go; files of another name or kind stay, however old or large they are."""
    target = tmp_path / "taken"
    target.mkdir()
    for number in range(1, 6):  # the first is the oldest
        path = target / f"n{number}_20260101T000000Z_{'a' * 16}.json.gz{'.1' if number == 2 else ''}"
        path.write_bytes(b"x" * 100)
        os.utime(path, (time.time() - (5 - number) * 86400,) * 2)
    (target / "notes.txt").write_bytes(b"x" * 1000)
    (target / f"n9_20260101T000000Z_{'b' * 16}.json").symlink_to(tmp_path)
    for name in ("notes.txt", f"n9_20260101T000000Z_{'b' * 16}.json"):
        os.utime(target / name, (1, 1), follow_symlinks=False)
    taken(tmp_path / "d", drop, move=str(target), keep=keep)

    names = {path.name for path in target.iterdir()}
    assert left == "".join(sorted(name[1] for name in names if name.startswith("n") and "_" in name and name[1] != "9"))
    assert {"notes.txt", f"n9_20260101T000000Z_{'b' * 16}.json", "more.ndjson"} <= names


def test_what_another_ingest_moved_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """The name was free when it was looked up."""
    for name in ("file", "place"):
        (tmp_path / name).write_text(name)

    assert not moving._move_to(str(tmp_path / "file"), str(tmp_path / "place"))
    assert ["file", "place"] == [(tmp_path / name).read_text() for name in ("file", "place")]


def test_a_file_with_holes_is_not_copied_to_another_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terabyte of nothing would fill it; a whole file is copied."""
    (tmp_path / "whole").write_text("whole")
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 40)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    assert moving._move_to(str(tmp_path / "whole"), str(tmp_path / "moved"))
    with pytest.raises(OSError, match="it has holes"):
        moving._move_to(str(tmp_path / "holes"), str(tmp_path / "place"))
    assert {path.name for path in tmp_path.iterdir()} == {"holes", "moved"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that an ingest opens; one that was written just now is taken for one that has come to rest."""
    found: list[str] = []
    here = worker._read_local
    monkeypatch.setattr(known, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(
        worker, "_read_local", lambda store, path, follow: found.append(path) or here(store, path, follow)
    )
    return found


def test_a_file_that_did_not_change_is_not_opened_again(drop: Path, tmp_path: Path, opened: list[str]) -> None:
    first = taken(tmp_path / "d", drop)
    before = list(opened)
    made = taken(tmp_path / "d", drop)

    assert (3, 5, 5) == (len(before), first.read, first.fresh)
    assert before == opened
    assert (5, 0, 5, 5) == (made.read, made.fresh, made.repeated, made.nodes)


def test_a_file_that_changed_is_read_again_though_size_and_time_are_the_same(
    drop: Path, tmp_path: Path, opened: list[str]
) -> None:
    taken(tmp_path / "d", drop)
    opened.clear()
    file = drop / "rack1" / "n1.json"
    told = file.stat()
    file.write_bytes(report("n9"))
    os.utime(file, ns=(told.st_atime_ns, told.st_mtime_ns))

    made = taken(tmp_path / "d", drop)

    assert (["rack1/n1.json"], 1, 6) == (opened, made.fresh, made.nodes)
    assert told.st_size == file.stat().st_size


def test_a_file_that_was_written_just_now_is_read_again(
    drop: Path, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may change once more within one tick of the file system's clock."""
    monkeypatch.setattr(known, "SETTLED_SECONDS", 3600.0)
    taken(tmp_path / "d", drop)
    taken(tmp_path / "d", drop)

    assert 6 == len(opened)


def test_what_a_dataset_does_not_have_is_read_whatever_its_list_says(
    drop: Path, tmp_path: Path, opened: list[str]
) -> None:
    """The list of another dataset; another cluster, whose nodes have other names."""
    taken(tmp_path / "old", drop)
    taken(tmp_path / "d", drop / "more.ndjson")
    (tmp_path / "d" / "known_files.bin").write_bytes((tmp_path / "old" / "known_files.bin").read_bytes())

    assert (3, 5) == (taken(tmp_path / "d", drop).fresh, taken(tmp_path / "old", drop, cluster="east").fresh)


@pytest.mark.parametrize("data", [b"", b"files1l", b"files1l" + b"x" * 15, b"files1b" + b"x" * 48, b"\0" * 55])
def test_a_damaged_list_is_none(drop: Path, tmp_path: Path, opened: list[str], data: bytes) -> None:
    taken(tmp_path / "d", drop)
    (tmp_path / "d" / "known_files.bin").write_bytes(data)

    assert (0, 5) == ((made := taken(tmp_path / "d", drop)).fresh, made.repeated)
    assert 6 == len(opened)
    assert taken(tmp_path / "d", drop).repeated == 5
    assert 6 == len(opened)


def test_the_list_holds_a_bounded_number_of_files(
    drop: Path, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the run that found it full."""
    monkeypatch.setattr(known, "MOST_FILES", 3)
    taken(tmp_path / "d", drop)
    for name in ("n2.json", "n3.json"):
        (drop / "rack1" / name).unlink()
    (drop / "rack1" / "n7.json").write_bytes(report("n7"))
    taken(tmp_path / "d", drop)
    opened.clear()

    taken(tmp_path / "d", drop)
    assert [] == opened
    assert 7 + 2 * 16 == (tmp_path / "d" / "known_files.bin").stat().st_size


def test_known_files_are_moved_too(drop: Path, tmp_path: Path, opened: list[str]) -> None:
    taken(tmp_path / "d", drop)
    opened.clear()
    made = taken(tmp_path / "d", drop, move=str(tmp_path / "done"))

    assert ([], 4, []) == (opened, made.moved, files(drop))


def test_the_same_report_of_another_cluster_is_another_node(drop: Path, tmp_path: Path) -> None:
    taken(tmp_path / "d", drop)
    east = taken(tmp_path / "d", drop, cluster="east")
    again = taken(tmp_path / "d", drop, cluster="east")

    assert (5, 0, 10) == (east.fresh, east.repeated, east.nodes)
    assert (0, 5) == (again.fresh, again.repeated)


def test_a_report_that_was_judged_again_is_no_known_one(tmp_path: Path) -> None:
    take(tmp_path / "d", report())
    made = take(tmp_path / "d", report(generated_at="2026-01-16T00:00:00Z", summary={"verdict": "error"}))

    assert (1, [("error",)]) == (made.fresh, rows(tmp_path / "d", "host", "verdict"))


def test_files_are_moved_once_the_dataset_has_them(drop: Path, tmp_path: Path) -> None:
    """Known ones too; what is no report is kept in quarantine."""
    taken(tmp_path / "d", drop / "rack1" / "n1.json")
    (drop / "bad.json").write_bytes(b"{")
    (drop / "notes.txt").write_bytes(b"no report by its name")

    made = taken(tmp_path / "d", drop, move=str(tmp_path / "done"))

    assert ["notes.txt"] == files(drop)
    assert ["bad.json", "more.ndjson", "rack1/n1.json", "rack1/n2.json", "rack1/n3.json"] == files(tmp_path / "done")
    assert (5, [], 1) == (made.moved, made.unmoved, made.quarantined)


def test_nothing_that_was_moved_before_is_replaced(drop: Path, tmp_path: Path) -> None:
    taken(tmp_path / "d", drop, move=str(tmp_path / "done"))
    (drop / "rack1" / "n1.json").write_bytes(report("n1", hour=1))
    taken(tmp_path / "d", drop, move=str(tmp_path / "done"))

    assert report("n1") == (tmp_path / "done" / "rack1" / "n1.json").read_bytes()
    assert report("n1", hour=1) == (tmp_path / "done" / "rack1" / "n1.json.1").read_bytes()


def test_a_damaged_archive_and_what_cannot_be_read_stay(drop: Path, tmp_path: Path) -> None:
    (drop / "cut.ndjson.gz").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\3cut")
    (drop / "link.json").symlink_to(tmp_path / "nowhere")

    taken(tmp_path / "d", drop, move=str(tmp_path / "done"))

    assert ["cut.ndjson.gz"] == files(drop)
    assert (drop / "link.json").is_symlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_that_cannot_be_moved_is_named(drop: Path, tmp_path: Path) -> None:
    (drop / "rack1").chmod(0o555)
    try:
        made = taken(tmp_path / "d", drop, move=str(tmp_path / "done"))
    finally:
        (drop / "rack1").chmod(0o755)

    assert (1, 3) == (made.moved, len(made.unmoved))
    assert made.unmoved[0].endswith("n1.json: not moved: Permission denied")


def test_a_target_that_would_be_read_again_is_refused(drop: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="would be read again"):
        taken(tmp_path / "d", drop, move=str(drop / "done"))
    assert not (tmp_path / "d" / "manifest.json").exists()


def test_only_files_of_this_machine_are_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableSource, match="only files of this machine are moved, not those of -"):
        taken(tmp_path / "d", "-", move=str(tmp_path / "done"))
