"""Devices that went, came, moved, were replaced, or only got other names and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from agent.diff.ledger import ChangedThing, Ledger, slot_name
from agent.diff.pairing import Matched, Pairing, gpu_identity, nic_identity
from agent.model.pci import PciFunction
from agent.model.report import Report

BRIDGE = "0x0604"
PCI, GPU, RDMA, NET = ("pci", "lspci"), ("nvml", "nvidia_smi"), ("rdma", "rdma_tools"), ("netdev",)
ANSWERED = ("ok", "partial")


class _Table(NamedTuple):
    kind: str
    matched: Matched
    probes: tuple[str, ...]  # any of these sees such a thing


def devices(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """A thing is named once: its function, its interfaces and its neighbours on the same card are not named again."""
    tables = (
        _Table("gpu", pairs.gpus, PCI + GPU),
        _Table("nic", pairs.nics, PCI + RDMA),
        _Table("pci", pairs.pci, PCI),
        _Table("netdev", pairs.netdevs, NET),
    )
    _one_sided(ledger, "gone", new, [(table, table.matched.gone) for table in tables])
    _one_sided(ledger, "new", old, [(table, table.matched.new) for table in tables])
    _add_moves(ledger, old, new, pairs)
    if pairs.same_host:
        _add_replacements(ledger, pairs)
    for table in tables:
        for a, b in table.matched.pairs if table.kind != "pci" else ():
            if a.label != b.label:
                place = ChangedThing(
                    old=f"{table.kind}:{a.id}", new=f"{table.kind}:{b.id}", label=f"{a.label} -> {b.label}"
                )
                ledger.add("devices", "renamed", table.kind, place)


def list_missing(new: Report, pairs: Pairing) -> list[str]:
    """Labels of the GPUs and physical NICs of OLD that NEW, whose probes looked for them, has not."""
    gpus = [gpu.label for gpu in pairs.gpus.gone] if was_read(new, PCI + GPU) else []
    nics = [nic.label for nic in pairs.nics.gone if not (nic.virtual_function or nic.software or nic.accelerator)]
    return gpus + (nics if was_read(new, PCI + RDMA) else [])


def was_read(report: Report, probes: Sequence[str]) -> bool:
    """Whether the report can show that such a thing is not there."""
    return any(run.name in probes and run.status in ANSWERED for run in report.probes)


def _one_sided(ledger: Ledger, kind: str, other: Report, tables: list[tuple[_Table, list[Any]]]) -> None:
    reported: set[str] = set()  # cards that are named already
    for table, rows in tables:
        for row in rows:
            if table.kind == "nic" and row.accelerator:
                continue  # inside an accelerator, which is named
            address = row.id if table.kind == "pci" else row.pci
            card = (address or "").rpartition(".")[0]
            if card and card in reported and table.kind in ("pci", "netdev"):
                continue
            reported.add(card)
            ident, label = f"{table.kind}:{row.id}", _label(row)
            place = ChangedThing(old=ident, label=label) if kind == "gone" else ChangedThing(new=ident, label=label)
            if not was_read(other, table.probes):
                ledger.unknown("lost" if kind == "gone" else "gained", "whether it is there", place)
            else:
                ledger.add("devices", kind, _describe_kind(table.kind, row), place)


def _label(row: Any) -> str:
    if isinstance(row, PciFunction):
        return f"{row.id} {row.name}" if row.name and not _is_bridge(row) else row.id
    detail = getattr(row, "uuid", None) or (row.pci if row.pci != row.label else None)
    return f"{row.label} ({detail})" if detail else str(row.label)


def _describe_kind(kind: str, row: Any) -> str:
    if kind == "pci":
        return "bridge" if _is_bridge(row) else "PCI device"
    return kind


def _is_bridge(row: PciFunction) -> bool:
    return (row.class_code or "").startswith(BRIDGE)


def _add_moves(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """Moved: another place. Renumbered: the same place, and only its bus is called otherwise."""
    names_old, names_new = _names(old), _names(new)
    slots_old, slots_new = _slots(old), _slots(new)
    moved: set[str] = set()
    renumbered: list[tuple[str, str]] = []
    for a, b in pairs.pci.pairs:
        if pairs.stayed(a.id, b.id):
            if a.id != b.id:
                renumbered.append((a.id, b.id))
            continue
        card = a.id.rpartition(".")[0]
        if card in moved or _is_bridge(a):
            continue
        moved.add(card)
        kind, label = names_new.get(b.id, names_old.get(a.id, ("pci", b.id)))
        ledger.add(
            "devices",
            "moved",
            kind if kind != "pci" else "PCI device",
            ChangedThing(old=f"{kind}:{a.id}", new=f"{kind}:{b.id}", label=label),
            slot_name(a.id, slots_old.get(a.id)),
            slot_name(b.id, slots_new.get(b.id)),
        )
    for before, after in renumbered:
        place = ChangedThing(old=f"pci:{before}", new=f"pci:{after}", label=f"{before} -> {after}")
        ledger.add("devices", "renumbered", "bus numbers", place)


def _names(report: Report) -> dict[str, tuple[str, str]]:
    """What people call the device on a PCI function."""
    named = {nic.pci: ("nic", nic.label) for nic in report.topology.nics if nic.pci}
    return named | {gpu.pci: ("gpu", gpu.label) for gpu in report.topology.gpus if gpu.pci}


def _slots(report: Report) -> dict[str, str]:
    """The slot's label: the function's own, else that of the port above it."""
    rows = {row.id: row for row in report.topology.pci}
    slots: dict[str, str] = {}
    for row in report.topology.pci:
        above = rows.get(row.parent or "")
        slot = row.slot or (above.slot if above else None)
        if slot:
            slots[row.id] = slot
    return slots


def _add_replacements(ledger: Ledger, pairs: Pairing) -> None:
    for kind, table, identity in (("gpu", pairs.gpus, gpu_identity), ("nic", pairs.nics, nic_identity)):
        for a, b in table.pairs:
            before, after = identity(a), identity(b)
            if before and after and before != after:
                ledger.add("devices", "replaced", kind, pairs.place(kind, a, b), before, after)
