"""One node in place of all with the same rows of a table, by the digests in table host (agent/fleet/tables.py).

And the nodes of any group: the engine names them with the group where they are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import (
    LookupQuery,
    Pending,
    Query,
    Row,
    identifiers,
    key_types,
    lookup,
    matching,
    query,
    quote,
    statement,
)
from agent.fleet.questions.baseline import CLASS
from agent.fleet.tables import COMPARED, digest_column

MOST = 5000  # kinds of one table: beyond, reading one node of each is no less work than reading all
_MOST_ROWS = 4 * MOST  # nodes can differ in any of the tables
_FEW = 100  # nodes of a kind that are named at once

_NAMES = statement("fleet", "names_of_few")


def query_named(file: str, name: str, /, **parts: str) -> Query:
    """The query of a statement with {names}: of a group of few nodes all, else null."""
    return query(file, name, names=_NAMES, **parts).bind(few=_FEW)


KINDS = query_named(
    "fleet", "kinds", digests=identifiers(map(digest_column, COMPARED)), digest=quote(digest_column("check"))
).bind(most=_MOST_ROWS + 1)


def query_members(columns: Iterable[str]) -> LookupQuery:
    """The nodes that have certain values in columns of table host."""
    columns = tuple(columns)
    keys = identifiers(columns, "thing")
    return lookup(key_types("host", columns), "fleet", "members", keys=keys, matching=matching(columns))


NODES = {table: query_members((CLASS, digest_column(table))) for table in COMPARED}


class Kind(NamedTuple):
    """Nodes of one class with the same rows of a table. `names` None: they are many."""

    node: str  # one of them
    nodes: int
    names: tuple[str, ...] | None
    key: Row  # class and digest


def _make_kind(key: Row, rows: list[Row]) -> Kind:
    """`rows`: a node, how many, and their names or null."""
    named = all(names is not None for _, _, names in rows)
    names = tuple(name for _, _, names in rows for name in names) if named else None
    return Kind(rows[0][0], sum(nodes for _, nodes, _ in rows), names, key)


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
        found: dict[Row, list[Row]] = {}
        for row in self._rows:
            # of what no digest is known each node is a kind of its own
            key = (row[0], row[place]) if row[place] is not None else (row[0], None, row[-3])
            found.setdefault(key, []).append(row[-3:])
        return [_make_kind(key, rows) for key, rows in found.items()] if len(found) <= MOST else None

    def members(self, table: str, kinds: Iterable[Kind]) -> dict[Kind, list[str]]:
        """All nodes of these kinds."""
        kinds = list(kinds)
        nodes_of = find_members(self._tables, NODES[table], {kind.key: kind.names for kind in kinds})
        return {kind: nodes_of[kind.key] for kind in kinds}


def find_members(
    tables: Tables, lookup: LookupQuery, groups: Mapping[Row, Sequence[str] | None]
) -> dict[Row, list[str]]:
    """The nodes of each group. `groups`: names by key, null where they are many. `lookup`: of node and key."""
    nodes_of = {key: list(names or ()) for key, names in groups.items()}
    for node, *key in tables.fetch_by_keys(lookup, [key for key, names in groups.items() if names is None]):
        nodes_of[tuple(key)].append(node)
    return nodes_of
