"""Folders and archives that are too large, cut, or lead elsewhere: each thing that is not read has its reason."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.switches import collection
from probes.switches.collection import Collection, UnreadableCollection, read_collection
from tests.probes.switches.outputs import OUTPUTS

STATUS = OUTPUTS["show interfaces status", "txt"]


def fleet(tmp_path: Path) -> Path:
    """A folder with one switch that is read."""
    leaf = tmp_path / "fleet" / "leaf1"
    leaf.mkdir(parents=True)
    (leaf / "status.txt").write_text(STATUS)
    return leaf


def read(leaf: Path) -> list[str]:
    """What was not read, without the folder; the switch beside it is."""
    came = read_collection([str(leaf.parent)])
    assert ["leaf1"] == list(came.switches)
    return [line.removeprefix(f"{leaf.parent}").lstrip("/: ") for line in came.problems]


def tarred(*members: tuple[str, bytes, bytes]) -> bytes:
    """A tar of these names, types and contents."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(content), "leaf1/status.txt"
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


SWITCH = ("leaf1/status.txt", tarfile.REGTYPE, STATUS.encode())


def test_links_are_not_followed(tmp_path: Path) -> None:
    """They lead to what only this user may read; a path that is named may be one."""
    leaf = fleet(tmp_path)
    (tmp_path / "secret").write_text("root:x")
    (leaf / "a.txt").symlink_to(tmp_path / "secret")
    (leaf.parent / "loop").symlink_to(leaf.parent)

    assert [
        "loop: is a symbolic link, which is not read",
        "leaf1/a.txt: is a symbolic link, which is not read",
    ] == read(leaf)
    assert ["leaf1"] == list(read_collection([str(leaf.parent / "loop")]).switches)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe among the files, and a pipe as the path."""
    leaf = fleet(tmp_path)
    os.mkfifo(leaf / "pipe")

    assert ["leaf1/pipe: is a FIFO, which is not read"] == read(leaf)
    with pytest.raises(UnreadableCollection, match="is neither a folder nor a regular file"):
        read_collection([str(leaf / "pipe")])


def test_what_is_beyond_a_bound_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Number, size of one, size of all, depth."""
    leaf = fleet(tmp_path)
    for name in ("x1", "x2"):
        (leaf / name).write_text(STATUS)
    monkeypatch.setattr(collection, "MOST_FILES", 2)
    assert ["3 files, of which 2 are read"] == read(leaf)
    monkeypatch.undo()

    monkeypatch.setattr(collection, "TOTAL_BYTES", 2 * len(STATUS))
    (line,) = read(leaf)
    assert line.startswith("leaf1/x2: more than 0 GiB with the files before it")
    monkeypatch.undo()

    (leaf / "x2").write_bytes(b" " * collection.FILE_BYTES)
    assert ["leaf1/x2: 16 MiB or more"] == read(leaf)
    (leaf / "x2").unlink()

    (leaf / "1" / "2" / "3" / "4").mkdir(parents=True)
    (leaf / "1" / "2" / "3" / "4" / "deep.txt").write_text(STATUS)
    assert ["leaf1/1/2/3: folders below it are not read: 4 levels are"] == read(leaf)


def test_members_that_are_no_files_are_named(tmp_path: Path) -> None:
    """And hidden ones are left out, as in a folder."""
    path = tmp_path / "s.tar"
    path.write_bytes(
        tarred(SWITCH, ("leaf1/b", tarfile.SYMTYPE, b""), ("leaf1/c", tarfile.CHRTYPE, b""), ("leaf1/.d", b"0", b"x"))
    )
    came = read_collection([str(path)])

    assert ["leaf1"] == list(came.switches)
    assert [
        "leaf1/b: is a symbolic link, which is not read",
        "leaf1/c: is a character device, which is not read",
    ] == came.problems


ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "cut": (lambda: tarred(SWITCH)[:-9000], "is cut short"),
    "damaged": (lambda: tarred(SWITCH, ("leaf2/x", b"0", b"x")).replace(b"leaf2", b"leaf3"), "check sum is wrong"),
    "many": (lambda: tarred(*[SWITCH] * 4), "holds more than 3 files: unpack it into a folder"),
    "large": (lambda: tarred(("a", b"0", b" " * (1 << 20)), ("b", b"0", b" ")), "holds more than 1 MiB"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_whole_or_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a fleet does not pass for all of it."""
    monkeypatch.setattr(collection, "MOST_FILES", 3)
    monkeypatch.setattr(collection, "KEPT_BYTES", 1 << 20)
    make, why = ARCHIVES[name]
    path = tmp_path / "s.tar"
    path.write_bytes(make())

    with pytest.raises(UnreadableCollection, match=why):
        read_collection([str(path)])


@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_a_cut_output_breaks_nothing(output: tuple[str, str], tmp_path: Path) -> None:
    """At any place: what is left is read, or has a reason."""
    content = OUTPUTS[output]
    text = content if isinstance(content, str) else json.dumps(content)
    for part in range(0, len(text), max(1, len(text) // 12)):
        path = tmp_path / f"{output[0].replace(' ', '_')}.{output[1] or 'json'}"
        path.write_text(text[:part])
        came: Collection = read_collection([str(path)])
        assert came.switches or came.problems
