"""Changes of one field of one part of a machine, or of all parts of its group, made from the peer table."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from agent.config import Configuration
from agent.diagnose import build_context
from agent.model.error_counters import ERROR_COUNTERS
from agent.model.peers import read_types
from agent.model.report import Report
from agent.model.topology import Topology
from agent.rules.context import RuleContext
from agent.rules.peers.fields import PeerField, list_fields
from agent.rules.peers.parts import PeerPart, list_parts

LEAST = 3  # parts of a group in which one can be the odd one out
# With the one an interface is a VLAN, and a part of another kind; the other is of addresses that it would have
BY_THE_BUS = frozenset({"gpu.pcie.width"})  # where the bus was read, rules of PCIe judge it
UNSTATED = frozenset({"netdev.vlan", "netdev.addresses.prefix"})


class Mutation(msgspec.Struct, frozen=True):
    """A field of a group of parts, whose values are the same."""

    field: PeerField
    group: tuple[PeerPart, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What its parts have in common."""
        first = self.group[0]
        return first.kind, first.role, first.product, first.position

    @property
    def path(self) -> str:
        """The field as findings have it."""
        return f"{self.group[0].kind}.{self.field.path}"


def context_of(report: Report) -> RuleContext:
    """The report as rules receive it."""
    return build_context(report, Configuration().settings, report.platform, None)


def list_mutations(context: RuleContext, word: str) -> Iterator[Mutation]:
    """Every field with a word of each group of the machine that has one value."""
    for mutation in _list_groups(context, word):
        values = [mutation.field.read(part.row) for part in mutation.group]
        if None not in values and (word == "unique" or values.count(values[0]) == len(values)):
            yield mutation


def list_unstated(context: RuleContext, word: str) -> Iterator[tuple[RuleContext, Mutation]]:
    """Every field with a word that no part of a group states, on the same machine where all of them do."""
    for mutation in _list_groups(context, word):
        values = [mutation.field.read(part.row) for part in mutation.group]
        if any(value is not None for value in values) or mutation.path in UNSTATED:
            continue
        stated = context
        for part in mutation.group:
            stated = _exchange_row(stated, part, _state(part.row, mutation.field.path.split(".")))
        (again,) = (one for one in _list_groups(stated, word) if (one.path, one.key) == (mutation.path, mutation.key))
        yield stated, again


def _list_groups(context: RuleContext, word: str) -> Iterator[Mutation]:
    groups: dict[tuple[Any, ...], list[PeerPart]] = {}
    for part in list_parts(context):
        if isinstance(part, PeerPart):
            groups.setdefault((part.kind, part.role, part.product, part.position), []).append(part)
    for group in groups.values():
        if len(group) >= LEAST:
            mutations = (Mutation(field, tuple(group)) for field in list_fields(type(group[0].row), word))
            yield from (mutation for mutation in mutations if mutation.path not in BY_THE_BUS)


def mutate(context: RuleContext, mutation: Mutation, parts: Sequence[PeerPart], value: Any) -> RuleContext:
    """The same machine with a value at some of the parts."""
    for part in parts:
        context = _exchange_row(context, part, _set(part.row, mutation.field.path.split("."), value))
    return context


def _exchange_row(context: RuleContext, part: PeerPart, row: Any) -> RuleContext:
    if part.kind != "numa":
        return replace(context, topology=_put(context.topology, part, row))
    nodes = [row if node.id == row.id else node for node in context.node.numa_nodes]
    return replace(context, node=replace(context.node, numa_nodes=nodes))


def _state(row: Any, path: Sequence[str]) -> Any:
    """The same row with a value of a field that it does not state, in a struct of its own where that is missing."""
    hint = read_types(type(row))[path[0]].type
    if len(path) > 1:
        below = getattr(row, path[0])
        if below is None:
            below = next(one for one in typing.get_args(hint) if hasattr(one, "__struct_fields__"))()
        return replace(row, **{path[0]: _state(below, path[1:])})
    for value in (True, 64, 64.0, "x", ["x"], [64], [True] * 8, {"a": 64}, {"a": "x"}, {"a": [64]}, {"a": [True]}):
        with suppress(msgspec.ValidationError):
            return replace(row, **{path[0]: msgspec.convert(value, hint)})
    raise AssertionError(path)


