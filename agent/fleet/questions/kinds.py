"""One node in place of all that have the same rows of a table, by the digests in table host (agent/fleet/alike.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.fleet.alike import COMPARED, digest_column
from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, identifiers, key_types, lookup, matching, query, quote
from agent.fleet.questions.baseline import CLASS

MOST = 5000  # kinds of one table: beyond, reading one node of each is no less work than reading all
_MOST_ROWS = 4 * MOST  # nodes can differ in any of the tables
_FEW = 100  # nodes of a kind that are named at once

KINDS = query(
    "fleet", "kinds", digests=identifiers(map(digest_column, COMPARED)), digest=quote(digest_column("check"))
).bind(few=_FEW, most=_MOST_ROWS + 1)
NODES = {
    table: lookup(
        key_types("host", (CLASS, digest_column(table))), "fleet", "nodes_of_kinds",
        digest=quote(digest_column(table)), matching=matching((CLASS, digest_column(table))),
    )
    for table in COMPARED
}  # fmt: skip


class Kind(NamedTuple):
    """Nodes of one class with the same rows of a table. `names` None: they are many."""

    node: str  # one of them
    nodes: int
    names: tuple[str, ...] | None
    key: Row  # class and digest


class Kinds:
    """The kinds of nodes by each table. `begun`: of the query KINDS."""

    def __init__(self, tables: Tables, begun: Pending) -> None:
        self._tables = tables
        self._rows = begun()
        self._kinds: dict[str, list[Kind] | None] = {}

    def of(self, table: str) -> list[Kind] | None:
        """None: they are too many, or no node has digests of this table."""
        if table not in self._kinds:
            self._kinds[table] = self._of(table) if table in COMPARED and len(self._rows) <= _MOST_ROWS else None
        return self._kinds[table]

    def _of(self, table: str) -> list[Kind] | None:
        place = list(COMPARED).index(table) + 1
        found: dict[Row, Kind] = {}
        for row in self._rows:
            *_, node, nodes, names = row
            # of what no digest is known each node is a kind of its own
            key = (row[0], row[place]) if row[place] is not None else (row[0], None, node)
            kind, named = found.get(key), None if names is None else tuple(names)
            if kind is not None:
                every = None if named is None or kind.names is None else kind.names + named
                found[key] = kind._replace(nodes=kind.nodes + nodes, names=every)
            else:
                found[key] = Kind(node, nodes, named, key)
        return list(found.values()) if len(found) <= MOST else None

    def members(self, table: str, kinds: Iterable[Kind]) -> dict[Kind, list[str]]:
        """All nodes of these kinds."""
        found = {kind: list(kind.names or ()) for kind in kinds}
        many = {kind.key: found[kind] for kind in found if kind.names is None}
        for node, *key in self._tables.fetch_by_keys(NODES[table], many):
            many[tuple(key)].append(node)
        return found
