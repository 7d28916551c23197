"""What must be one node's alone and is on several: GUIDs, serial numbers, machine ids, LIDs, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Choice, Query, Row, Source, Those
from agent.fleet.hostlist import fold
from agent.fleet.questions.classes import CLUSTERS
from agent.fleet.questions.innocent import NOWHERE_ELSE, own_mac, placeholder, within_host
from agent.fleet.questions.lids import SUBNETS, lids
from agent.fleet.questions.options import ORDINARY, Options

if TYPE_CHECKING:
    from ibis.expr import types as ir

HOLDERS = 16  # of one value that are named one by one
_SEVERAL_NETWORKS = 0.2  # share of addresses that are twice: then these are networks that use the same ones
_FEW = 20  # addresses that are twice: so many are told in any case
_MANY = 1000  # values that stand in several rows: most are then one node's, and the engine compares the nodes
_BY_DESIGN = 0.5  # share of a fleet that has one and the same address


class Holder(msgspec.Struct, frozen=True):
    """Where a value stands."""

    node: str
    label: str | None


class Duplicate(msgspec.Struct, frozen=True, kw_only=True):
    """One value on several nodes."""

    kind: str  # "port GUID", "machine", ..
    value: str
    hosts: str  # folded
    nodes: int
    holders: list[Holder] = []  # some of them
    note: str | None = None


class Duplicates(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet duplicates`."""

    duplicates: list[Duplicate] = []
    not_judged: list[str] = []  # what could not be said, and why


class Kind(NamedTuple):
    """A column whose values are one node's."""

    what: str
    table: str
    column: str
    label: str | None
    within: str | None = None  # column of the same table that makes a value unique only together with it
    more: str | None = None  # column that tells innocents
    why: str | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that a value is told by."""
        return [self.column, *([self.within] if self.within else [])]


KINDS = (
    Kind("serial number", "host", "serial", None, within="vendor"),
    Kind("machine-id", "host", "machine_id", None, why="cloned image: give each its own (systemd-machine-id-setup)"),
    Kind("GPU UUID", "gpu", "uuid", "label"),
    Kind("GPU serial number", "gpu", "serial", "label"),
    Kind("node GUID", "nic", "node_guid", "label"),
    Kind("port GUID", "port", "port_guid", "label"),
    Kind("MAC address", "netdev", "mac", "label", more="driver"),
    Kind("IP address", "address", "address", "label"),
)
_OF_A_MACHINE = frozenset(("GPU UUID", "GPU serial number", "node GUID", "port GUID", "MAC address"))


class _Found(NamedTuple):
    kind: str
    value: str
    holders: tuple[tuple[str, str | None], ...]
    why: str | None

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for node, _ in self.holders)


def duplicates(tables: Tables, options: Options = ORDINARY) -> Duplicates:
    """Values that several nodes have. What is known to be shared innocently is left out."""
    notes: list[str] = []
    found: list[_Found] = []
    begun, subnets = [tables.begun(each.counts) for each in ASKED], tables.begun(SUBNETS)
    for asked, counts in zip(ASKED, begun, strict=True):
        several = _several(counts())
        if asked.kind.table == "address":
            found += _addresses(tables, asked, several, notes, options)
        else:
            found += _twice(tables, asked, several)
    same_lids, unsure = lids(tables, subnets)
    notes += unsure
    found += [
        _Found("LID", str(lid), tuple(sorted(set(ports))), f"in the subnet of {where}")
        for where, lid, ports in same_lids
    ]
    return Duplicates(duplicates=_answers(_one_machine(found)), not_judged=notes)


class _Asked(NamedTuple):
    """Queries of a kind."""

    kind: Kind
    counts: Query  # values that stand in several rows, and in how many
    rows: Choice  # of values: node, keys, label, what tells innocents
    shared: Query  # all rows whose value is on several nodes


def _asked(kind: Kind) -> _Asked:
    name = f"duplicates: {kind.what}"
    counts, rows, shared = (partial(each, kind=kind) for each in (_counts, _rows, _shared))
    return _Asked(
        kind,
        Query(name, counts),
        Choice(f"{name}, rows", (kind.column,), rows),
        Query(f"{name}, all rows", shared),
    )


def _columns(kind: Kind) -> list[str]:
    return ["node", *kind.keys, *(each for each in (kind.label, kind.more) if each)]


def _known(tables: Source, kind: Kind) -> ir.Table:
    column = tables.latest(kind.table)[kind.column]
    beginnings = NOWHERE_ELSE if kind.table == "address" else ()
    return tables.latest(kind.table).filter(column.notnull(), *(~column.startswith(each) for each in beginnings))


def _counts(tables: Source, kind: Kind) -> ir.Table:
    """Values that stand in several rows: found in half the time that the nodes of every value take."""
    known = _known(tables, kind)
    counted = known.group_by(kind.keys).agg(rows=known.count())
    return counted.filter(counted.rows > 1).select(kind.column, "rows")


def _rows(tables: Source, those: Those, kind: Kind) -> ir.Table:
    return those(tables.latest(kind.table)).select(_columns(kind))


def _shared(tables: Source, kind: Kind) -> ir.Table:
    known = _known(tables, kind)
    grouped = known.group_by(kind.keys).agg(low=known.node.min(), high=known.node.max())
    shared = grouped.filter(grouped.low < grouped.high).select(kind.column)
    return tables.latest(kind.table).semi_join(shared, kind.column).select(_columns(kind))


def _nodes(tables: Source, those: Those) -> ir.Table:
    found = those(tables.latest("address"))
    return found.group_by("address").agg(nodes=found.node.nunique())


ASKED = [_asked(kind) for kind in KINDS]
NODES = Query("nodes", lambda tables: tables.latest("host").agg(nodes=tables.latest("host").count()))
ADDRESSES = Query("addresses", lambda tables: tables.latest("address").agg(total=tables.latest("address").count()))
ON_NODES = Choice("nodes of addresses", ("address",), _nodes)


def _twice(tables: Tables, asked: _Asked, several: dict[str, int]) -> list[_Found]:
    kind, columns = asked.kind, _columns(asked.kind)
    values: dict[tuple[str, str | None], list[tuple[str, str | None]]] = {}
    for row in _found_rows(tables, asked, several):
        named = dict(zip(columns, row, strict=True))
        value, label = named[kind.column], named[kind.label] if kind.label else None
        innocent = own_mac(value, named["driver"], label) if kind.more == "driver" else placeholder(value)
        if not innocent:
            values.setdefault((value, named[kind.within] if kind.within else None), []).append((named["node"], label))
    return [
        _Found(kind.what, value, tuple(sorted(set(holders), key=str)), kind.why)
        for (value, _), holders in values.items()
        if len({node for node, _ in holders}) > 1
    ]


def _several(rows: list[Row]) -> dict[str, int]:
    """Rows of each value."""
    counts: dict[str, int] = {}
    for value, count in rows:
        counts[value] = counts.get(value, 0) + count
    return counts


def _found_rows(
    tables: Tables,
    asked: _Asked,
    several: dict[str, int],
    innocent: Callable[[dict[str, int]], set[str]] = lambda _: set(),
) -> list[Row]:
    """Rows whose value stands on more than one node; where such values are few, also those that are twice on one.

    `several`: values, and how many rows each has. `innocent`: which of them are not asked for.
    """
    if len(several) > _MANY:
        return tables.begun(asked.shared)()
    return tables.chosen(asked.rows, [(value,) for value in sorted(several.keys() - innocent(several))])


def _addresses(
    tables: Tables, asked: _Asked, several: dict[str, int], notes: list[str], options: Options
) -> list[_Found]:
    ((nodes,),) = tables.begun(NODES)()
    clusters: dict[str, str] = dict(tables.begun(CLUSTERS)())

    def everywhere(counts: dict[str, int]) -> set[str]:
        """Addresses by design, where all nodes are one cluster: a fleet's worth of rows each."""
        often = [value for value, count in counts.items() if _by_design(count, nodes, options)]
        if clusters or not often:
            return set()
        holders = tables.chosen(ON_NODES, [(value,) for value in sorted(often)])
        return {value for value, count in holders if _by_design(count, nodes, options)}

    rows = [row for row in _found_rows(tables, asked, several, everywhere) if not within_host(row[1], row[2])]
    values: dict[tuple[str, str | None], set[tuple[str, str | None]]] = {}
    for node, value, label in rows:
        values.setdefault((value, clusters.get(node)), set()).add((node, label))
    counts = {key: len({node for node, _ in holders}) for key, holders in values.items()}
    found = {
        key: holders
        for key, holders in values.items()
        if counts[key] > 1 and not _by_design(counts[key], nodes, options)
    }
    if not found:
        return []
    ((total,),) = tables.begun(ADDRESSES)()
    twice = sum(len(each) for each in found.values())
    if twice > _FEW and twice > _SEVERAL_NETWORKS * total:
        notes.append(
            f"IP addresses: {twice} of {total} stand on several nodes, as those of separate networks do: not judged "
            "(ingest each network with a --cluster of its own)"
        )
        return []
    return [
        _Found(asked.kind.what, value, tuple(sorted(holders, key=str)), f"in cluster {cluster}" if cluster else None)
        for (value, cluster), holders in found.items()
    ]


