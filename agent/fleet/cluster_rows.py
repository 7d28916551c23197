"""The rows of a dataset that tell of the cluster: of most fleets most do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent.fleet.cluster.from_reports import ClusterTables as Rows
from agent.fleet.cluster.from_reports import tables
from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Query, identifiers, query, quote, statement, table_query


def telling(source: Tables, beside_files: bool) -> Rows:
    """`beside_files`: of a fabric, whose ports are found by their GUIDs. Raises EngineRefused."""
    return tables(_Telling(source, beside_files))


class _Telling:
    def __init__(self, source: Tables, beside_files: bool) -> None:
        self._source, self._beside_files = source, beside_files

    def columns(self, table: str, names: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
        """The rows, in any order."""
        return self._source.rows(telling_rows(table, names, self._beside_files))


def telling_rows(table: str, names: tuple[str, ...], beside_files: bool) -> Query:
    """Columns of the rows of a table that tell something."""
    columns = identifiers(names, "thing")
    if table in ("port", "nic"):
        adapter = quote("nic" if table == "port" else "id", "thing")
        which = statement("cluster", "infiniband" if beside_files else "known_neighbor")
        return query("cluster", "adapters", columns=columns, table=quote(table), adapter=adapter, which=which)
    if table in ("netdev", "gpu"):
        return query("cluster", "interfaces" if table == "netdev" else "gpus", columns=columns)
    return table_query(table, names)
