"""Which row of NEW is which row of OLD: by what lasts (UUID, GUID, serial), else by place, else by id."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from agent.diff.ledger import ChangedThing, Spot, roots, spots
from agent.model.gpu import Gpu
from agent.model.nic import Netdev, Nic
from agent.model.pci import PciFunction
from agent.model.report import Report

Row = TypeVar("Row", PciFunction, Gpu, Nic, Netdev)
NO_GUIDS = ("", "0000:0000:0000:0000")


class Matched(NamedTuple):
    """Two tables as pairs, and what is on one side only."""

    pairs: list[tuple[Any, Any]]
    gone: list[Any]
    new: list[Any]


class Pairing(NamedTuple):
    """The whole correspondence of two reports."""

    same_host: bool
    old_spots: Mapping[str, Spot]
    new_spots: Mapping[str, Spot]
    root_of: Mapping[str, str]
    pci: Matched
    gpus: Matched
    nics: Matched
    netdevs: Matched
    ids: Mapping[str, str]  # every device and interface id of OLD to its id in NEW

    def place(self, kind: str, old: Any, new: Any, after: str = "") -> ChangedThing:
        """The subject of a change of one row; `after` names a part of it, such as "/7"."""
        label = (new or old).label if hasattr(new or old, "label") else (new or old).id
        return ChangedThing(
            old=f"{kind}:{old.id}{after}" if old else None,
            new=f"{kind}:{new.id}{after}" if new else None,
            label=label + after,
        )

    def stayed(self, old: str, new: str) -> bool:
        """Whether a PCI function is where it was, whatever its bus is called now."""
        before, after = self.old_spots.get(old), self.new_spots.get(new)
        if before is None or after is None:
            return old == new
        return (self.root_of.get(before[0], before[0]), before[1]) == after


def pairing(old: Report, new: Report, same_host: bool) -> Pairing:
    """Match the devices of two reports; of two hosts by place and label alone."""
    a, b = old.topology, new.topology
    old_spots, new_spots = spots(a.pci), spots(b.pci)
    sure = _by_identity(old, new) if same_host else {}
    root_of = roots(old_spots, new_spots, sure)
    pci = _functions(a.pci, b.pci, sure, old_spots, new_spots, root_of)
    ids = {x.id: y.id for x, y in pci.pairs}
    gpus = _match(a.gpus, b.gpus, _gpu_keys(ids, same_host))
    nics = _match(a.nics, b.nics, _nic_keys(ids, same_host))
    netdevs = _match(_select_lasting(a.netdevs), _select_lasting(b.netdevs), _netdev_keys(ids, same_host))
    for table in (gpus, nics, netdevs):
        ids |= {x.id: y.id for x, y in table.pairs}
    return Pairing(same_host, old_spots, new_spots, root_of, pci, gpus, nics, netdevs, ids)


def gpu_identity(gpu: Gpu) -> str | None:
    """What a GPU is wherever it sits."""
    return gpu.uuid or gpu.serial


def nic_identity(nic: Nic) -> str | None:
    """The same of a NIC; virtual and software functions make theirs up."""
    if nic.virtual_function or nic.software or (nic.node_guid or "") in NO_GUIDS:
        return None
    return nic.node_guid


def _by_identity(old: Report, new: Report) -> dict[str, str]:
    """PCI ids of OLD to those of NEW, of functions that are the same beyond doubt, and of all functions beside them."""
    before, after = _identities(old), _identities(new)
    same = {before[key]: after[key] for key in before.keys() & after.keys()}
    cards = {_card(a): _card(b) for a, b in same.items()}
    taken = set(same.values())
    there = {row.id: row for row in new.topology.pci}
    for row in old.topology.pci:
        card, _, number = row.id.rpartition(".")
        beside = f"{cards[card]}.{number}" if card in cards else None
        if beside in there and row.id not in same and beside not in taken and _kind(row) == _kind(there[beside]):
            same[row.id] = beside
            taken.add(beside)
    return same


def _identities(report: Report) -> dict[Hashable, str]:
    keys: list[tuple[Hashable, str]] = [
        (("serial", row.serial, row.vendor, row.device, row.id[-1:]), row.id)
        for row in report.topology.pci
        if row.serial and row.physical_function is None
    ]
    keys += [(("gpu", gpu_identity(gpu)), gpu.pci) for gpu in report.topology.gpus if gpu.pci and gpu_identity(gpu)]
    keys += [(("nic", nic_identity(nic)), nic.pci) for nic in report.topology.nics if nic.pci and nic_identity(nic)]
    return {key: ids[0] for key, ids in _group_by_key(keys).items() if len(ids) == 1}


def _functions(
    old: Sequence[PciFunction],
    new: Sequence[PciFunction],
    sure: Mapping[str, str],
    old_spots: Mapping[str, Spot],
    new_spots: Mapping[str, Spot],
    root_of: Mapping[str, str],
) -> Matched:
    before, after = {row.id: row for row in old}, {row.id: row for row in new}

    def unnamed(row: PciFunction, there: Mapping[str, PciFunction]) -> Hashable | None:
        """The address of a function whose vendor or device one of the two sources does not name."""
        other = there.get(row.id)
        return row.id if other and None in (*_kind(row), *_kind(other)) else None

    def spot_of_old(row: PciFunction) -> Hashable | None:
        spot = old_spots.get(row.id)
        return (root_of.get(spot[0], spot[0]), spot[1], _kind(row)) if spot else None

    def spot_of_new(row: PciFunction) -> Hashable | None:
        spot = new_spots.get(row.id)
        return (*spot, _kind(row)) if spot else None

    return _match(
        old,
        new,
        (
            (lambda row: sure.get(row.id), lambda row: row.id),
            (spot_of_old, spot_of_new),
            (lambda row: (row.id, _kind(row)) if row.id in after else None, lambda row: (row.id, _kind(row))),
            (lambda row: unnamed(row, after), lambda row: unnamed(row, before)),
        ),
    )


Keys = tuple[tuple[Callable[[Any], Hashable | None], Callable[[Any], Hashable | None]], ...]


def _gpu_keys(ids: Mapping[str, str], same_host: bool) -> Keys:
    identity: Keys = ((gpu_identity, gpu_identity),) if same_host else ()
    return (
        *identity,
        (lambda gpu: ids.get(gpu.pci or ""), lambda gpu: gpu.pci),
        (lambda gpu: gpu.id, lambda gpu: gpu.id),
        (lambda gpu: gpu.label, lambda gpu: gpu.label),
    )


def _nic_keys(ids: Mapping[str, str], same_host: bool) -> Keys:
    identity: Keys = ((nic_identity, nic_identity),) if same_host else ()
    return (
        *identity,
        (lambda nic: ids.get(nic.pci or ""), lambda nic: nic.pci),
        (lambda nic: nic.id if not nic.pci else None, lambda nic: nic.id if not nic.pci else None),
        (lambda nic: None if nic.pci else nic.label, lambda nic: nic.label),  # a source without PCI addresses
        (lambda nic: nic.label, lambda nic: None if nic.pci else nic.label),
    )


def _netdev_keys(ids: Mapping[str, str], same_host: bool) -> Keys:
    def port(mapped: Callable[[str], str | None]) -> Callable[[Netdev], Hashable | None]:
        def key(netdev: Netdev) -> Hashable | None:
            function = mapped(netdev.pci) if netdev.pci else None
            return (function, netdev.id.partition("/")[2]) if function else None

        return key

    mac: Keys = ((lambda netdev: netdev.mac, lambda netdev: netdev.mac),) if same_host else ()
    name: Keys = ((lambda netdev: netdev.label, lambda netdev: netdev.label),)
    return ((port(ids.get), port(lambda pci: pci)), *name, *mac)


def _select_lasting(netdevs: Iterable[Netdev]) -> list[Netdev]:
    """Without interfaces that come and go with containers and guests: those on no device, no bond, no VLAN."""
    return [netdev for netdev in netdevs if netdev.pci or netdev.bond is not None or netdev.vlan is not None]


def _match(old: Sequence[Row], new: Sequence[Row], keys: Keys) -> Matched:
    """Pair rows by each key in turn; a key that two rows share reports nothing."""
    left = {id(row): row for row in old}
    right = {id(row): row for row in new}
    pairs: list[tuple[Row, Row]] = []
    for of_old, of_new in keys:
        before = _group_by_key((of_old(row), row) for row in left.values())
        after = _group_by_key((of_new(row), row) for row in right.values())
        for key, rows in before.items():
            others = after.get(key, [])
            if len(rows) == len(others) == 1:
                pairs.append((rows[0], others[0]))
                del left[id(rows[0])], right[id(others[0])]
    return Matched(pairs, list(left.values()), list(right.values()))


def _group_by_key(keyed: Iterable[tuple[Hashable | None, Any]]) -> dict[Hashable, list[Any]]:
    groups: dict[Hashable, list[Any]] = {}
    for key, row in keyed:
        if key is not None:
            groups.setdefault(key, []).append(row)
    return groups


def _card(ident: str) -> str:
    return ident.rpartition(".")[0]


def _kind(row: PciFunction) -> tuple[str | None, str | None]:
    return (row.vendor, row.device)
