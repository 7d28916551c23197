"""How often each combination of values occurs in a table, and the things that have some of them.

Where most nodes are alike, one of each kind is read and the rest is counted here; else the engine counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache, cached_property
from operator import itemgetter
from typing import Protocol

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row
from agent.fleet.questions.attributes import PARTS, THINGS, TablePass
from agent.fleet.questions.kinds import DigestGroups, Kind


class TableScan(Protocol):
    """Rows of one pass over a table."""

    def counts(self) -> list[Row]:
        """Each combination of the keys, and how many things have it."""

    def things(self, odd: Collection[Row]) -> Pending:
        """Node, label and keys of the things that have such a combination."""

    def nodes(self, column: str | None, groups: Iterable[Row]) -> list[Row]:
        """Groups (class, and the value of a column where one is named) and how many nodes their things are on."""


def read_passes(tables: Tables, kinds: DigestGroups) -> tuple[list[TableScan], dict[str, Pending]]:
    """The rows of each of PARTS, queried at once; by table those of THINGS of one node of each kind."""
    of_kinds: dict[str, Pending] = {}
    for table, things in THINGS.items():
        alike = kinds.of(table)
        if alike is not None:
            of_kinds[table] = cache(tables.submit_by_keys(things.of_nodes, [(kind.node,) for kind in alike]))
    scans: list[TableScan] = [
        _ByKind(part, kinds, of_kinds[part.table]) if part.table in of_kinds else _ByEngine(tables, part)
        for part in PARTS
    ]
    return scans, of_kinds


class _ByEngine:
    def __init__(self, tables: Tables, part: TablePass) -> None:
        self._tables, self._part = tables, part
        self._begun = cache(tables.submit(part.counts))

    def counts(self) -> list[Row]:
        return self._begun()

    def things(self, odd: Collection[Row]) -> Pending:
        return self._tables.submit_by_keys(self._part.things, odd)

    def nodes(self, column: str | None, groups: Iterable[Row]) -> list[Row]:
        return self._tables.fetch_by_keys(self._part.nodes[column], groups)


class _ByKind:
    def __init__(self, part: TablePass, kinds: DigestGroups, begun: Pending) -> None:
        self._part, self._all, self._begun = part, kinds, begun
        self._kinds = {kind.node: kind for kind in kinds.of(part.table) or ()}

    def counts(self) -> list[Row]:
        counts: dict[Row, int] = {}
        for node, _, *keys in self._of_each_kind:
            row = tuple(keys)
            counts[row] = counts.get(row, 0) + self._kinds[node].nodes
        return [(*row, count) for row, count in counts.items()]

    def things(self, odd: Collection[Row]) -> Pending:
        wanted = set(odd)
        rows = [row for row in self._of_each_kind if row[2:] in wanted]
        members = self._all.submit_members(self._part.table, {self._kinds[row[0]] for row in rows})

        def things() -> list[Row]:
            nodes = members()
            return [(node, *row[1:]) for row in rows for node in nodes[self._kinds[row[0]]]]

        return things

    def nodes(self, column: str | None, groups: Iterable[Row]) -> list[Row]:
        kinds: dict[Row, set[Kind]] = {group: set() for group in groups}
        for row in self._of_each_kind:
            if (group := _group_of(self._part, column, row[2:])) in kinds:
                kinds[group].add(self._kinds[row[0]])
        return [(*group, sum(kind.nodes for kind in these)) for group, these in kinds.items()]

    @cached_property
    def _of_each_kind(self) -> list[Row]:
        """Node, label and keys of the things of this pass."""
        columns = ("node", "label", *THINGS[self._part.table].columns)
        choice = columns.index(self._part.choice)
        cells = itemgetter(0, 1, *map(columns.index, self._part.keys))
        return [cells(row) for row in self._begun() if row[choice]]


def _group_of(part: TablePass, column: str | None, keys: Row) -> Row:
    """Class, and the value of a column where one is named. `keys`: the row begins with them."""
    return keys[:1] if column is None else (keys[0], keys[part.keys.index(column)])
