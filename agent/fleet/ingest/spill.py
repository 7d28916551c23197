"""What workers leave on disk between reading and merging, so that memory does not grow with the number of reports.

An epoch is what one worker read in a row: a folder with the distinct rows of each table as Arrow files, which are
mapped and not read, and `entries`: a line of numbers a report and table, grouped by slot.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from agent.fleet.columns import TYPES, packed_schema, schema
from agent.fleet.dataset import slot_of
from agent.fleet.ingest.history import EPOCH, Sighting, TableVersion
from agent.fleet.ingest.texts import TextPlace
from agent.fleet.reading import ReadReport
from agent.fleet.rows import NAMES, Reader
from agent.fleet.rows.counters import CounterDigests, CounterRows
from agent.fleet.rows.unique_rows import Functions, Shared
from agent.fleet.tables import CLASS, COUNTER, PCI, TABLES, TIME

MOST_ROWS, MOST_REPORTS, MOST_BYTES = 400_000, 4000, 64 << 20  # of an epoch
_REMEMBERED_ROWS = 1 << 18  # of one table
_MOMENT = "observed_at"
_PLACE = {name: place for place, name in enumerate(NAMES)}


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """A report in an epoch."""

    node: str
    observed: int  # microseconds since 1970
    generated: int
    report: str
    digests: list[str]
    rows: list[bytes]  # numbers of rows, 32 bits each, a table each
    hardware_class: str
    boot_id: str | None = None
    uptime_seconds: float | None = None
    corrected: bool = False  # its moment is not the one of the node's clock
    counted: CounterDigests = CounterDigests(0, 0, False)
    pending: bytes = b""  # digest of its checks, where one needs an earlier sample
    text: TextPlace | None = None  # of a report that may be judged again
    epoch: str = ""

    @property
    def sighting(self) -> Sighting:
        """When it is of."""
        return Sighting(self.observed, self.generated, self.report)

    def change(self, table: str) -> TableVersion:
        """What its rows of a table are."""
        place = _PLACE[table]
        return TableVersion(self.digests[place], len(self.rows[place]) // 4)


class SpilledBlock(msgspec.Struct, array_like=True, frozen=True):
    """Where in an epoch the entries of a slot are."""

    epoch: str  # folder
    slot: int
    offset: int
    size: int


_ENTRIES = msgspec.msgpack.Decoder(list[Entry])


class Epoch:
    """The one that is being filled."""

    def __init__(self) -> None:
        self.reader = Reader()
        self._entries: defaultdict[int, list[Entry]] = defaultdict(list)
        self.reports = 0

    @property
    def full(self) -> bool:
        """Whether it should be written before more is read."""
        reader = self.reader
        return self.reports >= MOST_REPORTS or reader.size >= MOST_ROWS or reader.cost >= MOST_BYTES

    def add(self, read: ReadReport, text: TextPlace | None = None) -> Entry:
        """A report whose rows the reader has made."""
        label = read.label
        rows = [numbers.tobytes() for numbers in read.made.ids]
        observed, generated = to_micros(label.observed_at), to_micros(label.generated_at)
        entry = Entry(
            label.node,
            observed,
            generated,
            label.digest[:16],
            read.made.digests,
            rows,
            read.made.hardware_class,
            label.boot_id,
            label.uptime_seconds,
            counted=read.made.counted,
            pending=read.made.pending,
            text=text,
        )
        self._entries[slot_of(label.node)].append(entry)
        self.reports += 1
        return entry

    def write(self, folder: str) -> list[SpilledBlock]:
        """Leave everything in a new folder, and be empty. Raises OSError."""
        os.mkdir(folder)
        for name, unique in self.reader.unique.items():
            if unique.rows:
                shared = isinstance(unique, Shared)
                columns = (
                    _list_functions(unique)
                    if isinstance(unique, Functions)
                    else _list_columns(name, unique.rows, shared)
                )
                _write(os.path.join(folder, f"{name}.arrow"), name, columns)
        if self.reader.counters:
            name = COUNTER.name
            _write(os.path.join(folder, f"{name}.arrow"), name, _list_counters(self.reader.counters))
        blocks, offset = [], 0
        with open(os.path.join(folder, "entries"), "wb") as file:
            for slot, entries in sorted(self._entries.items()):
                data = msgspec.msgpack.encode(entries)
                file.write(data)
                blocks.append(SpilledBlock(folder, slot, offset, len(data)))
                offset += len(data)
        self.reader.clear()
        self._entries.clear()
        self.reports = 0
        return blocks


class Spilled:
    """Epochs on disk."""

    def __init__(self) -> None:
        self._mapped: tuple[tuple[str, str], Any] = ("", ""), None
        self._last: tuple[str, dict[tuple[int, ...], Any]] = "", {}  # history and what is latest ask for the same
        self._last_rows = 0

    def entries(self, blocks: list[SpilledBlock]) -> list[Entry]:
        """The entries of some blocks."""
        entries = []
        for block in blocks:
            with open(os.path.join(block.epoch, "entries"), "rb") as file:
                data = os.pread(file.fileno(), block.size, block.offset)
            entries += [msgspec.structs.replace(entry, epoch=block.epoch) for entry in _ENTRIES.decode(data)]
        return entries

    def rows(self, table: str, entries: list[Entry], dated: bool = False) -> list[Any]:
        """Arrow tables with the rows of these entries in their order, their node and its class. Some text is in codes.

        `dated`: with the moment of each, for history.
        """
        parts = []
        start = 0
        while start < len(entries):
            end = start
            while end < len(entries) and entries[end].epoch == entries[start].epoch:
                end += 1
            rows = self._take_rows(table, entries[start:end], dated)
            if rows is not None:
                parts.append(rows)
            start = end
        return parts

    def _take_rows(self, table: str, entries: list[Entry], dated: bool) -> Any:
        key = tuple(map(id, entries))
        if self._last[0] != table or self._last_rows > _REMEMBERED_ROWS:
            self._last, self._last_rows = (table, {}), 0
        taken_rows = self._last[1].get(key)
        if taken_rows is None:
            taken_rows = self._last[1][key] = (
                entries,
                *self._add_node(table, entries),
            )  # held, so that ids stay theirs
            self._last_rows += len(taken_rows[2] or ())
        _, rows, places = taken_rows
        if not TABLES[table].history:
            self._last[1].clear()
        if dated and rows is not None and _MOMENT not in rows.column_names:
            moments = pa.array([entry.observed for entry in entries], pa.int64()).cast(TYPES[TIME])
            return rows.add_column(1, _MOMENT, moments.take(places))
        return rows

    def _add_node(self, table: str, entries: list[Entry]) -> tuple[Any, Any]:
        """Rows, and for each the place of its entry; (None, None): there are none."""
        numbers = [entry.rows[_PLACE[table]] for entry in entries]
        count = sum(map(len, numbers)) // 4
        if not count:
            return None, None
        nodes = b"".join(
            [place.to_bytes(4, sys.byteorder) * (len(number) // 4) for place, number in enumerate(numbers)]
        )
        places = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(nodes)])
        wanted = pa.Array.from_buffers(pa.uint32(), count, [None, pa.py_buffer(b"".join(numbers))])
        node = pa.DictionaryArray.from_arrays(places, pa.array([entry.node for entry in entries], pa.string()))
        taken = _detach(self._make_table(entries[0].epoch, table).take(wanted))
        table_rows = taken.add_column(0, "node", node)
        if CLASS in TABLES[table].columns:
            kinds = pa.array([entry.hardware_class for entry in entries], pa.string()).dictionary_encode()
            table_rows = table_rows.append_column(CLASS.name, kinds.take(places))
        return table_rows, places

    def _make_table(self, epoch: str, table: str) -> Any:
        """One at a time: what is mapped counts as memory of this process, and of all epochs it would be gigabytes."""
        key = (epoch, table)
        if self._mapped[0] != key:
            with pa.memory_map(os.path.join(epoch, f"{table}.arrow")) as file:
                self._mapped = key, ipc.open_file(file).read_all()
        return self._mapped[1]


def _detach(rows: Any) -> Any:
    """The same rows without a dictionary that is in a mapped file, which would stay mapped as long as they do."""
    columns = [
        pa.chunked_array([_copy_dictionary(chunk) for chunk in column.chunks], column.type)
        if pa.types.is_dictionary(column.type)
        else column
        for column in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def _copy_dictionary(column: Any) -> Any:
    """Of a large one only what is used."""
    words = column.dictionary
    if len(words) > 4 * len(column):
        used = pc.unique(column.indices).drop_null()
        places = pc.index_in(column.indices, value_set=used)
        return pa.DictionaryArray.from_arrays(places.cast(pa.int32()), words.take(used))
    copied = [buffer and pa.py_buffer(buffer.to_pybytes()) for buffer in words.buffers()]
    whole = pa.Array.from_buffers(words.type, len(words), copied, offset=words.offset)
    return pa.DictionaryArray.from_arrays(column.indices, whole)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970 of an aware datetime, exactly."""
    since = moment - EPOCH
    return int(since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds)


