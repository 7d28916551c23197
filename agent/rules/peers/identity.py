"""Identifiers and addresses that only one part can have, and that two have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agent.model.finding import Evidence
from agent.model.nic import Netdev, Nic, Port, is_link_local
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, why_unreachable
from agent.rules.peers.fields import PeerField, list_fields
from agent.rules.rule import Fail, NotApplicable, Pass, Result, rule
from agent.rules.wording import NAMED, join_labels

_ZERO = frozenset("0:x.-GPU")  # of a UUID, too: "GPU-00000000-..."
_MAC_CHARACTERS = 17  # of InfiniBand it is longer, and interfaces for other partitions have the same
_GRAVE = frozenset({"netdev.addresses", "port.lid"})  # packets for the one arrive at the other
_NOBODY_SETS = "None by itself: tools and inventories take the two parts for one."
_ADDRESSED = "Packets for one arrive at the other: connections over these ports fail or are slow."
_DEFAULT_PREFIX = "fe80"
_LOOPBACK = ("127.", "::1/")
_MASKED = ("xx", "**", "redacted", "<")  # a person took it out of a saved output
_PAIR = 2


class _Holder(msgspec.Struct, frozen=True):
    """A part with what identifies it."""

    kind: str
    key: str
    label: str
    row: Any
    ids: frozenset[str]
    scope: str = ""  # within which values are unique: a VRF, a subnet


@rule("duplicate-identity")
def duplicate_identity(context: RuleContext) -> Iterator[Result]:
    holders: dict[str, list[_Holder]] = defaultdict(list)
    for holder in _list_holders(context):
        holders[holder.kind].append(holder)
    for kind, rows in holders.items():
        struct: Any = type(rows[0].row)
        alone = Reason("nothing-to-compare", detail="the only part of its kind")
        fields = [f for f in list_fields(struct, "unique") if f"{kind}.{f.path}" not in context.settings.free_fields]
        faults = [fault for field in fields for fault in _find_duplicates(kind, field, rows)]
        yield from faults
        named = {place for fault in faults for place in fault.ids}
        for row in rows:
            subject = f"{'pci' if kind == 'nic' else kind}:{row.key}"
            if row.key not in named:
                yield Pass(subject) if len(rows) > 1 else NotApplicable(subject, alone)


def _list_holders(context: RuleContext) -> Iterator[_Holder]:
    for gpu in context.topology.gpus:
        if not why_unreachable(find_function(context, gpu)):
            yield _Holder("gpu", gpu.id, gpu.label, gpu, frozenset(filter(None, (gpu.id, gpu.pci))))
    for nic in context.topology.nics:
        if not nic.software:
            yield from _list_holders_of_nic(nic)
    for netdev in context.topology.netdevs:
        if netdev.admin_up is not False:
            yield _hold_netdev(netdev)


def _list_holders_of_nic(nic: Nic) -> Iterator[_Holder]:
    ids = frozenset(filter(None, (nic.id, nic.pci)))
    yield _Holder("nic", nic.id, nic.label, nic, ids)
    for port in nic.ports:
        key = f"{nic.id}/{port.port}"
        yield _Holder("port", key, f"{nic.label}/{port.port}", port, ids | {key}, _find_subnet(port))


def _find_subnet(port: Port) -> str:
    """The subnet in which LIDs count; "" where it is the default one, which separate fabrics have, too."""
    prefix = port.gids[0].gid[:19] if port.gids else ""
    return "" if prefix.startswith(_DEFAULT_PREFIX) else prefix


def _hold_netdev(netdev: Netdev) -> _Holder:
    """Interfaces below a bond or bridge have its MAC address, virtual ones that of the interface below: both count not.

    Addresses of a VRF are its own.
    """
    borrowed = netdev.master or netdev.vlan or netdev.pci is None or len(netdev.mac or "") != _MAC_CHARACTERS
    row = msgspec.structs.replace(netdev, mac=None) if borrowed else netdev
    ids = frozenset(filter(None, (netdev.id, netdev.nic, netdev.pci)))
    return _Holder("netdev", netdev.id, netdev.label, row, ids, netdev.master or "")


def _find_duplicates(kind: str, field: PeerField, rows: Sequence[_Holder]) -> Iterator[Fail]:
    known = [value for value in (field.read(row.row) for row in rows) if value is not None]
    if field.path != "addresses" and len(set(known)) == len(known):  # of almost every machine
        return
    by_value: dict[tuple[str, str], list[_Holder]] = defaultdict(list)
    for row in rows:
        for value in _read_values(kind, field, row):
            by_value[value].append(row)
    sizes = Counter(len(some) for some in by_value.values())
    # a board has as many parts as most boards
    usual = min(sizes, key=lambda size: (-sizes[size], size), default=1) if field.word.shared else 1
    found = {value: some for value, some in by_value.items() if len(some) > usual}
    if any(len(some) == len(rows) > _PAIR for some in by_value.values()):
        return  # what every part has is a masked value, or was never set
    if found:
        yield _fail(kind, field, found)


def _read_values(kind: str, field: PeerField, row: _Holder) -> list[tuple[str, str]]:
    """The values that identify, each with its scope: none that is not set, is made by itself, or is of every host."""
    value = field.read(row.row)
    if field.path == "addresses":
        addresses = (one for one in value or () if not is_link_local(one) and not one.startswith(_LOOPBACK))
        return [(row.scope, one.partition("/")[0]) for one in dict.fromkeys(addresses)]
    text = str(value or "")
    if not set(text) - _ZERO or any(mark in text.lower() for mark in _MASKED):
        return []
    if field.path == "lid":
        return [(row.scope, text)] if row.scope and value < 0xC000 else []
    return [("", text)]


def _fail(kind: str, field: PeerField, found: Mapping[tuple[str, str], Sequence[_Holder]]) -> Fail:
    path, title = f"{kind}.{field.path}", field.word.title
    rows = list({row.key: row for some in found.values() for row in some}.values())
    texts = [f"{value} is of {join_labels([row.label for row in some])}" for (_, value), some in found.items()]
    pair = len(rows) == 2
    return Fail(
        subject=f"pair:{rows[0].key}+{rows[1].key}" if pair else "node",
        label=" - ".join(row.label for row in rows) if pair else "node",
        summary=f"one {title} on {len(rows)} {_NOUNS[kind]}: {'; '.join(texts[:NAMED])}",
        impact=_ADDRESSED if path in _GRAVE or path == "netdev.mac" else _NOBODY_SETS,
        evidence=tuple(
            Evidence(f"{title} of {row.label}", value, _SOURCES[kind])
            for (_, value), some in found.items()
            for row in some
        )[:NAMED],
        severity="error" if path in _GRAVE else "warning",
        cause=path,
        situation={"netdev": "addresses", "nic": "guids", "port": "guids"}.get(kind, ""),
        field=path,
        ids=frozenset().union(*(row.ids | {row.key} for row in rows)),
    )


_NOUNS = {"gpu": "GPUs", "nic": "NICs", "port": "ports", "netdev": "interfaces"}
_SOURCES = {"gpu": "nvidia-smi -q", "nic": "ibv_devinfo -v", "port": "ibv_devinfo -v", "netdev": "ip address"}
