"""What odd nodes have in common and few others of their class have: a rack, a leaf switch, a kernel, a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import identifiers, key_types, lookup, matching, quote
from agent.fleet.questions.baseline import CLASS
from agent.fleet.questions.deviations import Outlier
from agent.fleet.table import TEXT

_CHANCE = 0.002  # that so many nodes of the class have it by chance: what is more likely is not reported
_MOST = 500  # nodes of an answer: more are no matter of one rack or leaf
_ALIKE = 2  # facts of a kind in one answer; nodes with more leaves in common are neighbors in a pod


class Fact(NamedTuple):
    """Something of a node. `rail`: of a leaf, where it is that of a rail."""

    kind: str
    value: str
    rail: int | None = None


# column of table host -> kind, and attributes that it would only repeat
_HOST = {
    "chassis_serial": ("rack", ()),
    "cluster": ("cluster", ()),
    "os": ("operating system", ("os",)),
    "kernel": ("kernel", ("kernel", "os")),
    "bios": ("BIOS", ("bios",)),
}
# kind, attributes that it would only repeat, and the columns of tables that have it by rail
_BY_RAIL = (
    ("leaf", (), (("netdev", "neighbor_system"), ("port", "neighbor_name"))),
    ("module", (), (("netdev", "module_part"),)),
    ("NIC firmware", ("nic-firmware", "nic-board"), (("nic", "firmware"),)),
)
_COLUMNS = [(kind, table, column) for kind, _, columns in _BY_RAIL for table, column in columns]
_REPEATED = {**dict(_HOST.values()), **{kind: repeated for kind, repeated, _ in _BY_RAIL}}
_NODE = {"node": TEXT}
FACTS = lookup(
    _NODE, "outliers", "node_facts", columns=identifiers(_HOST, "thing"), matching=matching(_NODE, null_safe=False)
)
FACT_NODES = {
    column: lookup(
        key_types("host", (CLASS, column)), "outliers", "fact_nodes",
        keys=identifiers((CLASS, column), "thing"), matching=matching((CLASS, column), null_safe=False),
    )
    for column in _HOST
}  # fmt: skip
RAIL_FACTS = [
    lookup(
        _NODE, "outliers", "node_rail_facts",
        table=quote(table), fact=quote(column, "thing"), matching=matching(_NODE, null_safe=False),
    )
    for _, table, column in _COLUMNS
]  # fmt: skip
RAIL_FACT_NODES = [
    lookup(
        key_types(table, (CLASS, column)), "outliers", "rail_fact_nodes", table=quote(table),
        keys=identifiers((CLASS, column), "thing"), matching=matching((CLASS, column), null_safe=False),
    )
    for _, table, column in _COLUMNS
]  # fmt: skip


def add_common_facts(
    tables: Tables, outliers: list[Outlier], hosts: list[set[str]], classes: Mapping[str, int]
) -> list[Outlier]:
    """The same, and what their nodes have in common. `hosts`: the nodes of each. `classes`: nodes of each class."""
    nodes_wanted = {node for nodes in hosts if 1 < len(nodes) <= _MOST for node in nodes}
    facts = _read_facts(tables, nodes_wanted)
    common = [
        _find_common(outlier, [facts.get(node, set()) for node in nodes]) if 1 < len(nodes) <= _MOST else set()
        for outlier, nodes in zip(outliers, hosts, strict=True)
    ]
    sizes = _sum_sizes(tables, {(outlier.hardware_class, fact) for outlier, shared in zip(outliers, common, strict=True)
                            for fact in shared})  # fmt: skip
    return [
        msgspec.structs.replace(outlier, common=_describe_facts(outlier, shared, sizes, classes)) if shared else outlier
        for outlier, shared in zip(outliers, common, strict=True)
    ]


def _read_facts(tables: Tables, nodes: set[str]) -> dict[str, set[Fact]]:
    keys = [(node,) for node in sorted(nodes)]
    facts_of: dict[str, set[Fact]] = {}
    for node, *values in tables.fetch_by_keys(FACTS, keys):
        kinds = (kind for kind, _ in _HOST.values())
        facts_of[node] = {Fact(kind, value) for kind, value in zip(kinds, values, strict=True) if value is not None}
    for (kind, _, _), query in zip(_COLUMNS, RAIL_FACTS, strict=True):
        for node, rail, value in tables.fetch_by_keys(query, keys):
            facts_of.setdefault(node, set()).add(Fact(kind, value, rail))
    return facts_of


def _find_common(outlier: Outlier, facts: list[set[Fact]]) -> set[Fact]:
    """Facts of all nodes; where rails are odd, the leaves and modules of these rails."""
    rails = {f"rail {fact.rail}" for fact_set in facts for fact in fact_set if fact.rail is not None} & set(
        outlier.places
    )
    alike = [
        {
            fact._replace(rail=None)
            for fact in fact_set
            if fact.rail is None or not rails or f"rail {fact.rail}" in rails
        }
        for fact_set in facts
    ]
    shared = {fact for fact in set.intersection(*alike) if outlier.attribute not in _REPEATED.get(fact.kind, ())}
    many = {kind for kind, count in Counter(fact.kind for fact in shared).items() if count > _ALIKE}
    return {fact for fact in shared if fact.kind not in many}


def _sum_sizes(tables: Tables, wanted: Iterable[tuple[str, Fact]]) -> dict[tuple[str, Fact], int]:
    """How many nodes of a class have it."""
    keys: dict[str, list[tuple[str, str]]] = {}
    for name, fact in sorted(wanted, key=str):
        keys.setdefault(fact.kind, []).append((name, fact.value))
    sizes: dict[tuple[str, Fact], int] = {}
    for column, query in FACT_NODES.items():
        kind = _HOST[column][0]
        for name, value, nodes in tables.fetch_by_keys(query, keys.get(kind, ())):
            sizes[name, Fact(kind, value)] = nodes
    for (kind, _, _), query in zip(_COLUMNS, RAIL_FACT_NODES, strict=True):
        for name, value, nodes in tables.fetch_by_keys(query, keys.get(kind, ())):
            sizes[name, Fact(kind, value)] = max(nodes, sizes.get((name, Fact(kind, value)), 0))
    return sizes


def _describe_facts(
    outlier: Outlier, shared: set[Fact], sizes: Mapping[tuple[str, Fact], int], classes: Mapping[str, int]
) -> list[str]:
    all_nodes = classes.get(outlier.hardware_class, 0)
    telling = []
    for fact in sorted(shared, key=str):
        nodes = sizes.get((outlier.hardware_class, fact), 0)
        if all_nodes and nodes and (nodes / all_nodes) ** outlier.nodes <= _CHANCE:
            telling.append(f"{fact.kind} {fact.value} ({outlier.nodes} of its {nodes} nodes of this class)")
    return telling
