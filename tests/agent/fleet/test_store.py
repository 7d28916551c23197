"""A file of an object store is read whole, within its bounds."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from agent.fleet import store
from agent.fleet.dataset import MANIFEST, BadDataset, read_manifest
from agent.fleet.ingest.worker import _read_store
from agent.fleet.store import Folder, ObjectStore, open_no_link


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """With a manifest of 100 bytes, which comes by pieces of 10."""
    (tmp_path / MANIFEST).write_bytes(b"x" * 100)
    monkeypatch.setattr(store, "_PIECE_BYTES", 10)
    return ObjectStore("test://bucket", fs.LocalFileSystem(), str(tmp_path))


def test_a_file_that_fits_is_whole(bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many bytes as there may be."""
    monkeypatch.setattr(store, "READ_BYTES", 100)
    assert b"x" * 100 == bucket.read(MANIFEST)


@pytest.mark.parametrize(
    ("bound", "value", "why"),
    [("READ_BYTES", 99, "has more than 0 MiB"), ("READ_SECONDS", -1.0, "not all was read in -1 s")],
)
def test_what_is_beyond_a_bound_has_its_reason(
    bound: str, value: float, why: str, bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one line about the dataset."""
    monkeypatch.setattr(store, bound, value)
    with pytest.raises(BadDataset, match=f"{MANIFEST}: {why}$"):
        read_manifest(bucket)


class _NeverEnds:
    """A server that answers a listing or a read byte by byte, without end."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def get_file_info(self, selector: object) -> Any:
        return self.over.wait(5)

    def open_input_stream(self, path: str, compression: object) -> Any:
        return self.over.wait(5)


@pytest.mark.parametrize(
    "call", [lambda s: list(s.listed("")), lambda s: s.read(MANIFEST), lambda s: _read_store(s, "a")]
)
def test_a_server_that_never_ends_is_given_up(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "READ_SECONDS", 0.01)
    server = _NeverEnds()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"not all was read in 0.01 s"):
        call(ObjectStore("test://bucket", server, "root"))
    server.over.set()
    assert time.monotonic() - began < 4


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(("most", "cut"), [(3, False), (2, True)])
def test_a_listing_is_bounded(
    remote: bool, most: int, cut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not listed is said, so that it is no silence."""
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(store, "MOST_FILES", most)
    source = ObjectStore("test://x", fs.LocalFileSystem(), str(tmp_path)) if remote else Folder(str(tmp_path))
    listed = list(source.listed(""))

    assert [bool(info.trouble) for info in listed].count(True) == cut
    assert len([info for info in listed if not info.trouble]) <= most


def test_a_folder_that_is_mounted_into_itself_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a walk that follows links sees it; a folder that is there twice is no loop."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "twice").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "a" / "x.json").write_bytes(b"")
    monkeypatch.setattr(store.os, "walk", partial(os.walk, followlinks=True))

    listed = {(info.path, info.trouble) for info in Folder(str(tmp_path)).listed("")}

    loop = "is a folder that it is in itself: not read again"
    assert listed == {("a/x.json", ""), ("a/b/loop", loop), ("twice/loop/x.json", ""), ("twice/loop/b", loop)}


def test_a_link_that_took_the_place_of_a_listed_file_is_not_followed(tmp_path: Path) -> None:
    """A listing leaves links out; another user may be faster than the reading."""
    (tmp_path / "shadow").write_text("root:")
    (tmp_path / "r.json").symlink_to(tmp_path / "shadow")

    with pytest.raises(OSError, match="a symbolic link, which is not followed"):
        open_no_link(str(tmp_path / "r.json"), os.O_RDONLY)