def _by_design(holders: int, nodes: int, options: Options) -> bool:
    """An address that half of all nodes have is an anycast or a host-local one."""
    return holders >= options.fewest and holders > _BY_DESIGN * nodes


def _one_machine(found: list[_Found]) -> list[_Found]:
    """Nodes that share the machine's serial number and its devices are one machine under several names."""
    by_nodes: dict[frozenset[str], list[_Found]] = {}
    for each in found:
        by_nodes.setdefault(each.nodes, []).append(each)
    answers: list[_Found] = []
    for nodes, alike in by_nodes.items():
        kinds = {one.kind for one in alike}
        serial = next((one for one in alike if one.kind == "serial number"), None)
        if serial is None or len(kinds & _OF_A_MACHINE) < 2:
            answers += alike
            continue
        why = f"one machine under several names: the same {', '.join(sorted(kinds))}"
        answers.append(_Found("machine", serial.value, tuple((node, None) for node in sorted(nodes)), why))
    return answers


def _answers(found: Iterable[_Found]) -> list[Duplicate]:
    order = {kind: place for place, kind in enumerate(("machine", *(each.what for each in KINDS), "LID"))}
    answers = [
        Duplicate(
            kind=each.kind,
            value=each.value,
            hosts=fold(each.nodes),
            nodes=len(each.nodes),
            holders=[Holder(node, label) for node, label in each.holders[:HOLDERS]],
            note=each.why,
        )
        for each in found
    ]
    return sorted(answers, key=lambda each: (order[each.kind], -each.nodes, each.value, each.hosts))
