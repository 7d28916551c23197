"""Folders and archives that are too large, cut, or lead elsewhere: each thing that is not read has its reason."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.switches import collection, normalized
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

    monkeypatch.setattr(collection, "TOTAL_BYTES", len(STATUS))
    assert ["leaf1/x2: more than 0 GiB with the files before it"] == read(leaf)
    other = tmp_path / "other" / "leaf2"
    other.mkdir(parents=True)
    (other / "status.txt").write_text(STATUS)
    came = read_collection([str(leaf.parent), str(other.parent)])
    assert (["leaf1"], 2) == (list(came.switches), len(came.problems))  # a bound for all paths
    monkeypatch.setattr(collection, "TOTAL_BYTES", 1 << 30)
    monkeypatch.setattr(collection, "KEPT_BYTES", len(STATUS))
    assert ["leaf1/x2: the files before it in its folder have more than 0 MiB"] == read(leaf)
    monkeypatch.undo()

    (leaf / "1" / "2" / "3" / "4").mkdir(parents=True)
    (leaf / "1" / "2" / "3" / "4" / "deep.txt").write_text(STATUS)
    assert ["leaf1/1/2/3: folders below it are not read: 4 levels are"] == read(leaf)


def test_a_sparse_file_takes_no_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is read: not the 4 GiB of it that would leave nothing for the files after it."""
    leaf = fleet(tmp_path)
    for size, name in ((16 << 20, "a"), (1 << 40, "b")):
        with (leaf / name).open("wb") as file:
            file.truncate(size)
    monkeypatch.setattr(collection, "TOTAL_BYTES", 16 << 20)

    assert ["leaf1/a: 16 MiB or more", "leaf1/b: 16 MiB or more"] == read(leaf)


PORTS = '{"switch": "leaf%d", "port": "Ethernet%d"}\n'
COUNTERS = '{"subject": "swport:leaf%d/Ethernet%d", "name": "flaps", "value": 1}\n'


@pytest.mark.parametrize(("row", "ports", "rows"), [(PORTS, 5, 100), (COUNTERS, 5, 100), (PORTS, 100, 9)])
def test_ports_and_rows_are_bounded_in_all(
    row: str, ports: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also within a file; what is not read is named, and a port that is there twice is one."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.ndjson").write_text("".join(row % (name == "b", number // 2) for number in range(10)))
    monkeypatch.setattr(normalized.Room, "__init__", lambda room: set_room(room, ports, rows))
    came = read_collection([str(tmp_path)])

    assert {"leaf0": 5} == {name: len(switch.ports) for name, switch in came.switches.items()}
    reason = "more than 500,000 ports or 20,000,000 normalized lines in all: compare parts of the fabric"
    first, second = (line.removeprefix(f"{tmp_path}/") for line in came.problems)
    assert (f"a.ndjson: not read from line 10 on: {reason}", f"b.ndjson: {reason}") == (first, second)


def set_room(room: normalized.Room, ports: int, rows: int) -> None:
    """A small one."""
    room.ports, room.rows = ports, rows


def test_ports_of_outputs_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of normalized lines do."""
    leaf = fleet(tmp_path)
    (leaf.parent / "leaf2").mkdir()
    (leaf.parent / "leaf2" / "status.txt").write_text(STATUS)
    monkeypatch.setattr(normalized.Room, "__init__", lambda room: set_room(room, 1, 100))
    (line,) = read(leaf)
    assert line.startswith("leaf2/status.txt: more than 500,000 ports")


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


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it would be of another moment."""

    class Growing(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(-1 if size is None else size)
            with open(tmp_path / "leaf1" / "config_db.json", "ab") as file:
                file.write(b" ")
            return data or b""

    (tmp_path / "leaf1").mkdir()
    (tmp_path / "leaf1" / "config_db.json").write_text('{"PORT": {"Ethernet0": {"mtu": "9100"}}}')
    assert list(read_collection([str(tmp_path)]).switches) == ["leaf1"]
    monkeypatch.setattr(collection, "open_saved", lambda path, follow: Growing(path))

    found = read_collection([str(tmp_path)])

    assert found.switches == {}
    assert [problem.partition(": ")[2] for problem in found.problems] == ["changed while it was read"]
