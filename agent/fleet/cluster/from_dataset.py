"""The cluster as a dataset's reports describe it: the rows that are read, and each node's unit and leaf switches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agent.fleet.cluster.answer import TopologyAnswer, build_topology_answer
from agent.fleet.cluster.build import build
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ROW_KINDS
from agent.fleet.cluster.from_reports import ClusterTables as Rows
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Query, identifiers, query, quote, statement, table_query
from agent.model.labels import natural


def read_identity_rows(source: Tables, beside_files: bool) -> Rows:
    """`beside_files`: of a fabric, whose ports are found by their GUIDs. Raises EngineRefused."""

    def read(table: str, kind: type[Any]) -> list[Any]:
        return _sort_by_node(map(kind._make, source.many_rows(query_identity_rows(table, kind._fields, beside_files))))

    return Rows(*(read(table, kind) for table, kind in ROW_KINDS.items()))


def _sort_by_node(rows: Iterable[Any]) -> list[Any]:
    listed = list(rows)
    places = {node: at for at, node in enumerate(sorted({row.node for row in listed}, key=natural))}
    return sorted(listed, key=lambda row: places[row.node])


def query_identity_rows(table: str, names: tuple[str, ...], beside_files: bool) -> Query:
    """Columns of the rows of a table that show something."""
    columns = identifiers(names, "thing")
    if table in ("port", "nic"):
        adapter = quote("nic" if table == "port" else "id", "thing")
        which = statement("cluster", "infiniband" if beside_files else "known_neighbor")
        return query("cluster", "adapters", columns=columns, table=quote(table), adapter=adapter, which=which)
    if table in ("netdev", "gpu"):
        return query("cluster", "interfaces" if table == "netdev" else "gpus", columns=columns)
    return table_query(table, names)


def rename_by_host(rows: Rows) -> Rows:
    """Nodes under the names that schedulers and cables use; those that share a host name keep the dataset's."""
    names_of = {
        row.node: f"{row.cluster}/{row.hostname}" if row.cluster and row.hostname else row.hostname for row in rows.host
    }
    count = Counter(names_of.values())
    names = {node: name for node, name in names_of.items() if name and name != node and count[name] == 1}
    if not names:
        return rows
    return Rows(*(_sort_by_node(row._replace(node=names.get(row.node, row.node)) for row in part) for part in rows))


_RAIL = re.compile(r"rail ([0-9]{1,4})(?: .*)?")


class Wiring(NamedTuple):
    """`units`: node -> unit; `leaves`: node -> rail -> switch. None: no answer, nothing is known of any switch."""

    units: Mapping[str, str] = {}
    leaves: Mapping[str, Mapping[int, str]] = {}
    answer: TopologyAnswer | None = None


def build_from_reports(source: Tables) -> FabricGraph:
    """The graph where there is no fabric file: what reports show alone. Raises EngineRefused."""
    return build([], read_identity_rows(source, beside_files=False))


def read_wiring(cluster: FabricGraph) -> Wiring:
    """From the graph of the cluster."""
    seen = build_views(cluster)
    units = {host: unit.name for view in seen for host, unit in view.unit_of.items()}
    leaves: dict[str, dict[int, str]] = {}
    numbers = {
        rail: int(match[1]) for rail in {link.rail for link in cluster.host_links} if (match := _RAIL.fullmatch(rail))
    }
    for link in cluster.host_links:
        switch = cluster.switches.get(link.at.switch)
        if switch and link.rail in numbers:
            leaves.setdefault(link.host, {})[numbers[link.rail]] = switch.name
    return Wiring(units, leaves, build_topology_answer(cluster, seen))
