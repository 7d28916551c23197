"""Spark over the dataset's Parquet files: `local`, or a master at spark://HOST:PORT that sees the same files."""

from __future__ import annotations

import os
import socket
from typing import Any

from agent.fleet.engines import shapes
from agent.fleet.engines.backend import Views, refused
from agent.fleet.engines.engine import EngineRefused, dataset_at
from agent.fleet.tables import BOOL, FLOAT, INT, TEXT, TIME

_QUIET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log4j2.properties")
SECONDS = 10.0  # for a master to answer
_TYPES = {TEXT: "string", INT: "bigint", FLOAT: "double", BOOL: "boolean", TIME: "timestamp"}


class Spark(Views):
    """A dataset whose files every worker sees under the same paths."""

    def __init__(self, url: str, dataset: str) -> None:
        found = dataset_at(dataset)
        try:
            import ibis
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise EngineRefused(f"{url}: a library is missing: {error} (pip install pyspark, and Java)") from error
        master = url if url.startswith("spark://") else "local[*]"
        if master == url:
            _reach(url)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1" if master == "local[*]" else "")
        with refused(url):
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
            super().__init__("spark", ibis.pyspark.connect(self._session), found)

    def make(self, name: str, files: list[str]) -> None:
        """See Views.make."""
        wanted = ", ".join(f"`{each.name}` {_TYPES[each.type]}" for each in shapes.columns(name))
        session = self._session
        rows = session.read.schema(wanted).parquet(*files) if files else session.createDataFrame([], wanted)
        rows.createOrReplaceTempView(name)


def _reach(url: str) -> None:
    """Spark tries for a minute, and then says something else. Raises EngineRefused where no master listens."""
    why = "spark://HOST:PORT is meant"
    for each in url.removeprefix("spark://").split(","):  # masters that stand in for each other
        host, _, port = each.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), SECONDS).close()
        except (OSError, ValueError, OverflowError) as error:
            why = getattr(error, "strerror", None) or (str(error) if isinstance(error, OSError) else why)
        else:
            return
    raise EngineRefused(f"{url}: {why}")
