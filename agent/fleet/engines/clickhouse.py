"""ClickHouse: in this process (chDB) over the dataset's Parquet files, or a server that has the tables."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.fleet.engines import schema
from agent.fleet.engines.engine import EngineRefused, dataset_at, one_line
from agent.fleet.engines.query import Relation, Row
from agent.fleet.engines.translated import OverFiles, Translated, arrow_rows, raise_refused
from agent.fleet.store import hide_secrets
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME

_TYPES = {TEXT: "String", INT: "Int64", FLOAT: "Float64", BOOL: "Bool", TIME: "DateTime64(6, 'UTC')"}
_PARAMETERS = {str: TEXT, int: INT, float: FLOAT, datetime: TIME}
_PARAMETER = re.compile(r"\{(\w+): \}")  # as sqlglot writes one: without its type


class ClickHouse(Translated):
    """A server that has the tables under our names."""

    dialect = "clickhouse"

    def __init__(self, url: str) -> None:
        super().__init__("clickhouse")
        self._connect = _connect(hide_secrets(url), dsn=url)
        with raise_refused(hide_secrets(url)):
            if not self._connect.command("EXISTS TABLE host"):
                raise EngineRefused(f"{hide_secrets(url)}: no table host")

    def relation(self, relation: Relation) -> str:
        """See Translated."""
        return _relation(relation)

    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """See Translated."""
        return _fetch_rows(self._connect, sql, parameters)

    def close(self) -> None:
        """Disconnect."""
        self._connect.close()


class Chdb(OverFiles):
    """A dataset in a folder."""

    dialect = "clickhouse"

    def __init__(self, url: str) -> None:
        dataset = dataset_at(url)
        if dataset.store.remote:
            raise EngineRefused("chdb: a dataset in a folder is asked for")
        super().__init__("chdb", dataset)
        logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)  # it tells on stderr what chDB has no use for
        self._connect = _connect("chdb", interface="chdb")
        with raise_refused("chdb"):
            self._connect.command("SET use_hive_partitioning = 0")  # bucket=07 in a path is no column of ours

    def make_view(self, name: str, files: list[str]) -> None:
        """See OverFiles."""
        wanted = _text(", ".join(f"`{column.name}` Nullable({_TYPES[column.type]})" for column in schema.columns(name)))
        # a file each: a pattern that meets no file would be an empty table without a word
        sources = " UNION ALL ".join(f"FROM file({_text(file)}, 'Parquet', {wanted}) SELECT *" for file in files)
        if not files:
            nothing = ", ".join(
                f"CAST(NULL, 'Nullable({_TYPES[column.type]})') AS `{column.name}`" for column in schema.columns(name)
            )
            sources = f"SELECT {nothing} WHERE 0"
        self._connect.command(f"CREATE OR REPLACE VIEW `{name}` AS {sources}")

    def relation(self, relation: Relation) -> str:
        """See Translated."""
        return _relation(relation)

    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """See Translated."""
        return _fetch_rows(self._connect, sql, parameters)

    def close(self) -> None:
        """Close the database, which was never on disk."""
        self._connect.close()


def _connect(name: str, **address: str) -> Any:
    try:
        import clickhouse_connect

        return clickhouse_connect.get_client(**address)
    except ImportError as error:
        missing = f"{name}: a library is missing: {error} (pip install chdb clickhouse-connect)"
        raise EngineRefused(missing) from error
    except Exception as error:  # as in `raise_refused`; some repeat the address
        message = one_line(name, error)
        raise EngineRefused(message.replace(address.get("dsn", "\n"), name)) from error


def _relation(relation: Relation) -> str:
    """Lists of all columns, zipped."""
    lists = ", ".join(
        f"{{{relation.name}_{at}:Array(Nullable({_TYPES[kind]}))}}" for at, kind in enumerate(relation.columns.values())
    )
    columns = ", ".join(f'bound.{at} AS "{name}"' for at, name in enumerate(relation.columns, 1))
    return f"SELECT {columns} FROM (SELECT arrayJoin(arrayZip({lists})) AS bound)"  # noqa: S608  # our names


def _fetch_rows(client: Any, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
    def typed(match: re.Match[str]) -> str:
        return f"{{{match[1]}:{_TYPES[_PARAMETERS[type(parameters[match[1]])]]}}}"

    return arrow_rows(client.query_arrow(_PARAMETER.sub(typed, sql), parameters=dict(parameters), use_strings=True))


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
