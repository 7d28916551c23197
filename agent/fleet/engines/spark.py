"""Spark over the dataset's Parquet files: `local`, or a master at spark://HOST:PORT that sees the same files."""

from __future__ import annotations

import os
from typing import Any

from ibis.expr import types as ir

from agent.fleet.dataset import BadDataset, open_dataset
from agent.fleet.engines import shapes
from agent.fleet.engines.backend import Backend, one_line
from agent.fleet.engines.engine import EngineRefused
from agent.fleet.tables import BOOL, FLOAT, INT, TEXT, TIME

_TYPES = {TEXT: "string", INT: "bigint", FLOAT: "double", BOOL: "boolean", TIME: "timestamp"}


class Spark(Backend):
    """Views over the files that the manifest names."""

    def __init__(self, url: str, dataset: str) -> None:
        try:
            self._dataset = open_dataset(dataset)
            import ibis
            from pyspark.sql import SparkSession
        except BadDataset as error:
            raise EngineRefused(str(error)) from error
        except ImportError as error:
            raise EngineRefused(f"{url}: a library is missing: {error} (pip install pyspark, and Java)") from error
        master = url if url.startswith("spark://") else "local[*]"
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1" if master == "local[*]" else "")
        try:
            self._session: Any = (
                SparkSession.builder.master(master)
                .appName("fabricscope fleet")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.shuffle.partitions", str(max(2, 2 * (os.cpu_count() or 1))))
                .config("spark.log.level", "ERROR")
                .getOrCreate()
            )
            super().__init__("spark", ibis.pyspark.connect(self._session))
        except Exception as error:
            raise EngineRefused(one_line(url, error)) from error
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
        # a schema of our own: columns that files of an earlier version lack are null
        wanted = ", ".join(f"`{each.name}` {_TYPES[each.type]}" for each in shapes.columns(name))
        try:
            self._session.read.schema(wanted).parquet(*files).createOrReplaceTempView(name)
        except Exception as error:
            raise EngineRefused(one_line(self.name, error)) from error
        self._views.add(name)
