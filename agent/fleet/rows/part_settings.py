"""What all GPUs, or the interfaces of all rails, of a node have alike, as one text: compared with other nodes word by
word. It has each field of the model that is compared among peers, and for which their table has no column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, get_args

import msgspec

from agent.fleet.rows.device_fields import GpuFields, NetdevFields
from agent.fleet.rows.recent import Recent
from agent.fleet.rows.row_columns import COMPARED_WORDS
from agent.fleet.table import Table
from agent.fleet.tables import GPU, NETDEV
from agent.model.gpu import Gpu
from agent.model.nic import Netdev
from agent.rules.peers.fields import NOTHING, PeerField, Value, list_fields

_LONGEST = 120  # of a value


class _Group:
    """Fields of one struct. `read`: their values; the first twice, so that of one field, too, it is a tuple."""

    def __init__(self, parent: str, fields: Sequence[PeerField]) -> None:
        self.parent, self.fields = parent, fields
        names = [field.path.rpartition(".")[2] for field in fields]
        self.read: Callable[[Any], tuple[Value, ...]] = attrgetter(*names, *names[:1])


def format_part_settings(
    gpus: Sequence[GpuFields], rails: Sequence[NetdevFields], parameters: Mapping[str, str]
) -> str | None:
    """KIND.FIELD=VALUE, sorted, blank between; a field of which two parts of the kind have different values is left
    out: the node's own finding. `parameters`: of the GPU driver. None: nothing is known."""
    alike = list(_read_alike(_GPU, gpus)), list(_read_alike(_NETDEV, rails)), parameters
    text: str | None = _TEXTS.find("", alike)
    if text is None:
        text = _format_alike(*alike)
        _TEXTS.add("", alike, text)
    return text or None


def _read_alike(groups: Iterable[_Group], parts: Sequence[Any]) -> Iterator[tuple[Value, ...]]:
    """Of each group the values that all parts have; None for others."""
    for group in groups:
        holders = [getattr(part, group.parent) for part in parts] if group.parent else parts
        if not parts or None in holders:
            yield ()
            continue
        first, *others = rows = list(map(group.read, holders))
        if rows.count(first) != len(rows):
            first = tuple(
                [value if all(row[at] == value for row in others) else None for at, value in enumerate(first)]
            )
        yield first


def _format_alike(
    gpus: Sequence[tuple[Value, ...]], rails: Sequence[tuple[Value, ...]], parameters: Mapping[str, str]
) -> str:
    words = {f"driver.{name}": _format(value) for name, value in parameters.items() if value}
    for kind, groups, rows in (("gpu", _GPU, gpus), ("netdev", _NETDEV, rails)):
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


def _group_fields(struct: Any, read: Any, table: Table) -> list[_Group]:
    """The compared fields of a struct of the model that are read of a report and are in no column, by the field of
    the struct that holds them."""
    columns = {column.name for column in table.own}
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


_GPU, _NETDEV = _group_fields(Gpu, GpuFields, GPU), _group_fields(Netdev, NetdevFields, NETDEV)
_TEXTS = Recent()  # nodes of a kind are mostly set up alike
