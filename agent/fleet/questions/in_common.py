"""What odd nodes have in common and few others of their class have: a rack, a leaf switch, a kernel, a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import comb
from typing import NamedTuple

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, identifiers, key_types, lookup, matching, quote
from agent.fleet.questions.attributes import PARTS, THINGS
from agent.fleet.questions.baseline import CLASS
from agent.fleet.questions.deviations import Outlier
from agent.fleet.questions.domains import Racks
from agent.fleet.questions.kinds import DigestGroups, Kind, make_key
from agent.fleet.table import TEXT
from agent.fleet.tables import digest_column
from agent.model.labels import group_by_key

_CHANCE = 0.002  # that so many nodes of the class have it by chance: what is more likely is not reported
_MOST = 500  # nodes of an answer: more are no matter of one rack or leaf
_SHARE = 0.75  # of the nodes of an answer, where all but a few have it: two causes at once; and of the fact's own nodes
_LEAST = 3  # nodes that then have it
_ALIKE = 2  # facts of a kind in one answer; nodes with more leaves in common are neighbors in a pod


class Fact(NamedTuple):
    """Something that nodes may have in common."""

    kind: str
    value: str


_RACK = "rack"
_NO_RAIL = -1  # of the node itself, or of a NIC that is no rail
_Facts = dict[Fact, set[int]]  # the facts of a node, and on which rails


# by table: columns and the kind of fact that they are
_KINDS = {
    "host": {
        "cluster": "cluster", "os": "operating system", "kernel": "kernel", "bios": "BIOS",
    },
    "netdev": {"neighbor_system": "leaf", "module_part": "module"},
    "port": {"neighbor_name": "leaf"},
    "nic": {"firmware": "NIC firmware"},
}  # fmt: skip
# kind -> attributes that it would only repeat
_REPEATED = {
    "operating system": ("os",),
    "kernel": ("kernel", "os"),
    "BIOS": ("bios",),
    "NIC firmware": ("nic-firmware", "nic-board"),
}
_NODE = {"node": TEXT}
HOST_PASS = next(part for part in PARTS if part.table == "host")
_COUNTED = _KINDS["host"].keys() & HOST_PASS.keys  # of these columns each combination is counted anyhow
_DIGESTED = "nic"  # the digest of its rows covers its facts: they are those of one node of each kind
FACTS = lookup(
    _NODE,
    "outliers",
    "node_facts",
    columns=identifiers((*_KINDS["host"], CLASS, digest_column(_DIGESTED)), "thing"),
    matching=matching(_NODE, null_safe=False),
)
RAIL_FACTS = {
    table: lookup(
        _NODE, "outliers", "node_rail_facts",
        table=quote(table), facts=identifiers(columns, "thing"), matching=matching(_NODE, null_safe=False),
    ).bind(no_rail=_NO_RAIL)
    for table, columns in _KINDS.items() if table != "host"
}  # fmt: skip
FACT_NODES = {
    (table, column): lookup(
        key_types(table, (CLASS, column)), "outliers", "fact_nodes", table=quote(table),
        keys=identifiers((CLASS, column), "thing"), matching=matching((CLASS, column), null_safe=False),
        nodes="*" if table == "host" else "DISTINCT thing.node",
    )
    for table, columns in _KINDS.items() for column in columns if column not in _COUNTED
}  # fmt: skip


class KnownFacts:
    """How many nodes of a class have facts that were read for other questions, and those of table nic by kinds of
    nodes, where these are not too many. `rows`: of one node of each; `hosts`: the counts of HOST_PASS.
    """

    def __init__(self, kinds: DigestGroups, rows: Mapping[str, Pending], hosts: Iterable[Row]) -> None:
        self.counts = Counter[tuple[str | None, Fact]]()
        self.kinds = {_KINDS["host"][column] for column in _COUNTED}  # of facts whose counts are known
        self.tables: set[str] = set()
        self._of: dict[Row, _Facts] = {}
        for row in hosts:
            named = dict(zip(HOST_PASS.keys, row, strict=False))
            for column in _COUNTED:
                if named[column] is not None:
                    self.counts[named[CLASS], Fact(_KINDS["host"][column], named[column])] += row[-1]
        if _DIGESTED in rows:
            self._read_kinds(kinds.of(_DIGESTED) or (), rows[_DIGESTED]())

    def _read_kinds(self, kinds: Collection[Kind], rows: list[Row]) -> None:
        columns = ("node", "label", *THINGS[_DIGESTED].columns)
        cells = [columns.index(column) for column in ("node", "rail", *_KINDS[_DIGESTED])]
        facts_of: dict[str, _Facts] = {kind.node: {} for kind in kinds}
        for row in rows:
            node, rail, *values = (row[cell] for cell in cells)
            _add_facts(facts_of[node], _DIGESTED, [_NO_RAIL if rail is None else rail], values)
        for kind in kinds:
            self._of[kind.key] = facts_of[kind.node]
            for fact in facts_of[kind.node]:
                self.counts[kind.key[0], fact] += kind.nodes
        self.tables = {_DIGESTED}
        self.kinds.update(_KINDS[_DIGESTED].values())

    def of(self, node: str, name: str | None, digest: int | None) -> _Facts:
        """Of a node, by its class and digest."""
        return self._of.get(make_key(node, name, digest), {})


def add_common_facts(
    tables: Tables,
    racks: Racks,
    known: KnownFacts,
    outliers: list[Outlier],
    hosts: list[set[str]],
    classes: Mapping[str, int],
) -> list[Outlier]:
    """The same, and what their nodes have in common.

    `hosts`: the nodes of each. `classes`: nodes of each class.
    """
    nodes_wanted = {node for nodes in hosts if 1 < len(nodes) <= _MOST for node in nodes}
    facts = _read_facts(tables, racks, known, nodes_wanted)
    common = [
        _find_common(outlier, [facts.get(node, {}) for node in nodes]) if 1 < len(nodes) <= _MOST else {}
        for outlier, nodes in zip(outliers, hosts, strict=True)
    ]
    wanted = {
        (outlier.hardware_class, fact) for outlier, shared in zip(outliers, common, strict=True) for fact in shared
    }
    sizes = _sum_sizes(tables, known, wanted)
    in_racks = [(name, fact) for name, fact in wanted if fact.kind == _RACK]
    nodes = racks.count_nodes({fact.value for _, fact in in_racks})
    sizes |= {(name, fact): nodes[name, fact.value] for name, fact in in_racks}
    return [
        msgspec.structs.replace(outlier, common=_describe_facts(outlier, shared, sizes, classes)) if shared else outlier
        for outlier, shared in zip(outliers, common, strict=True)
    ]


def _read_facts(tables: Tables, racks: Racks, known: KnownFacts, nodes: set[str]) -> dict[str, _Facts]:
    keys = [(node,) for node in sorted(nodes)]
    begun = {
        table: tables.submit_by_keys(query, keys) for table, query in RAIL_FACTS.items() if table not in known.tables
    }
    facts_of: dict[str, _Facts] = {}
    for node, *values, name, digest in tables.fetch_by_keys(FACTS, keys):
        facts_of[node] = dict(known.of(node, name, digest))
        _add_facts(facts_of[node], "host", [_NO_RAIL], values)
        if (rack := racks.find(node)) is not None:
            facts_of[node][Fact(_RACK, rack)] = {_NO_RAIL}
    for table, rows in begun.items():
        for node, rails, *values in rows():
            _add_facts(facts_of.setdefault(node, {}), table, rails, values)
    return facts_of


def _add_facts(facts: _Facts, table: str, rails: list[int], values: Iterable[str | None]) -> None:
    for kind, value in zip(_KINDS[table].values(), values, strict=True):
        if value is not None:
            facts.setdefault(Fact(kind, value), set()).update(rails)


def _find_common(outlier: Outlier, facts: list[_Facts]) -> dict[Fact, int]:
    """Facts of all nodes, or of all but a few, and how many have them; where rails are odd, the leaves and modules of
    these rails."""
    every = {rail for of_node in facts for rails in of_node.values() for rail in rails}
    odd = {rail for rail in every if f"rail {rail}" in outlier.places}
    wanted = odd | {_NO_RAIL} if odd else every
    counts = Counter(fact for of_node in facts for fact, rails in of_node.items() if not rails.isdisjoint(wanted))
    shared = {
        fact: count
        for fact, count in counts.items()
        if (count == len(facts) or (count >= _LEAST and count >= _SHARE * len(facts)))
        and outlier.attribute not in _REPEATED.get(fact.kind, ())
    }
    many = {kind for kind, count in Counter(fact.kind for fact in shared).items() if count > _ALIKE}
    return {fact: count for fact, count in shared.items() if fact.kind not in many}


def _sum_sizes(tables: Tables, known: KnownFacts, wanted: Iterable[tuple[str, Fact]]) -> dict[tuple[str, Fact], int]:
    """How many nodes of a class have it."""
    sizes = {key: known.counts[key] for key in wanted if key in known.counts}
    keys = group_by_key(
        (fact.kind, (name, fact.value)) for name, fact in sorted(wanted, key=str) if fact.kind not in known.kinds
    )
    begun = {at: tables.submit_by_keys(query, keys.get(_kind(*at), ())) for at, query in FACT_NODES.items()}
    for at, rows in begun.items():
        for name, value, nodes in rows():
            fact = Fact(_kind(*at), value)
            sizes[name, fact] = max(nodes, sizes.get((name, fact), 0))
    return sizes


def _kind(table: str, column: str) -> str:
    return _KINDS[table][column]


def _describe_facts(
    outlier: Outlier, shared: Mapping[Fact, int], sizes: Mapping[tuple[str, Fact], int], classes: Mapping[str, int]
) -> list[str]:
    """Of what all but a few have: where it is hardly on any other node. `nodes`: those of the class that have it."""
    all_nodes, odd = classes.get(outlier.hardware_class, 0), outlier.nodes
    telling = []
    for fact, count in sorted(shared.items(), key=str):
        nodes = sizes.get((outlier.hardware_class, fact), 0)
        if not all_nodes or not nodes or comb(odd, count) * (nodes / all_nodes) ** count > _CHANCE:
            continue
        if count == odd:
            telling.append(f"{fact.kind} {fact.value} ({count} of its {nodes} nodes of this class)")
        elif count >= _SHARE * nodes:
            telling.append(
                f"{fact.kind} {fact.value} ({count} of its {nodes} nodes of this class, {count} of these {odd})"
            )
    return telling