def _list_fields(table: str) -> list[Any]:
    plain = schema(table)
    return [plain.field(column.name) for column in TABLES[table].own]


def _list_columns(table: str, rows: list[Any], taken: bool = False) -> list[Any]:
    """`taken`: rows are going to be there many times."""
    columns, packed = [], packed_schema(schema(table))
    for field, values in zip(_list_fields(table), zip(*rows, strict=True), strict=True):
        column = pa.array(values, field.type)
        if pa.types.is_dictionary(packed.field(field.name).type):
            column = column.dictionary_encode() if taken else _shorten(column)
        columns.append(column)
    return columns


def _shorten(text: Any) -> Any:
    """By dictionary, where values are repeated: of others it would be dragged along whole to every bucket."""
    short = text.dictionary_encode()
    return short if len(short.dictionary) * 4 < len(text) else text


def _list_functions(functions: Functions) -> list[Any]:
    """Columns of the few that differ, taken as often as each is there; then the serial numbers."""
    kind = functions.kind
    places = pa.Array.from_buffers(pa.uint32(), len(kind), [None, pa.py_buffer(kind)])
    columns = [column.take(places) for column in _list_columns(PCI.name, functions.kinds, taken=True)]
    columns[functions.serial_at] = pa.array(functions.serials, pa.string())
    return columns


def _list_counters(counters: CounterRows) -> list[Any]:
    counter_columns = []
    for codes, words in ((counters.subject, counters.subjects), (counters.name, counters.names)):
        places = pa.Array.from_buffers(pa.int32(), len(codes), [None, pa.py_buffer(codes)])
        counter_columns.append(pa.DictionaryArray.from_arrays(places, pa.array(list(words), pa.string())))
    value = counters.value
    return [*counter_columns, pa.Array.from_buffers(pa.int64(), len(value), [None, pa.py_buffer(value)])]


def _write(path: str, table: str, columns: list[Any]) -> None:
    batch = pa.record_batch(columns, names=[field.name for field in _list_fields(table)])
    with pa.OSFile(path, "wb") as file, ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
