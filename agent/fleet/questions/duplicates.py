"""What must be one node's alone and is on several: GUIDs, serial numbers, machine ids, LIDs, addresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Row
from agent.fleet.hostlist import fold
from agent.fleet.known_duplicates import own_mac, placeholder, within_host
from agent.fleet.questions.baseline import CLUSTERS
from agent.fleet.questions.identities import (
    ADDRESSES,
    CHANGING,
    KIND_QUERIES,
    KINDS,
    MOST,
    NODES,
    NUMBERED,
    NUMBERS,
    SUBNETS,
    Kind,
    find_shared_lids,
    find_shared_names,
    list_columns,
)
from agent.fleet.questions.options import ORDINARY, Options
from agent.model.labels import group_by_key

NAME = "node name"  # the one kind that several machines have under one node
_MACHINES = 8  # that are named
HOLDERS = 16  # of one value that are named one by one
_SEVERAL_NETWORKS = 0.2  # share of addresses that are twice: then these are networks that use the same ones
_FEW = 20  # addresses that are twice: so many are reported in any case
_BY_DESIGN = 0.5  # share of a fleet that has one and the same address
_OF_GPUS = frozenset(("GPU UUID", "GPU serial number"))
_ORDER = {kind: place for place, kind in enumerate(("machine", *(kind.what for kind in KINDS), "LID"))}
_OF_NICS = frozenset(("node GUID", "port GUID", "MAC address"))


class Holder(msgspec.Struct, frozen=True):
    """Where a value is."""

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
    not_judged: list[str] = []  # what could not be reported, and why


class _Found(NamedTuple):
    kind: str
    value: str
    holders: tuple[tuple[str, str | None], ...]
    why: str | None

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for node, _ in self.holders)


class _Fleet(NamedTuple):
    """What is asked, and what of it more than one step needs."""

    tables: Tables
    nodes: int
    clusters: dict[str, str]  # by node; of those that are in one
    options: Options

    def by_design(self, holders: int) -> bool:
        """An address that half of all nodes have is an anycast or a host-local one."""
        return holders >= self.options.fewest and holders > _BY_DESIGN * self.nodes


def find_duplicates(tables: Tables, options: Options = ORDINARY) -> Duplicates:
    """Values that several nodes have. What is known to be shared innocently is left out."""
    notes: list[str] = []
    groups: list[_Found] = []
    begun, counted, subnets = tables.submit(NUMBERS), tables.submit(NODES), tables.submit(SUBNETS)
    changing = tables.submit(CHANGING)
    ((nodes, numbered),) = counted()
    fleet = _Fleet(tables, nodes, dict(tables.rows(CLUSTERS)), options)
    numbers = begun() if numbered == nodes else None
    holders = None if numbers is None or len(numbers) > MOST else set(tables.fetch_by_keys(NUMBERED, set(numbers)))
    if holders is None or len(holders) > MOST:
        of_kinds = [rows() for rows in [tables.submit(kind_queries.shared) for kind_queries in KIND_QUERIES]]
    else:
        asked = [tables.submit_by_keys(kind_queries.of_nodes, holders) for kind_queries in KIND_QUERIES]
        of_kinds = [rows() for rows in asked]
    for kind_queries, kind in zip(KIND_QUERIES, of_kinds, strict=True):
        if kind_queries.kind.table == "address":
            groups += _find_addresses(fleet, kind_queries.kind, kind, notes)
        else:
            groups += _find_twice(kind_queries.kind, kind)
    same_lids, unsure = find_shared_lids(tables, subnets)
    notes += unsure
    groups += [
        _Found("LID", str(lid), tuple(sorted(set(ports))), f"in the subnet of {where}")
        for where, lid, ports in same_lids
    ]
    names = [_find_shared_names(*name) for name in sorted(find_shared_names(tables, changing, options).items())]
    return Duplicates(duplicates=[*names, *_make_answers(_join_one_machine(groups))], not_judged=notes)


def _find_shared_names(node: str, machines: list[str]) -> Duplicate:
    some = ", ".join(machines[:_MACHINES]) + (", .." if len(machines) > _MACHINES else "")
    note = f"{len(machines)} machines report under this name ({some}), each in place of the others"
    advice = "give each a name of its own, or ingest into a new dataset with another --node-key"
    return Duplicate(kind=NAME, value=node, hosts=node, nodes=1, note=f"{note}: {advice}")


def _find_twice(kind: Kind, rows: list[Row]) -> list[_Found]:
    names = list_columns(kind)
    values: dict[tuple[str, str | None], list[tuple[str, str | None]]] = {}
    for row in rows:
        named = dict(zip(names, row, strict=True))
        if named[kind.column] is None:
            continue
        value, label = named[kind.column], named[kind.label] if kind.label else None
        innocent = own_mac(value, named["driver"], label) if kind.more == "driver" else placeholder(value)
        if not innocent:
            values.setdefault((value, named[kind.within] if kind.within else None), []).append((named["node"], label))
    return [
        _Found(kind.what, value, tuple(sorted(set(holders), key=str)), kind.why)
        for (value, _), holders in values.items()
        if len({node for node, _ in holders}) > 1
    ]


def _find_addresses(fleet: _Fleet, kind: Kind, rows: list[Row], notes: list[str]) -> list[_Found]:
    """Addresses that are on several nodes of a cluster, whatever prefix length each node gives them."""
    values: dict[tuple[str, str | None], set[tuple[str, str | None]]] = {}
    written: dict[tuple[str, str | None], set[str]] = {}
    for node, value, label in rows:
        if value is None or within_host(value, label):
            continue
        key = (value.partition("/")[0], fleet.clusters.get(node))
        values.setdefault(key, set()).add((node, label))
        written.setdefault(key, set()).add(value)
    counts = {key: len({node for node, _ in holders}) for key, holders in values.items()}
    shared_values = {
        key: holders for key, holders in values.items() if counts[key] > 1 and not fleet.by_design(counts[key])
    }
    if not shared_values:
        return []
    ((total,),) = fleet.tables.rows(ADDRESSES)
    twice = sum(len(holders) for holders in shared_values.values())
    if twice > _FEW and twice > _SEVERAL_NETWORKS * total:
        notes.append(
            f"IP addresses: {twice} of {total} are on several nodes, as in separate networks: not judged "
            "(ingest each network with a --cluster of its own)"
        )
        return []
    return [_make_address(kind, *key, holders, written[key]) for key, holders in shared_values.items()]


def _make_address(
    kind: Kind, bare: str, cluster: str | None, holders: set[tuple[str, str | None]], written: set[str]
) -> _Found:
    lengths = sorted({int(length) for length in (value.partition("/")[2] for value in written) if length.isdecimal()})
    notes = [f"in cluster {cluster}"] if cluster else []
    if len(written) > 1:
        notes.append(f"with different prefix lengths ({', '.join(f'/{length}' for length in lengths)})")
    value = bare if len(written) > 1 else next(iter(written))
    return _Found(kind.what, value, tuple(sorted(holders, key=str)), ", ".join(notes) or None)


def _join_one_machine(groups: list[_Found]) -> list[_Found]:
    """Nodes that share a machine's identifiers are one machine under several names.

    Its serial number and devices, or without one GPUs and NICs: a single part that moved is shared alone.
    """
    answers: list[_Found] = []
    for nodes, alike in group_by_key((duplicate.nodes, duplicate) for duplicate in groups).items():
        kinds = {one.kind for one in alike}
        has_both = bool(kinds & _OF_GPUS and kinds & _OF_NICS)
        has_serial = "serial number" in kinds and len(kinds & (_OF_GPUS | _OF_NICS)) > 1
        if not has_both and not has_serial:
            answers += alike
            continue
        named_by = min(alike, key=lambda one: _ORDER[one.kind])
        why = f"one machine under several names: the same {', '.join(sorted(kinds, key=_ORDER.__getitem__))}"
        advice = "remove the old name (fabricscope fleet forget NODE)"
        holders = tuple((node, None) for node in sorted(nodes))
        answers.append(_Found("machine", named_by.value, holders, f"{why}; {advice}"))
    return answers


def _make_answers(groups: Iterable[_Found]) -> list[Duplicate]:
    answers = [
        Duplicate(
            kind=duplicate.kind,
            value=duplicate.value,
            hosts=fold(duplicate.nodes),
            nodes=len(duplicate.nodes),
            holders=[Holder(node, label) for node, label in duplicate.holders[:HOLDERS]],
            note=duplicate.why,
        )
        for duplicate in groups
    ]
    return sorted(answers, key=lambda answer: (_ORDER[answer.kind], -answer.nodes, answer.value, answer.hosts))
