"""What all GPUs, NPU ports or interfaces of rails of a node have alike, as one text: compared with other nodes word by
word. It has each field of the model that is compared among peers, and for which their table has no column; and what
the accelerators' drivers and IMEX are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from agent.fleet.rows.device_fields import GpuFields, NetdevFields, NpuPortFields
from agent.fleet.rows.recent import Recent
from agent.fleet.rows.report_fields import ReportFields
from agent.fleet.rows.row_columns import compile_row
from agent.fleet.table import Table
from agent.fleet.tables import GPU, NETDEV
from agent.model.gpu import Gpu, NpuPort
from agent.model.nic import Netdev
from agent.model.peers import COMPARED_WORDS
from agent.rules.peers.fields import NOTHING, PeerField, Value, list_fields

_LONGEST = 120  # of a value
_DRIVERS = ("amdgpu", "habanalabs", "neuron")  # modules, of which a node's table has no version


class _Group:
    """Fields of one struct. `read`: their values."""

    def __init__(self, parent: str, fields: Sequence[PeerField]) -> None:
        self.parent, self.fields = parent, fields
        self.read: Callable[[Any], tuple[Value, ...]] = compile_row(field.path.rpartition(".")[2] for field in fields)


def format_part_settings(report: ReportFields, rails: Sequence[NetdevFields]) -> str | None:
    """KIND.FIELD=VALUE, sorted, blank between; a field of which two parts of the kind have different values is left
    out: the node's own finding. None: nothing is known."""
    topology = report.topology
    npus = topology.ascend.ports if topology.ascend else []
    parts: tuple[Sequence[Any], ...] = (topology.gpus, rails, npus)
    alike = [list(_read_alike(groups, own)) for (_, groups), own in zip(_KINDS, parts, strict=True)]
    own = dict(_list_own(report))
    text: str | None = _TEXTS.find("", (alike, own))
    if text is None:
        text = _format_alike(alike, own)
        _TEXTS.add("", (alike, own), text)
    return text or None


def _list_own(report: ReportFields) -> Iterator[tuple[str, str | None]]:
    """Of the node itself: parameters and versions of the accelerators' drivers, nodes in the configuration of IMEX."""
    software, ascend = report.software, report.topology.ascend
    for name, value in software.driver.parameters.items():
        yield f"driver.{name}", value
    for module in software.modules:
        if module.name in _DRIVERS:
            yield f"module.{module.name}", module.version
    yield "imex.nodes", software.imex.get("nodes_config")
    if ascend:
        yield "npu.driver_version", ascend.driver_version
        yield "npu.firmware_version", ascend.firmware_version


def _read_alike(groups: Iterable[_Group], parts: Sequence[Any]) -> Iterator[tuple[Value, ...]]:
    """Of each group the values that all parts have; None for others."""
    for group in groups:
        holders = [getattr(part, group.parent) for part in parts] if group.parent else parts
        if not parts or not all(holders):
            yield ()
            continue
        first, *others = rows = list(map(group.read, holders))
        if rows.count(first) != len(rows):
            first = tuple(
                [value if all(row[at] == value for row in others) else None for at, value in enumerate(first)]
            )
        yield first


def _format_alike(rows_by_kind: Sequence[Sequence[tuple[Value, ...]]], own: Mapping[str, str | None]) -> str:
    words = {name: _format(value) for name, value in own.items() if value}
    for (kind, groups), rows in zip(_KINDS, rows_by_kind, strict=True):
        alike = [
            (field, _format(value))
            for group, values in zip(groups, rows, strict=True)
            for field, value in zip(group.fields, values, strict=False)
            if value not in NOTHING
        ]
        words.update((f"{kind}.{field.path}", value) for field, value in alike)
        for field, _ in alike:
            if field.now and words[f"{kind}.{field.path}"] == words.get(f"{kind}.{field.now}"):
                del words[f"{kind}.{field.path}"]
    return " ".join(f"{name}={value}" for name, value in sorted(words.items()) if len(value) <= _LONGEST)


def _format(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return "_".join(text.split())


def _group_fields(struct: Any, read: Any, table: Table | None = None) -> list[_Group]:
    """The compared fields of a struct of the model that are read of a report and are in no column, by the field of
    the struct that holds them."""
    columns = {column.name for column in table.own} if table else set[str]()
    groups: dict[str, list[PeerField]] = {}
    for word in COMPARED_WORDS:
        for field in list_fields(struct, word):
            parent, _, name = field.path.rpartition(".")
            if columns.isdisjoint((parent or name, name, f"{parent}_{name}")) and name in _list_read(read, parent):
                groups.setdefault(parent, []).append(field)
    return [_Group(parent, fields) for parent, fields in groups.items()]


def _list_read(read: Any, parent: str) -> frozenset[str]:
    """The fields that are read of a part, or of what it holds under a name."""
    if parent:
        held = next((field.type for field in msgspec.structs.fields(read) if field.name == parent), None)
        read = next((one for one in get_args(held) if hasattr(one, "__struct_fields__")), None)
    return frozenset(read.__struct_fields__ if read else ())


_KINDS = (
    ("gpu", _group_fields(Gpu, GpuFields, GPU)),
    ("netdev", _group_fields(Netdev, NetdevFields, NETDEV)),
    ("npu", _group_fields(NpuPort, NpuPortFields)),
)
_TEXTS = Recent()  # nodes of a kind are mostly set up alike
