"""Spark over the dataset's Parquet files: `local`, or a master at spark://HOST:PORT that sees the same files."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from agent.fleet.engines import schema
from agent.fleet.engines.engine import EngineRefused, dataset_at
from agent.fleet.engines.query import Relation, Row
from agent.fleet.engines.translated import OverFiles, arrow_rows, raise_refused
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME

_QUIET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log4j2.properties")
SECONDS = 10.0  # for a master to answer
_TYPES = {TEXT: "string", INT: "bigint", FLOAT: "double", BOOL: "boolean", TIME: "timestamp"}


class Spark(OverFiles):
    """A dataset whose files every worker sees under the same paths."""

    dialect = "spark"
    mark = "`"

    def __init__(self, url: str, dataset: str) -> None:
        super().__init__("spark", dataset_at(dataset))
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise EngineRefused(f"{url}: a library is missing: {error} (pip install pyspark, and Java)") from error
        master = url if url.startswith("spark://") else "local[*]"
        if master == url:
            _reach(url)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1" if master == "local[*]" else "")
        with raise_refused(url):
            self._session: Any = (
                SparkSession.builder.master(master)
                .appName("fabricscope fleet")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.shuffle.partitions", str(max(2, 2 * (os.cpu_count() or 1))))
                .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{_QUIET}")
                .getOrCreate()
            )

    def make_view(self, name: str, files: list[str]) -> None:
        """See OverFiles."""
        wanted = _columns({column.name: column.type for column in schema.columns(name)})
        session = self._session
        rows = session.read.schema(wanted).parquet(*files) if files else session.createDataFrame([], wanted)
        rows.createOrReplaceTempView(name)

    def relation(self, relation: Relation) -> str:
        """A view of its rows: what is bound to a statement of Spark becomes part of its plan."""
        rows = [tuple(map(_with_zone, row)) for row in relation.rows]
        view = f"bound_{relation.name}"
        self._session.createDataFrame(rows, _columns(relation.columns)).createOrReplaceTempView(view)
        return f"SELECT * FROM {view}"  # noqa: S608  # our name

    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """See Translated."""
        scalars = {name: _with_zone(value) for name, value in parameters.items() if not isinstance(value, list)}
        return arrow_rows(self._session.sql(sql, args=scalars).toArrow())

    def close(self) -> None:
        """Stop it."""
        self._session.stop()


def _columns(types: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {_TYPES[kind]}" for name, kind in types.items())


def _with_zone(value: Any) -> Any:
    """Without one, a time would be taken for one of the machine's."""
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value


def _reach(url: str) -> None:
    """Spark tries for a minute, and then says something else. Raises EngineRefused where no master listens."""
    why = "spark://HOST:PORT is meant"
    for part in url.removeprefix("spark://").split(","):  # masters that stand in for each other
        host, _, port = part.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
        except (OSError, ValueError, OverflowError) as error:
            why = getattr(error, "strerror", None) or (str(error) if isinstance(error, OSError) else why)
        else:
            return
    raise EngineRefused(f"{url}: {why}")
