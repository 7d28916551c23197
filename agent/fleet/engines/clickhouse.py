"""ClickHouse in this process (chDB) over the dataset's Parquet files."""

from __future__ import annotations

import logging
from typing import Any

import ibis

from agent.fleet.engines import shapes
from agent.fleet.engines.backend import Views, refused
from agent.fleet.engines.engine import EngineRefused, dataset_at
from agent.fleet.tables import BOOL, FLOAT, INT, TEXT, TIME

_TYPES = {TEXT: "String", INT: "Int64", FLOAT: "Float64", BOOL: "Bool", TIME: "DateTime64(6, 'UTC')"}


class Chdb(Views):
    """A dataset in a folder."""

    def __init__(self, url: str) -> None:
        dataset = dataset_at(url)
        if dataset.store.remote:
            raise EngineRefused("chdb: a dataset in a folder is asked for")
        logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)  # it tells on stderr what chDB has no use for
        with refused("chdb"):
            try:
                backend: Any = ibis.clickhouse.connect(interface="chdb")
                backend.raw_sql("SET use_hive_partitioning = 0")  # bucket=07 in a path is no column of ours
            except ImportError as error:
                missing = f"chdb: a library is missing: {error} (pip install chdb clickhouse-connect)"
                raise EngineRefused(missing) from error
        super().__init__("chdb", backend, dataset)

    def make(self, name: str, files: list[str]) -> None:
        """See Views.make."""
        wanted = _text(", ".join(f"`{each.name}` Nullable({_TYPES[each.type]})" for each in shapes.columns(name)))
        # a file each: a pattern that meets no file would be an empty table without a word
        sources = " UNION ALL ".join(f"FROM file({_text(each)}, 'Parquet', {wanted}) SELECT *" for each in files)
        if not files:
            nothing = ", ".join(
                f"CAST(NULL, 'Nullable({_TYPES[each.type]})') AS `{each.name}`" for each in shapes.columns(name)
            )
            sources = f"SELECT {nothing} WHERE 0"
        self._backend.raw_sql(f"CREATE OR REPLACE VIEW `{name}` AS {sources}")


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
