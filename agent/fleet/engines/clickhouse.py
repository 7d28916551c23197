"""ClickHouse: a server, or chDB in this process, with the tables that `fleet load` puts there.

Tables are views: rows lie in `rows_of_...` with the number of the dataset's file that they are of
(agent/fleet/engines/clickhouse_load.py).
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agent.fleet.engines.engine import EngineRefused, one_line, raise_refused
from agent.fleet.engines.query import Relation, Row
from agent.fleet.engines.translated import AnswerSize, Translated, arrow_rows
from agent.fleet.store import hide_secrets
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME

TYPES = {TEXT: "String", INT: "Int64", FLOAT: "Float64", BOOL: "Bool", TIME: "DateTime64(6, 'UTC')"}
IN_PROCESS = "chdb"  # scheme of an address that is a folder
_PARAMETERS = {str: TEXT, int: INT, float: FLOAT, datetime: TIME}
_PID = re.compile(rb"PID: ([0-9]{1,9})")  # how the file of its lock begins
_PARAMETER = re.compile(r"\{(\w+): \}")  # as sqlglot writes one: without its type


class ClickHouse(Translated):
    """A database in which a load made the tables."""

    dialect = "clickhouse"

    def __init__(self, url: str) -> None:
        super().__init__("clickhouse")
        self._client = connect_client(url)
        with raise_refused(hide_secrets(url)):
            if not self._client.command("EXISTS TABLE host"):
                raise EngineRefused(
                    f"{hide_secrets(url)}: no table host: `fabricscope fleet load --engine URL` puts it there"
                )

    def relation(self, relation: Relation) -> str:
        """Lists of all columns, zipped."""
        lists = ", ".join(
            f"{{{relation.name}_{at}:Array(Nullable({TYPES[kind]}))}}"
            for at, kind in enumerate(relation.columns.values())
        )
        columns = ", ".join(f'bound.{at} AS "{name}"' for at, name in enumerate(relation.columns, 1))
        return f"SELECT {columns} FROM (SELECT arrayJoin(arrayZip({lists})) AS bound)"  # noqa: S608  # our names

    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """See Translated."""

        def typed(match: re.Match[str]) -> str:
            return f"{{{match[1]}:{TYPES[_PARAMETERS[type(parameters[match[1]])]]}}}"

        typed_sql = _PARAMETER.sub(typed, sql)
        return self._take_answer(typed_sql, dict(parameters))[1]

    def fetch_named(self, sql: str) -> tuple[Sequence[str], list[Row]]:
        """See Translated."""
        return self._take_answer(sql, None)

    def _take_answer(self, sql: str, parameters: dict[str, Any] | None) -> tuple[list[str], list[Row]]:
        """Names of its columns, and its rows. By pieces, so that its size is known before all of it has come."""
        size, rows = AnswerSize(self.name), list[Row]()
        with self._client.query_arrow_stream(sql, parameters=parameters, use_strings=True) as pieces:
            names: list[str] = pieces.gen.schema.names
            for piece in pieces:
                size.add(piece.num_rows, piece.nbytes)
                rows += arrow_rows(piece)
        return names, rows

    def close(self) -> None:
        """Disconnect."""
        self._client.close()


def connect_client(url: str) -> Any:
    """A client of clickhouse-connect. Raises EngineRefused."""
    shown = hide_secrets(url)
    scheme, _, folder = url.partition("://")
    if scheme == IN_PROCESS and not folder:
        raise EngineRefused(f"{shown}: chdb://FOLDER, the folder of its database, is meant")
    if scheme == IN_PROCESS:
        _check_is_free(folder, shown)
    address = {"interface": "chdb", "path": folder} if scheme == IN_PROCESS else {"dsn": url}
    logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)  # it shows on stderr what chDB has no use for
    try:
        import clickhouse_connect

        return clickhouse_connect.get_client(**address)
    except ImportError as error:
        raise EngineRefused(f"{shown}: a library is missing: {error} (pip install chdb)") from error
    except Exception as error:  # as in `raise_refused`; some repeat the address
        if scheme == IN_PROCESS:  # both began at one moment
            _check_is_free(folder, shown)
        raise EngineRefused(one_line(shown, error).replace(url, shown)) from error


def _check_is_free(folder: str, shown: str) -> None:
    """Raises EngineRefused where another process has this database open: chDB prints that in words of its own."""
    written = None
    try:
        with open(f"{folder}/status", "rb") as status:
            written = _PID.match(status.read(100))
            fcntl.flock(status, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = int(written[1]) if written else None
        if other != os.getpid():
            raise EngineRefused(
                f"{shown}: {f'process {other}' if other else 'another process'} has it open; "
                "chDB serves one process at a time"
            ) from None
    except OSError:
        pass  # a new database
