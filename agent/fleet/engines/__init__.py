"""Query engines: DuckDB in this process over the dataset's files, or a database that `fleet load` filled.

Every engine gets the same SQL, translated into its dialect. The questions themselves are in agent/fleet/questions.
"""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.fleet.engines.engine import Engine

DUCKDB = "duckdb"  # scheme of the engine that reads a dataset's files
_POSTGRES = ("postgres", "postgresql")
_CLICKHOUSE = ("clickhouse", "clickhouses", "chdb")
_MEANT = "duckdb://, postgres://USER@HOST/DATABASE, clickhouse://USER@HOST/DATABASE or chdb://FOLDER is meant"


def connect(url: str | None, dataset: str | None) -> Engine:
    """The tables of a dataset (a folder or URL) in DuckDB, or those that a load put into the database at `url`.

    Raises EngineRefused.
    """
    scheme = _scheme(url)
    if scheme == DUCKDB:
        from agent.fleet.engines.duckdb_files import Embedded

        return Embedded(_require_dataset(dataset))
    _require(scheme, str(url))
    if scheme in _POSTGRES:
        from agent.fleet.engines.postgres import Postgres

        return Postgres(str(url))
    from agent.fleet.engines.clickhouse import ClickHouse

    return ClickHouse(str(url))


def load(dataset: str | None, url: str) -> dict[str, int]:
    """Copy a dataset's tables into the database at `url`: rows of each table that were copied. Raises EngineRefused."""
    from agent.fleet.engines.engine import EngineRefused, dataset_at
    from agent.fleet.store import hide_secrets

    scheme = _scheme(url)
    if scheme == DUCKDB:
        raise EngineRefused(f"{hide_secrets(url)}: DuckDB reads the dataset's files, nothing is loaded into it")
    _require(scheme, url)
    if scheme in _CLICKHOUSE:
        from agent.fleet.engines.clickhouse_load import load as load_clickhouse

        return load_clickhouse(dataset_at(_require_dataset(dataset)), url)
    from agent.fleet.engines.postgres import load as load_postgres

    with closing(connect(None, dataset)) as source:
        return load_postgres(source, url)


def holds_tables(url: str | None) -> bool:
    """Whether the engine at `url` has tables of its own, and needs no dataset."""
    return _scheme(url) != DUCKDB


def _require_dataset(dataset: str | None) -> str:
    from agent.fleet.engines.engine import EngineRefused

    if not dataset:
        raise EngineRefused("no dataset given: use --dataset DIR|URL, or set FABRICSCOPE_DATASET")
    return dataset


def _require(scheme: str, url: str) -> None:
    """Raises EngineRefused where there is no such engine, or no library to translate for it."""
    from agent.fleet.engines.engine import EngineRefused
    from agent.fleet.store import hide_secrets

    if scheme not in (*_POSTGRES, *_CLICKHOUSE):
        raise EngineRefused(f"{hide_secrets(url)}: no such engine: {_MEANT}")
    for library in ("sqlglot", "psycopg" if scheme in _POSTGRES else "clickhouse_connect"):
        if find_spec(library) is None:
            raise EngineRefused(
                f"{hide_secrets(url)}: a library is missing: {library} (in the checkout, pip install '.[engines]')"
            )


def _scheme(url: str | None) -> str:
    return (url or f"{DUCKDB}://").partition("://")[0].partition(":")[0].lower()
