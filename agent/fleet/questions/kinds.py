"""One node in place of all with the same rows of a table, by the digests in table host (agent/fleet/tables.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Pending, Row, identifiers, key_types, lookup, matching, query, quote
from agent.fleet.questions.baseline import CLASS
from agent.fleet.tables import COMPARED, digest_column

MOST = 5000  # kinds of one table: beyond, reading one node of each is no less work than reading all
_MOST_ROWS = 4 * MOST  # nodes can differ in any of the tables
KINDS = query(
    "fleet", "kinds", digests=identifiers(map(digest_column, COMPARED)), digest=quote(digest_column("check"))
).bind(most=_MOST_ROWS + 1)


def query_members(columns: Iterable[str]) -> LookupQuery:
    """The nodes that have certain values in columns of table host."""
    columns = tuple(columns)
    keys = identifiers(columns, "thing")
    return lookup(key_types("host", columns), "fleet", "members", keys=keys, matching=matching(columns))


NODES = {table: query_members((CLASS, digest_column(table))) for table in COMPARED}


class Kind(NamedTuple):
    """Nodes of one class with the same rows of a table."""

    node: str  # one of them
    nodes: int
    key: Row  # class and digest; a node without a digest is a kind of its own


class DigestGroups:
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
        kinds: dict[Row, Kind] = {}
        for row in self._rows:
            node, nodes = row[-2:]
            alike = (row[0], row[place], node if row[place] is None else "")
            known = kinds.get(alike, Kind(node, 0, alike[:2]))
            kinds[alike] = known._replace(nodes=known.nodes + nodes)
        return list(kinds.values()) if len(kinds) <= MOST else None

    def members(self, table: str, kinds: Iterable[Kind]) -> dict[Kind, list[str]]:
        """All nodes of these kinds."""
        nodes_of = {kind: [kind.node] for kind in kinds}
        shared = {kind.key: kind for kind in nodes_of if kind.nodes > 1}
        for key, nodes in find_members(self._tables, NODES[table], shared).items():
            nodes_of[shared[key]] = nodes
        return nodes_of


def find_members(tables: Tables, lookup: LookupQuery, groups: Iterable[Row]) -> dict[Row, list[str]]:
    """The nodes of each group, by its key. `lookup`: of node and key."""
    nodes_of: dict[Row, list[str]] = {key: [] for key in groups}
    for node, *key in tables.fetch_by_keys(lookup, nodes_of):
        nodes_of[tuple(key)].append(node)
    return nodes_of
