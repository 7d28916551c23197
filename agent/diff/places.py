"""Where a PCI function physically sits: its root bus, and the way down as device and function numbers.

Bus numbers are dealt out at boot, so they change for every device when one is added; this way does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.model.pci import PciFunction

Spot = tuple[str, tuple[str, ...]]  # root bus, ("01.0", "00.0", ...)
DEPTH_LIMIT = 64  # no bus is that deep; a hostile report may go in circles


def spots(functions: Sequence[PciFunction]) -> dict[str, Spot]:
    """Spot by id, of those whose way to a root bus is known."""
    rows = {row.id: row for row in functions}
    found: dict[str, Spot] = {}
    for row in functions:
        way: list[str] = []
        at: PciFunction | None = row
        while at is not None and len(way) < DEPTH_LIMIT:
            way.append(at.id.rpartition(":")[2])
            if at.parent is None or at.parent not in rows:
                break
            at = rows[at.parent]
        root = at.root_bus if at is not None else None
        if root and len(way) < DEPTH_LIMIT:
            found[row.id] = (root, tuple(reversed(way)))
    return found


def roots(old: Mapping[str, Spot], new: Mapping[str, Spot], same: Mapping[str, str]) -> dict[str, str]:
    """Which root bus of NEW is which of OLD, by the devices known to be the same (`same`: ids of OLD to ids of NEW).

    Where all root buses are still there, each is itself. Else one that is gone is the new one that all its devices
    hang from now.
    """
    before, after = {root for root, _ in old.values()}, {root for root, _ in new.values()}
    mapped = {root: root for root in before & after}
    if before == after:
        return mapped
    votes: dict[str, set[str]] = {}
    for a, b in same.items():
        if a in old and b in new and old[a][1] == new[b][1]:
            votes.setdefault(old[a][0], set()).add(new[b][0])
    unanimous = {root: next(iter(voted)) for root, voted in votes.items() if len(voted) == 1}
    if len(set(unanimous.values())) == len(unanimous) and any(root not in after for root in unanimous):
        taken = set(unanimous.values())
        mapped = {a: b for a, b in mapped.items() if a in unanimous or b not in taken} | unanimous
    return mapped


def slot_name(ident: str, slot: str | None) -> str:
    """A place for people: the slot's label where the firmware has one, and the address without the function.

    >>> slot_name("0000:19:00.0", "21")
    'slot 21 (0000:19:00)'
    """
    address = ident.rpartition(".")[0] or ident
    return f"slot {slot} ({address})" if slot else address
