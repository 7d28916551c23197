"""The tables as Arrow schemas and Parquet files: one place that states how a column is stored."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

from agent.fleet.tables import BOOL, FLOAT, HISTORY, INT, TABLES, TEXT, TIME, history_columns

TYPES: dict[str, Any] = {
    TEXT: pa.string(),
    INT: pa.int64(),
    FLOAT: pa.float64(),
    BOOL: pa.bool_(),
    TIME: pa.timestamp("us", tz="UTC"),
}
PARQUET = {"compression": "zstd", "compression_level": 1, "store_schema": False, "write_page_index": False}
# Nearly every row has another value: as a dictionary they would be written twice, and read twice
_GUIDS = ("node_guid", "system_image_guid", "port_guid")
_OWN = frozenset(("machine_id", "boot_id", "serial", "uuid", "mac", "address", "module_serial", "number", *_GUIDS))


@cache
def schema(name: str, history: bool = False) -> Any:
    """The Arrow schema of a table as its files have it. Raises KeyError."""
    table = HISTORY[name] if history else TABLES[name]
    columns = history_columns(table) if history else table.columns
    return pa.schema([(column.name, TYPES[column.type]) for column in columns])


def by_dictionary(plain: Any) -> list[str]:
    """Columns whose values repeat."""
    return [name for name in plain.names if name not in _OWN]


@cache
def packed_schema(plain: Any) -> Any:
    """The same with text by dictionary, where its values repeat: how rows are handed to the writer."""
    packed = pa.dictionary(pa.int32(), pa.string())
    repeated = {name for name in by_dictionary(plain) if plain.field(name).type == pa.string()}
    return pa.schema([(column.name, packed if column.name in repeated else column.type) for column in plain])
