"""What must be one node's alone and is on several: GUIDs, serial numbers, machine ids, LIDs, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agent.fleet.engines.engine import Row, Tables
from agent.fleet.hostlist import fold
from agent.fleet.questions.innocent import NOWHERE_ELSE, own_mac, placeholder, within_host
from agent.fleet.questions.lids import lids
from agent.fleet.questions.options import ORDINARY, Options

if TYPE_CHECKING:
    from ibis.expr import types as ir

HOLDERS = 16  # of one value that are named one by one
_SEVERAL_NETWORKS = 0.2  # share of addresses that are twice: then these are networks that use the same ones
_FEW = 20  # addresses that are twice: so many are told in any case
_ASKED = 1000  # values in one query
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
    begun = [tables.prepared(f"duplicates: {kind.what}", partial(_counts, kind=kind)) for kind in KINDS]
    for kind, counts in zip(KINDS, begun, strict=True):
        several = _several(counts())
        if kind.table == "address":
            found += _addresses(tables, kind, several, notes, options)
        else:
            found += _twice(tables, kind, several)
    same_lids, unsure = lids(tables)
    notes += unsure
    found += [
        _Found("LID", str(lid), tuple(sorted(set(ports))), f"in the subnet of {where}")
        for where, lid, ports in same_lids
    ]
    return Duplicates(duplicates=_answers(_one_machine(found)), not_judged=notes)


def _twice(tables: Tables, kind: Kind, several: dict[str, int]) -> list[_Found]:
    columns = ["node", *kind.keys, *(each for each in (kind.label, kind.more) if each)]
    values: dict[tuple[str, str | None], list[tuple[str, str | None]]] = {}
    for row in _rows(tables, kind, several, columns):
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


def _known(tables: Tables, kind: Kind) -> ir.Table:
    column = tables.latest(kind.table)[kind.column]
    beginnings = NOWHERE_ELSE if kind.table == "address" else ()
    return tables.latest(kind.table).filter(column.notnull(), *(~column.startswith(each) for each in beginnings))


def _counts(tables: Tables, kind: Kind) -> ir.Table:
    """Values that stand in several rows: found in half the time that the nodes of every value take."""
    known = _known(tables, kind)
    counted = known.group_by(kind.keys).agg(rows=known.count())
    return counted.filter(counted.rows > 1).select(kind.column, "rows")


def _several(rows: list[Row]) -> dict[str, int]:
    """Rows of each value."""
    counts: dict[str, int] = {}
    for value, count in rows:
        counts[value] = counts.get(value, 0) + count
    return counts


def _rows(
    tables: Tables,
    kind: Kind,
    several: dict[str, int],
    columns: list[str],
    innocent: Callable[[dict[str, int]], set[str]] = lambda _: set(),
) -> list[Row]:
    """Rows whose value stands on more than one node; where such values are few, also those that are twice on one.

    `several`: values, and how many rows each has. `innocent`: which of them are not asked for.
    """
    table, known = tables.latest(kind.table), _known(tables, kind)
    if len(several) > _ASKED:
        grouped = known.group_by(kind.keys).agg(low=known.node.min(), high=known.node.max())
        shared = grouped.filter(grouped.low < grouped.high).select(kind.column)
        return tables.rows(table.semi_join(shared, kind.column).select(columns))
    values = sorted(several.keys() - innocent(several)) if several else []
    return tables.rows(table.filter(table[kind.column].isin(values)).select(columns)) if values else []


def _addresses(tables: Tables, kind: Kind, several: dict[str, int], notes: list[str], options: Options) -> list[_Found]:
    host = tables.latest("host")
    named = host.filter(host.cluster.notnull()).select("node", "cluster")
    clusters: dict[str, str] = dict(tables.rows(named))
    ((nodes,),) = tables.rows(host.aggregate(nodes=host.count()))

    def everywhere(counts: dict[str, int]) -> set[str]:
        """Addresses by design, where all nodes are one cluster: a fleet's worth of rows each."""
        often = [value for value, count in counts.items() if _by_design(count, nodes, options)]
        if clusters or not often:
            return set()
        address = tables.latest("address")
        chosen = address.filter(address.address.isin(sorted(often)))
        holders = tables.rows(chosen.group_by("address").agg(nodes=chosen.node.nunique()))
        return {value for value, count in holders if _by_design(count, nodes, options)}

    rows = _rows(tables, kind, several, ["node", "address", "label"], everywhere)
    rows = [row for row in rows if not within_host(row[1], row[2])]
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
    address = tables.latest("address")
    ((total,),) = tables.rows(address.aggregate(total=address.count()))
    twice = sum(len(each) for each in found.values())
    if twice > _FEW and twice > _SEVERAL_NETWORKS * total:
        notes.append(
            f"IP addresses: {twice} of {total} stand on several nodes, as those of separate networks do: not judged "
            "(ingest each network with a --cluster of its own)"
        )
        return []
    return [
        _Found(kind.what, value, tuple(sorted(holders, key=str)), f"in cluster {cluster}" if cluster else None)
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
