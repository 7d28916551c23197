"""Cables, where LLDP names a far end that NetBox knows. A cable of others is never touched: a difference is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.netbox.changes import Change, Differences, Note, Ref
from agent.netbox.current import TAG, Device, Interface, Shared
from agent.netbox.of_interfaces import Port
from agent.netbox.of_modules import Of
from agent.outputs.inventory import objects


def differences(of: Of, found: Sequence[Port], shared: Shared) -> Differences:
    """What makes NetBox's cables lead where the node's ports do."""
    changes: list[Change] = []
    notes: list[Note] = []
    ours = {port.wanted.name: port.interface for port in found}
    for cable in of.node.cables:
        far = _far(cable, shared)
        if isinstance(far, str):
            notes.append(Note(of.key, f"no cable at {cable.interface}: {far}"))
            continue
        near = ours[cable.interface]
        if near is not None and near.cable is not None:
            if near.link_peers_type not in (None, "dcim.interface") or not near.link_peers:
                continue  # into a patch panel: what is behind it, LLDP sees, and this cable does not tell
            if any(peer.id == far.id for peer in near.link_peers):
                continue
            there = ", ".join(f"{peer.device.name if peer.device else '?'} {peer.name}" for peer in near.link_peers)
            told = f"{cable.interface} leads to {there} in NetBox, and to {_end(cable.device, far)} by LLDP"
            changes += _again(of, cable, near, far, told, notes)
        elif far.cable is not None:
            told = f"{cable.interface} leads to {_end(cable.device, far)} by LLDP, which has another cable in NetBox"
            notes.append(Note(of.key, told, conflict=True))
        else:
            changes.append(_made(of, cable, near, far))
    return Differences(changes, notes)


def _again(
    of: Of, cable: objects.InventoryCable, near: Interface, far: Interface, told: str, notes: list[Note]
) -> list[Change]:
    """Another cable: where it is of ours and may go, in its place."""
    assert near.cable is not None
    has = of.has.cables[near.cable.id]
    if not (of.prune and has.ours) or far.cable is not None:
        hint = "; --prune replaces it" if has.ours and not of.prune and far.cable is None else ""
        notes.append(Note(of.key, told + hint, conflict=True))
        return []
    gone = Change("prune cable", "delete", "cable", of.key, cable.interface, id=has.id)
    return [gone, _made(of, cable, near, far, (gone.ref,))]


def _made(
    of: Of, cable: objects.InventoryCable, near: Interface | None, far: Interface, needs: tuple[Ref, ...] = ()
) -> Change:
    target = near.id if near else Ref("interface", of.key, cable.interface)
    body: dict[str, Any] = {
        "a_terminations": [{"object_type": "dcim.interface", "object_id": target}],
        "b_terminations": [{"object_type": "dcim.interface", "object_id": far.id}],
        "status": "connected",
        "tags": [{"slug": TAG}],
    }
    return Change(
        "cable", "create", "cable", of.key, cable.interface, body, after={"to": _end(cable.device, far)}, needs=needs
    )


def _far(cable: objects.InventoryCable, shared: Shared) -> Interface | str:
    """The far end, or why it is not known."""
    device = _device(cable.device, shared.devices)
    if isinstance(device, str):
        return device
    by_name: Mapping[str, Interface] = {
        each.name.lower(): each for each in shared.interfaces if each.device.id == device.id
    }
    for port in cable.ports:
        if port.lower() in by_name:
            return by_name[port.lower()]
    return f"{device.name} has no interface {' or '.join(cable.ports)} in NetBox"


def _device(name: str, devices: Sequence[Device]) -> Device | str:
    for wanted in (name.lower(), name.lower().partition(".")[0]):
        called = [device for device in devices if (device.name or "").lower() == wanted]
        if len(called) == 1:
            return called[0]
        if called:
            return f"NetBox has {len(called)} devices called {name}"
    return f"NetBox has no device called {name}"


def _end(device: str, far: Interface) -> str:
    return f"{far.device.name or device} {far.name}"
