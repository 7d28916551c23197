"""PostgreSQL: queries to the tables that `fleet load` put there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent.fleet.engines.engine import EngineRefused, one_line
from agent.fleet.engines.loading import SCHEMA, TYPES
from agent.fleet.engines.query import Relation, Row
from agent.fleet.engines.translated import Translated, refused
from agent.fleet.store import shown
from agent.fleet.table import TEXT

_COLLATION = ' COLLATE "C"'
_LISTS = {**TYPES, TEXT: "text"}
_PARAMETER = re.compile(r"%\((\w+)\)s")  # as sqlglot writes one


class Postgres(Translated):
    """A database that has the tables in schema `fabricscope`."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        super().__init__("postgres")
        try:
            import psycopg

            self._connection = psycopg.connect(url, connect_timeout=20, autocommit=True)
        except ImportError as error:
            raise EngineRefused(one_line(f"{shown(url)}: a library is missing", error)) from error
        except Exception as error:  # as in `refused`; many repeat the address
            raise EngineRefused(one_line(shown(url), error).replace(url, shown(url))) from error
        self._connection.adapters.register_loader("timestamptz", _without_zone())
        self._cursor = psycopg.RawCursor(self._connection)
        with refused(self.name):
            self._connection.execute("SET TIME ZONE 'UTC'")
            self._connection.execute(f"SET search_path = {SCHEMA}")
            ((host,),) = self.fetch("SELECT to_regclass('host')::text", {})
        if host is None:
            raise EngineRefused(
                f"{shown(url)}: no table {SCHEMA}.host: `fabricscope fleet load --engine URL` puts them there"
            )

    def relation(self, relation: Relation) -> str:
        """See Translated."""
        columns = (
            f'unnest(%({relation.name}_{at})s::{_LISTS[kind]}[]){_COLLATION if kind == TEXT else ""} AS "{name}"'
            for at, (name, kind) in enumerate(relation.columns.items())
        )
        return f"SELECT {', '.join(columns)}"

    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Numbered parameters: with named ones, every % would be one."""
        names = list(dict.fromkeys(_PARAMETER.findall(sql)))
        numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)
        rows: list[Row] = self._cursor.execute(numbered, [parameters[name] for name in names]).fetchall()
        return rows

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _without_zone() -> Any:
    """How a time of PostgreSQL is read: in UTC, which the session is in, and without a zone."""
    from psycopg.types.datetime import TimestamptzLoader

    loader: Any = TimestamptzLoader
    return type("UtcLoader", (loader,), {"load": lambda self, data: loader.load(self, data).replace(tzinfo=None)})
