"""How often each combination of values occurs in a table, and the things that have some of them.

Where most nodes are alike, one of each kind is read and the rest is counted here; else the engine counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Row
from agent.fleet.questions.attributes import TablePass
from agent.fleet.questions.kinds import Kind, Kinds


class PassRows(Protocol):
    """Rows of one pass over a table."""

    def counts(self) -> list[Row]:
        """Each combination of the keys, and how many things have it."""

    def things(self, odd: Collection[Row]) -> list[Row]:
        """Node, label and keys of the things that have such a combination."""

    def nodes(self, place: str | None, groups: Iterable[Row]) -> list[Row]:
        """Groups (class, and the value of a place where there is one) and how many nodes their things are on."""


def pass_rows(tables: Tables, part: TablePass, kinds: Kinds) -> PassRows:
    """Of one pass."""
    alike = kinds.of(part.table)
    return _ByEngine(tables, part) if alike is None else _ByKind(tables, part, kinds, alike)


class _ByEngine:
    def __init__(self, tables: Tables, part: TablePass) -> None:
        self._tables, self._part = tables, part
        self._begun = tables.submit(part.counts)

    def counts(self) -> list[Row]:
        return self._begun()

    def things(self, odd: Collection[Row]) -> list[Row]:
        return self._tables.fetch_by_keys(self._part.things, odd)

    def nodes(self, place: str | None, groups: Iterable[Row]) -> list[Row]:
        return self._tables.fetch_by_keys(self._part.nodes[place], groups)


class _ByKind:
    def __init__(self, tables: Tables, part: TablePass, kinds: Kinds, alike: list[Kind]) -> None:
        self._tables, self._part, self._all = tables, part, kinds
        self._kinds = {kind.node: kind for kind in alike}
        self._rows: list[Row] | None = None

    def counts(self) -> list[Row]:
        counts: dict[Row, int] = {}
        for node, _, *keys in self._of_each_kind():
            row = tuple(keys)
            counts[row] = counts.get(row, 0) + self._kinds[node].nodes
        return [(*row, count) for row, count in counts.items()]

    def things(self, odd: Collection[Row]) -> list[Row]:
        wanted = set(odd)
        rows = [row for row in self._of_each_kind() if row[2:] in wanted]
        nodes = self._all.members(self._part.table, {self._kinds[row[0]] for row in rows})
        return [(node, *row[1:]) for row in rows for node in nodes[self._kinds[row[0]]]]

    def nodes(self, place: str | None, groups: Iterable[Row]) -> list[Row]:
        at = [self._part.keys.index(key) + 2 for key in self._part.keys[:1] + ((place,) if place else ())]
        kinds: dict[Row, set[Kind]] = {group: set() for group in groups}
        for row in self._of_each_kind():
            group = tuple(row[each] for each in at)
            if group in kinds:
                kinds[group].add(self._kinds[row[0]])
        return [(*group, sum(kind.nodes for kind in these)) for group, these in kinds.items()]

    def _of_each_kind(self) -> list[Row]:
        if self._rows is None:
            self._rows = self._tables.fetch_by_keys(self._part.of_nodes, [(node,) for node in self._kinds])
        return self._rows
