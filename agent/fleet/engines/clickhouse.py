"""ClickHouse in this process (chDB) over the dataset's Parquet files."""

from __future__ import annotations

import logging
from typing import Any

import ibis
from ibis.expr import types as ir

from agent.fleet.dataset import BadDataset, open_dataset
from agent.fleet.engines import shapes
from agent.fleet.engines.backend import Backend, one_line
from agent.fleet.engines.engine import EngineRefused
from agent.fleet.tables import BOOL, FLOAT, INT, TEXT, TIME

_TYPES = {TEXT: "String", INT: "Int64", FLOAT: "Float64", BOOL: "Bool", TIME: "DateTime64(6, 'UTC')"}


class Chdb(Backend):
    """Views over the files that the manifest names."""

    def __init__(self, dataset: str) -> None:
        try:
            self._dataset = open_dataset(dataset)
        except BadDataset as error:
            raise EngineRefused(str(error)) from error
        if self._dataset.store.remote:
            raise EngineRefused("chdb: a dataset in a folder is asked for")
        logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)  # it tells on stderr what chDB has no use for
        try:
            backend: Any = ibis.clickhouse.connect(interface="chdb")
        except ImportError as error:
            raise EngineRefused(f"chdb: a library is missing: {error} (pip install chdb clickhouse-connect)") from error
        except Exception as error:
            raise EngineRefused(one_line("chdb", error)) from error
        super().__init__("chdb", backend)
        self._views: set[str] = set()

    def latest(self, name: str) -> ir.Table:
        """The view of that table."""
        self._view(name, self._dataset.latest(name))
        return super().latest(name)

    def history(self, name: str) -> ir.Table:
        """The view of that table's history."""
        self._view(shapes.HISTORY + name, self._dataset.history(name))
        return super().history(name)

    def _view(self, name: str, files: list[str]) -> None:
        if name in self._views:
            return
        wanted = _text(", ".join(f"`{each.name}` Nullable({_TYPES[each.type]})" for each in shapes.columns(name)))
        # a file each: a pattern that meets no file would be an empty table without a word
        sources = " UNION ALL ".join(f"FROM file({_text(each)}, 'Parquet', {wanted}) SELECT *" for each in files)
        try:
            self._backend.raw_sql(f"CREATE OR REPLACE VIEW `{name}` AS {sources}")
        except Exception as error:
            raise EngineRefused(one_line(self.name, error)) from error
        self._views.add(name)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
