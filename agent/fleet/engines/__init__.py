"""Query engines: DuckDB in this process over the dataset's files, or an engine that exists already.

Every engine gets the same SQL, translated into its dialect. The questions themselves are in agent/fleet/questions.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.fleet.engines.engine import Engine

DEFAULT = "duckdb://"
OVER_FILES = ("duckdb", "chdb", "spark", "local")  # schemes of engines that read a dataset's files
TRANSLATED = ("chdb", "spark", "local", "postgres", "postgresql", "clickhouse", "clickhouses")  # of another dialect


def connect(url: str | None, dataset: str | None) -> Engine:
    """The tables of a dataset (a folder or URL) in the engine at `url`; DuckDB where it is None.

    Raises EngineRefused.
    """
    from agent.fleet.engines.engine import EngineRefused
    from agent.fleet.store import hide_secrets

    scheme = _scheme(url)
    if scheme in OVER_FILES and not dataset:
        raise EngineRefused("no dataset given: use --dataset DIR|URL, or set FABRICSCOPE_DATASET")
    if scheme == "duckdb":
        from agent.fleet.engines.duckdb_files import Embedded

        return Embedded(str(dataset))
    if scheme in TRANSLATED and find_spec("sqlglot") is None:
        raise EngineRefused(
            f"{hide_secrets(str(url))}: a library is missing: sqlglot (in the checkout, pip install '.[engines]')"
        )
    if scheme == "chdb":
        from agent.fleet.engines.clickhouse import Chdb

        return Chdb(str(dataset))
    if scheme in ("spark", "local"):
        from agent.fleet.engines.spark import Spark

        return Spark(str(url), str(dataset))
    if scheme in ("postgres", "postgresql"):
        from agent.fleet.engines.postgres import Postgres

        return Postgres(str(url))
    if scheme in ("clickhouse", "clickhouses"):
        from agent.fleet.engines.clickhouse import ClickHouse

        return ClickHouse(str(url))
    raise EngineRefused(f"{hide_secrets(str(url))}: no such engine: duckdb, chdb, spark, local, postgres, clickhouse")


def holds_tables(url: str | None) -> bool:
    """Whether the engine at `url` has tables of its own, and needs no dataset."""
    return _scheme(url) not in OVER_FILES


def _scheme(url: str | None) -> str:
    return (url or DEFAULT).partition("://")[0].partition(":")[0].lower()
