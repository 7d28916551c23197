"""One node in place of all with the same rows of a table, by the digests in table host (agent/fleet/tables.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeVar

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Pending, Row, identifiers, key_types, lookup, matching, query, quote
from agent.fleet.questions.baseline import CLASS
from agent.fleet.tables import COMPARED, digest_column
from agent.model.labels import group_by_key

MOST = 5000  # kinds of one table: beyond, reading one node of each is no less work than reading all
_MOST_ROWS = 4 * MOST  # nodes can differ in any of the tables
_FIRST, _COUNT = -3, -1  # columns of KINDS: two nodes, and how many there are
_Key = TypeVar("_Key")
KINDS = query(
    "fleet", "kinds", digests=identifiers(map(digest_column, COMPARED)), digest=quote(digest_column("check"))
).bind(most=_MOST_ROWS + 1)


def query_members(columns: Iterable[str]) -> LookupQuery:
    """The nodes that have certain values in columns of table host."""
    columns = tuple(columns)
    keys = identifiers(columns, "thing")
    return lookup(key_types("host", columns), "fleet", "members", keys=keys, matching=matching(columns))


NODES = query_members((CLASS, *map(digest_column, COMPARED)))


class Kind(NamedTuple):
    """Nodes of one class with the same rows of a table."""

    key: tuple[str | None, int | None, str]  # see make_key
    node: str  # one of them
    nodes: int


def make_key(node: str, name: str | None, digest: int | None) -> tuple[str | None, int | None, str]:
    """What nodes of a kind have alike: class and digest; one without a digest is a kind of its own."""
    return name, digest, node if digest is None else ""


class DigestGroups:
    """The kinds of nodes by each table. `begun`: of the query KINDS."""

    def __init__(self, tables: Tables, begun: Pending) -> None:
        self._tables = tables
        self._rows = begun()
        self._groups: dict[str, dict[Kind, list[Row]] | None] = {}  # rows of KINDS
        self._wanted: set[Row] = set()
        self._members: dict[Row, list[str]] = {}

    def of(self, table: str) -> Collection[Kind] | None:
        """None: they are too many, or no node has digests of this table."""
        if table not in self._groups:
            self._groups[table] = self._of(table) if table in COMPARED and len(self._rows) <= _MOST_ROWS else None
        return self._groups[table]

    def _of(self, table: str) -> dict[Kind, list[Row]] | None:
        place = list(COMPARED).index(table) + 1
        alike = group_by_key((make_key(row[_FIRST], row[0], row[place]), row) for row in self._rows)
        if len(alike) > MOST:
            return None
        nodes = _choose_nodes(
            {
                key: {self._tables.bucket(node): node for row in rows for node in row[_FIRST:_COUNT]}
                for key, rows in alike.items()
            }
        )
        return {Kind(key, nodes[key], sum(row[_COUNT] for row in rows)): rows for key, rows in alike.items()}

    def submit_members(self, table: str, kinds: Iterable[Kind]) -> Callable[[], dict[Kind, list[str]]]:
        """All nodes of these kinds: one query for all that were wanted before the first is needed."""
        groups = self._groups[table] or {}
        rows_of = {kind: groups[kind] for kind in kinds}
        self._wanted.update(row[:_FIRST] for rows in rows_of.values() for row in rows if row[_COUNT] > 1)
        return lambda: {kind: list(self._find_nodes(rows)) for kind, rows in rows_of.items()}

    def _find_nodes(self, rows: Iterable[Row]) -> Iterator[str]:
        if self._wanted:
            self._members |= find_members(self._tables, NODES, self._wanted)
            self._wanted = set()
        for row in rows:
            yield from self._members[row[:_FIRST]] if row[_COUNT] > 1 else (row[_FIRST],)


def _choose_nodes(candidates: dict[_Key, dict[int, str]]) -> dict[_Key, str]:
    """One node of each kind, in few buckets. `candidates`: of each kind, by bucket.

    >>> _choose_nodes({"a": {0: "n1", 3: "n2"}, "b": {1: "n3", 3: "n4"}})
    {'a': 'n2', 'b': 'n4'}
    """
    chosen: dict[_Key, str] = {}
    while len(chosen) < len(candidates):
        left = [key for key in candidates if key not in chosen]
        counts = Counter(bucket for key in left for bucket in candidates[key])
        bucket = max(counts, key=lambda bucket: (counts[bucket], -bucket))
        chosen |= {key: candidates[key][bucket] for key in left if bucket in candidates[key]}
    return chosen


def find_members(tables: Tables, lookup: LookupQuery, groups: Iterable[Row]) -> dict[Row, list[str]]:
    """The nodes of each group, by its key. `lookup`: of node and key."""
    nodes_of: dict[Row, list[str]] = {key: [] for key in groups}
    for node, *key in tables.fetch_by_keys(lookup, nodes_of):
        nodes_of[tuple(key)].append(node)
    return nodes_of
