"""Where the text of a report is found again when its bucket is written: its own file, or a copy beside the epochs."""

from __future__ import annotations

import os
from io import FileIO

import msgspec
import pyarrow as pa

from agent.fleet.ingest.sources import Item
from agent.fleet.reading import GZIP, ZSTD, Text, Unfit, unpack
from agent.fleet.store import Folder, open_no_link
from agent.model.report import REPORT_LIMIT_BYTES


class TextPlace(msgspec.Struct, array_like=True, frozen=True):
    """Bytes of a file."""

    path: str
    digest: str  # of the report, SHA-256
    offset: int = 0
    size: int = 0  # 0: all of it
    unpacked: int = 0  # bytes; 0: as they came
    follow: bool = False
    modified: float = 0.0


class TextCopies:
    """The copies that one process makes, in one file; what a local file has is not copied."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._end = 0

    def keep(self, item: Item, store: object, data: bytes, digest: str) -> TextPlace:
        """The place of an item's bytes. Raises OSError."""
        if isinstance(store, Folder):
            path = store.full(item.path)
            return TextPlace(path, digest, item.offset, item.size, 0, item.follow, item.modified)
        unpacked = 0
        if data[:2] != GZIP and data[:4] != ZSTD:
            unpacked, data = len(data), pa.compress(data, codec="lz4_raw", asbytes=True)
        if self._file is None:
            self._file = open(self._path, "xb", buffering=0)  # noqa: SIM115  # until the process has read all
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) or 0 :]
        place = TextPlace(self._path, digest, self._end, len(data), unpacked, False, item.modified)
        self._end += len(data)
        return place


def read_text(place: TextPlace) -> Text | None:
    """The report again; None where its file is another one by now."""
    try:
        opener = None if place.follow else open_no_link
        with open(place.path, "rb", buffering=0, opener=opener) as file:
            size = place.size or min(os.fstat(file.fileno()).st_size, REPORT_LIMIT_BYTES + 1)
            data = os.pread(file.fileno(), size, place.offset)
        if place.unpacked:
            data = pa.decompress(data, place.unpacked, codec="lz4_raw", asbytes=True)
        text = unpack(data)
    except (OSError, Unfit, pa.ArrowException):
        return None
    return text if text.digest == place.digest else None
