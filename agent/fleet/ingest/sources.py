"""Where reports come from: files, folders, archives, streams, object stores -> pieces of work.

A file that is one report is read by a worker, and so are the lines of one of many, where it is known here at which
bytes they begin. What a file is by its name is the same in a folder and in an archive.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from agent.fleet.ingest.file_names import HEAD_BYTES, is_ours, kind_of, may_be_ours
from agent.fleet.ingest.streams import BadStream, ByteSpan, Piece, find_spans, read_pieces
from agent.fleet.store import BadStore, FileIdentity, Folder, ObjectStore, Store, hide_secrets, open_no_link, store_of
from probes.planted import PathUse, follow_links


class UnreadableSource(Exception):
    """A source that cannot be read at all; the message is one line that names it."""


class Item(NamedTuple):
    """One report to be read: where it is, or its bytes."""

    name: str  # for people
    store: str  # URL of the store; "": the bytes are here
    path: str
    data: bytes
    trouble: str = ""  # why it is known already that it cannot be taken
    offset: int = 0  # where in the file it begins
    size: int = 0  # 0: it is all of the file
    follow: bool = False  # it was named: a link is followed; one that is found in a folder is not
    modified: float = 0.0  # when its file was written, seconds since 1970; 0: not known
    file: str = ""  # that it is in, of this machine
    identity: FileIdentity = ()  # of that file, where the report is all of it and was found in a folder
    within: str = ""  # the name of what holds it with others
    number: int = 0  # its place there


class ReportSource(NamedTuple):
    """One SOURCE of the command line, checked."""

    name: str
    store: Store | None  # None: stdin
    path: str  # below the store, where it is one file; "": all below it


def check_sources(sources: list[str]) -> list[ReportSource]:
    """Raises UnreadableSource for the first that is not there or may not be read."""
    return [_check(source) for source in sources]


def list_items(sources: list[ReportSource]) -> Iterator[Item]:
    """Every report of the sources, in a fixed order. Raises UnreadableSource where a stream ends too early."""
    for source in sources:
        if source.store is None:
            yield from _stream("-", sys.stdin.buffer)
        elif source.path:
            yield from _list_file(source.store, source.path, source.name, True, _read_mtime(source.store, source.path))
        else:
            yield from _list_folder(source)


def _check(name: str) -> ReportSource:
    if name == "-":
        return ReportSource("-", None, "")
    try:
        store = store_of(name)
    except BadStore as error:
        raise UnreadableSource(str(error)) from error
    try:
        if isinstance(store, Folder):
            return _check_local(name, store)
        return _check_store(name, store)
    except OSError as error:
        raise UnreadableSource(f"{hide_secrets(name)}: {error.strerror or str(error)[:200]}") from error


def _check_local(name: str, store: Folder) -> ReportSource:
    follow_links(store.root, PathUse.READ)
    mode = os.stat(store.root).st_mode
    if stat.S_ISDIR(mode):
        os.scandir(store.root).close()
        return ReportSource(name, store, "")
    if not stat.S_ISFIFO(mode):  # a pipe is opened once
        with open(store.root, "rb"):
            pass
    folder, base = os.path.split(store.root)
    return ReportSource(name, Folder(folder), base)


def _check_store(name: str, store: Any) -> ReportSource:
    from pyarrow import fs

    (info,) = store.filesystem.get_file_info([store.root])
    if info.type == fs.FileType.Directory or (info.type == fs.FileType.NotFound and any(store.listed(""))):
        return ReportSource(name, store, "")
    if info.type != fs.FileType.File:
        raise UnreadableSource(f"{hide_secrets(name)}: No such file or directory")
    folder, _, base = store.root.rpartition("/")
    return ReportSource(name, ObjectStore(name, store.filesystem, folder), base)


def _list_folder(source: ReportSource) -> Iterator[Item]:
    """Files that are named as reports are. Those of a dataset that describe other files are left out."""
    assert source.store is not None
    for listed in source.store.listed(""):
        if listed.trouble:
            yield Item(os.path.join(hide_secrets(source.name), listed.path), "", "", b"", listed.trouble)
        elif kind_of(listed.path) and not (may_be_ours(listed.path) and _is_ours(source.store, listed.path)):
            name = os.path.join(hide_secrets(source.name), listed.path)
            yield from _list_file(source.store, listed.path, name, False, listed.modified, listed.identity)


def _list_file(
    store: Store, path: str, name: str, named: bool, modified: float, identity: FileIdentity = ()
) -> Iterator[Item]:
    if kind_of(os.path.basename(path)) == "report" or not (named or _is_regular(store, path)):
        url = store.address if isinstance(store, ObjectStore) else store.url
        here = store.full(path) if isinstance(store, Folder) else ""
        # what is no file is not opened here: the worker reports it
        yield Item(name, url, path, b"", modified=modified, file=here, follow=named, identity=identity)
        return
    try:
        with _open(store, path, named) as file:
            lines = find_spans(file) if isinstance(store, Folder) else None
            pieces = _stream(name, file) if lines is None else _list_parts(name, store, path, lines, named)
            here = store.full(path) if isinstance(store, Folder) else ""
            yield from (item._replace(file=here) for item in pieces)
    except FileNotFoundError as error:
        if named:
            raise UnreadableSource(f"{name}: {error.strerror}") from error
        yield Item(name, "", "", b"", f"vanished: {error.strerror}")
    except OSError as error:
        raise UnreadableSource(f"{name}: {error.strerror or str(error)[:200]}") from error


def _read_mtime(store: Store, path: str) -> float:
    """Of a file that was named; 0: not known."""
    if not isinstance(store, Folder):
        return 0.0
    try:
        file_stat = os.stat(store.full(path))
    except OSError:  # reported where it is read
        return 0.0
    return file_stat.st_mtime if stat.S_ISREG(file_stat.st_mode) else 0.0


def _is_ours(store: Store, path: str) -> bool:
    if not _is_regular(store, path):
        return False
    try:
        with _open(store, path, False) as file:
            return is_ours(file.read(HEAD_BYTES))
    except OSError:  # reported where it is read
        return False


def _is_regular(store: Store, path: str) -> bool:
    """A pipe among files would be waited for, and a link leads to what only who ingests may read."""
    if not isinstance(store, Folder):
        return True
    try:
        return stat.S_ISREG(os.lstat(store.full(path)).st_mode)
    except OSError:  # reported where it is read
        return True


def _list_parts(name: str, store: Store, path: str, lines: Iterator[ByteSpan], named: bool) -> Iterator[Item]:
    for line in lines:
        yield Item(
            f"{name}:{line.place}",
            store.url,
            path,
            b"",
            line.trouble,
            line.offset,
            line.size,
            named,
            within=name,
            number=line.offset,
        )


def _stream(name: str, file: BinaryIO) -> Iterator[Item]:
    number = 0
    try:
        for piece in read_pieces(file):
            yield _make_item(name, number, piece)
            number += 1
    except BadStream as error:
        yield Item(name, "", "", error.data, str(error), within=name, number=number)


def _make_item(name: str, number: int, piece: Piece) -> Item:
    place = f"{name}:{piece.place}" if piece.place else name
    return Item(place, "", "", piece.data, piece.trouble, modified=piece.modified, within=name, number=number)


def _open(store: Store, path: str, follow: bool) -> Any:
    if isinstance(store, Folder):
        return open(store.full(path), "rb", opener=None if follow else open_no_link)
    assert isinstance(store, ObjectStore)
    return store.filesystem.open_input_stream(store.at(path), compression=None)
