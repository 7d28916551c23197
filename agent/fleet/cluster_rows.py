"""The rows of a dataset that tell of the cluster: of most fleets most do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ibis.expr.types as ir

from agent.fleet.cluster.from_reports import Tables as Rows
from agent.fleet.cluster.from_reports import tables
from agent.fleet.engines.engine import Tables


def telling(source: Tables, beside_files: bool) -> Rows:
    """`beside_files`: of a fabric, whose ports are found by their GUIDs. Raises EngineRefused."""
    return tables(_Telling(source, beside_files))


class _Telling:
    def __init__(self, source: Tables, beside_files: bool) -> None:
        self._source, self._beside_files = source, beside_files

    def columns(self, table: str, names: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
        """The rows, in any order."""
        return self._source.rows(self._chosen(table).select(*names))

    def _chosen(self, table: str) -> ir.Table:
        rows = self._source.latest(table)
        if table == "port":  # all those of the adapter: one of several is called otherwise than the only one
            chosen = self._ports().view()
            return rows.semi_join(chosen, [rows.node == chosen.node, rows.nic == chosen.nic])
        if table == "nic":
            chosen = self._ports()
            return rows.semi_join(chosen, [rows.node == chosen.node, rows.id == chosen.nic])
        if table == "netdev":
            return rows.filter(rows.neighbor_port.notnull())
        if table == "gpu":
            return rows.filter(rows.cluster_uuid.notnull())
        return rows

    def _ports(self) -> ir.Table:
        ports = self._source.latest("port")
        return ports.filter(ports.link_layer == "InfiniBand" if self._beside_files else ports.neighbor_guid.notnull())