def _put(topology: Topology, part: PeerPart, row: Any) -> Topology:
    if part.kind in ("gpu", "nic", "netdev", "pci"):
        table = {"gpu": "gpus", "nic": "nics", "netdev": "netdevs", "pci": "pci"}[part.kind]
        return replace(topology, **{table: [row if one.id == row.id else one for one in getattr(topology, table)]})
    device, _, number = part.key.partition("/")
    if part.kind == "port":
        nics = [
            replace(nic, ports=[row if str(port.port) == number else port for port in nic.ports])
            if nic.id == device else nic
            for nic in topology.nics
        ]  # fmt: skip
        return replace(topology, nics=nics)
    if part.kind == "link":
        gpus = [
            replace(gpu, links=[row if str(link.link) == number else link for link in gpu.links])
            if gpu.id == device else gpu
            for gpu in topology.gpus
        ]  # fmt: skip
        return replace(topology, gpus=gpus)
    if part.kind == "cxl":
        assert topology.cxl is not None
        return replace(topology, cxl=replace(topology.cxl, devices=_exchange(topology.cxl.devices, row, "id")))
    assert topology.ascend is not None
    return replace(topology, ascend=replace(topology.ascend, ports=_exchange(topology.ascend.ports, row, "npu")))


def _exchange(rows: Sequence[Any], row: Any, key: str) -> list[Any]:
    return [row if getattr(one, key) == getattr(row, key) else one for one in rows]


def _set(row: Any, path: Sequence[str], value: Any) -> Any:
    if len(path) == 1:
        return replace(row, **{path[0]: value})
    if path[1] == "prefix":
        return replace(row, addresses=[f"{one.partition('/')[0]}/{value}" for one in row.addresses])
    return replace(row, **{path[0]: _set(getattr(row, path[0]), path[1:], value)})


def other_value(value: Any, enough: int = 0) -> Any:
    """Another value of the same type; of numbers of which those from `enough` on are alike a smaller one."""
    if enough:
        return enough // 2
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return type(value)(value * 2 + 2)
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, list):
        return [other_value(value[0]), *value[1:]]
    key = min(value)
    return {**value, key: other_value(value[key])}


_TABLES = {"gpus": "pcie_counters", "netdevs": "counters", "pci": "aer"}
ERRORS = {name for family in ERROR_COUNTERS.values() for name in family}


def list_counters(context: RuleContext) -> Iterator[tuple[str, str, list[Any]]]:
    """Error counters that at least four GPUs, or interfaces of rails, of one product have: table, name, parts."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for part in list_parts(context):
        table = {"gpu": "gpus", "netdev": "netdevs"}.get(part.kind) if isinstance(part, PeerPart) else None
        if isinstance(part, PeerPart) and table and part.role in ("", "rail"):
            groups.setdefault((table, part.product), []).append(part.row)
    for (table, _), rows in groups.items():
        names = set.intersection(*(set(getattr(row, _TABLES[table])) for row in rows)) & ERRORS
        if len(rows) > LEAST:
            yield from ((table, name, rows) for name in sorted(names))


def count(context: RuleContext, table: str, name: str, rows: Sequence[Any], place: int) -> RuleContext:
    """The same machine with 100,000 of a counter on one part, and none on the others."""
    counters = _TABLES[table]
    ids = {row.id for row in rows}
    changed = [
        replace(row, **{counters: {**getattr(row, counters), name: 100_000 if row.id == rows[place].id else 0}})
        if row.id in ids
        else row
        for row in getattr(context.topology, table)
    ]
    return replace(context, topology=replace(context.topology, **{table: changed}))
