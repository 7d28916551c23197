"""Differences of interfaces: by MAC address or GUID, then by name. A port is renamed, never made twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.netbox.changes import DiffResult, NetBoxChange, ObjectRef, PlanNote, order_moves
from agent.netbox.diff_modules import DeviceDiff, ModulePair, delete_cable
from agent.netbox.state import TAG, MacAddress, NetBoxDevice, NetBoxInterface, SharedState
from agent.outputs.inventory import objects

TEMPORARY_NAME = "fabricscope moving"  # a name to bear while two interfaces change theirs
_STACKED = ("virtual", "bridge", "lag")  # these borrow the address of a port


class PortPair(NamedTuple):
    """A port of the node and the interface that represents it in NetBox; None: there is none yet."""

    wanted: objects.InventoryInterface
    interface: NetBoxInterface | None


def pair_ports(diff: DeviceDiff) -> list[PortPair]:
    """Which interface each port is."""
    addresses: dict[int, set[str]] = {}
    for mac in diff.current.macs:
        addresses.setdefault(mac.assigned_object_id or 0, set()).add(mac.mac_address.upper())
    left = list(diff.node.interfaces)
    right = [candidate for candidate in diff.current.interfaces if candidate.type.value not in _STACKED]
    matches: dict[str, NetBoxInterface] = {}

    def match(same: Callable[[objects.InventoryInterface, NetBoxInterface], bool]) -> None:
        for wanted in list(left):
            alike = [candidate for candidate in right if same(wanted, candidate)]
            rivals = [candidate for candidate in left if alike and same(candidate, alike[0])]
            if len(alike) == 1 and len(rivals) == 1:
                matches[wanted.name] = alike[0]
                left.remove(wanted)
                right.remove(alike[0])

    match(lambda wanted, candidate: wanted.mac is not None and wanted.mac in addresses.get(candidate.id, ()))
    match(lambda wanted, candidate: wanted.wwn is not None and wanted.wwn == (candidate.wwn or "").upper())
    match(lambda wanted, candidate: wanted.name == candidate.name)
    match(lambda wanted, candidate: wanted.name.lower() == candidate.name.lower())
    return [PortPair(wanted, matches.get(wanted.name)) for wanted in diff.node.interfaces]


def diff_interfaces(diff: DeviceDiff, modules: Sequence[ModulePair], ports: Sequence[PortPair]) -> DiffResult:
    """What makes NetBox's interfaces those of the node."""
    changes: list[NetBoxChange] = []
    notes: list[PlanNote] = []
    inside = {
        pair.wanted.bay: pair.module.id if pair.module else ObjectRef("module", diff.key, pair.wanted.bay)
        for pair in modules
    }
    gone = _find_missing(diff, modules, ports)
    renamed = _rename_interfaces(diff, ports, {change.id for change in gone.changes}, notes)
    for port in ports:
        if port.interface is None:
            changes.append(_create_interface(diff, port.wanted, inside[port.wanted.bay]))
        else:
            changes += _update_interface(diff, port.wanted, port.interface, inside[port.wanted.bay])
        changes += _update_mac(diff, port)
    return DiffResult(changes + renamed + gone.changes, notes + gone.notes)


def _create_interface(diff: DeviceDiff, wanted: objects.InventoryInterface, module: int | ObjectRef) -> NetBoxChange:
    body: dict[str, Any] = {
        "device": diff.device,
        "module": module,
        "name": wanted.name,
        "type": wanted.type,
        "speed": wanted.speed_kbit_s,
        "wwn": wanted.wwn,
        "tags": [{"slug": TAG}],
    }
    after = (
        {"type": wanted.type}
        | ({"GUID": wanted.wwn} if wanted.wwn else {})
        | ({"MAC": wanted.mac} if wanted.mac else {})
    )
    return diff.change("interface", "create", wanted.name, body, after=after)


def _update_interface(
    diff: DeviceDiff, wanted: objects.InventoryInterface, existing: NetBoxInterface, module: int | ObjectRef
) -> list[NetBoxChange]:
    """Of interfaces that others made, only the GUID: type, speed and place are theirs."""
    body: dict[str, Any] = {}
    before: dict[str, str] = {}
    after: dict[str, str] = {}

    def set_(field: str, word: str, now: object, then: object) -> None:
        body[field], before[word], after[word] = then, str(now or ""), str(then)

    if wanted.wwn and wanted.wwn != (existing.wwn or "").upper():
        set_("wwn", "GUID", existing.wwn, wanted.wwn)
    if existing.ours:
        if wanted.certain and wanted.type != existing.type.value:
            set_("type", "type", existing.type.value, wanted.type)
        if wanted.speed_kbit_s and wanted.speed_kbit_s != existing.speed:
            set_("speed", "speed", existing.speed, wanted.speed_kbit_s)
        if module != (existing.module.id if existing.module else None):
            body["module"] = module
            after["module"] = wanted.bay
            before["module"] = "another" if existing.module else ""
    if not body:
        return []
    return [diff.change("interface", "update", wanted.name, body, existing.id, before, after)]


def _update_mac(diff: DeviceDiff, port: PortPair) -> list[NetBoxChange]:
    """The MAC address: one more for an interface of others, in place of the old one for an interface of ours."""
    wanted, existing = port
    if wanted.mac is None:
        return []
    own = [mac for mac in diff.current.macs if existing and mac.assigned_object_id == existing.id]
    there = next((mac for mac in own if mac.mac_address.upper() == wanted.mac), None)
    primary = next(
        (mac for mac in own if existing and existing.primary_mac_address and mac.id == existing.primary_mac_address.id),
        None,
    )
    if there is not None:
        return [_set_primary_mac(diff, wanted, existing, there.id)] if primary is None else []
    old = {"MAC": primary.mac_address} if primary else {}
    if primary is not None and primary.ours:
        return [_mac(diff, wanted, "update", {"mac_address": wanted.mac}, primary, old)]
    target: int | ObjectRef = existing.id if existing else ObjectRef("interface", diff.key, wanted.name)
    body: dict[str, Any] = {
        "mac_address": wanted.mac,
        "assigned_object_type": "dcim.interface",
        "assigned_object_id": target,
    }
    new_mac = _mac(diff, wanted, "create", body | {"tags": [{"slug": TAG}]}, None, old)
    return [new_mac, _set_primary_mac(diff, wanted, existing, new_mac.ref)]


def _mac(
    diff: DeviceDiff,
    wanted: objects.InventoryInterface,
    action: str,
    body: Mapping[str, Any],
    mac: MacAddress | None,
    old: dict[str, str],
) -> NetBoxChange:
    return diff.change(
        "MAC address", action, wanted.name, dict(body), mac.id if mac else None, old, {"MAC": wanted.mac or ""}
    )


def _set_primary_mac(
    diff: DeviceDiff, wanted: objects.InventoryInterface, existing: NetBoxInterface | None, mac: int | ObjectRef
) -> NetBoxChange:
    target = None if existing else ObjectRef("interface", diff.key, wanted.name)
    body: dict[str, Any] = {"primary_mac_address": mac} | ({"id": target} if target else {})
    after = {"primary MAC": wanted.mac or ""}
    return diff.change("primary MAC", "update", wanted.name, body, existing.id if existing else None, after=after)


def _rename_interfaces(
    diff: DeviceDiff, ports: Sequence[PortPair], pruned: set[int | None], notes: list[PlanNote]
) -> list[NetBoxChange]:
    """Interfaces of ours that the node calls otherwise now; a name of others stays."""
    names = {interface.id: interface.name for interface in diff.current.interfaces if interface.id not in pruned}
    targets = {
        port.interface.id: port.wanted.name
        for port in ports
        if port.interface and port.interface.ours and port.interface.name != port.wanted.name
    }
    order = order_moves(names, targets, TEMPORARY_NAME)
    for interface_id in order.stuck:
        name, target = names[interface_id], targets[interface_id]
        text = f"interface {name} is {target} on the node, and NetBox has another one of that name"
        notes.append(PlanNote(diff.key, text, conflict=True))
    return [
        diff.change(
            "rename interface",
            "update",
            targets[interface_id],
            {"name": name},
            interface_id,
            {"name": names[interface_id]},
            {"name": name},
            step,
        )
        for step, (interface_id, name) in enumerate(order.steps)
    ]


def _find_missing(diff: DeviceDiff, modules: Sequence[ModulePair], ports: Sequence[PortPair]) -> DiffResult:
    """Interfaces of ours that the node does not have: reported, and taken away only where that was asked for."""
    stays = {port.interface.id for port in ports if port.interface}
    blind = {pair.module.id for pair in modules if pair.module and not pair.wanted.ports_known}
    known = {pair.module.id for pair in modules if pair.module}
    changes: list[NetBoxChange] = []
    notes: list[PlanNote] = []
    for interface in diff.current.interfaces:
        if interface.id in stays or not interface.ours:
            continue
        module = interface.module.id if interface.module else None
        if module is not None and module not in known:
            continue  # goes, or stays, with its module
        if not diff.prune:
            why = "--prune removes it"
        elif not diff.node.interfaces_known or module in blind:
            why = "the report does not list all ports, so it stays"
        elif interface.cable and not diff.current.cables[interface.cable.id].ours:
            why = "its cable was made by others, so it stays"
        else:
            changes += [delete_cable(diff, interface)] if interface.cable else []
            changes.append(diff.change("prune interface", "delete", interface.name, id=interface.id))
            continue
        notes.append(PlanNote(diff.key, f"interface {interface.name} is not in the report; {why}"))
    return DiffResult(changes, notes)


def diff_cables(diff: DeviceDiff, ports: Sequence[PortPair], shared: SharedState) -> DiffResult:
    """What makes NetBox's cables lead where the node's ports do."""
    changes: list[NetBoxChange] = []
    notes: list[PlanNote] = []
    ours = {port.wanted.name: port.interface for port in ports}
    for cable in diff.node.cables:
        far = _find_far_end(cable, shared)
        if isinstance(far, str):
            notes.append(PlanNote(diff.key, f"no cable at {cable.interface}: {far}"))
            continue
        near = ours[cable.interface]
        if near is not None and near.cable is not None:
            if near.link_peers_type not in (None, "dcim.interface") or not near.link_peers:
                continue  # into a patch panel: what is behind it, LLDP sees, and this cable does not show
            if any(peer.id == far.id for peer in near.link_peers):
                continue
            there = ", ".join(f"{peer.device.name if peer.device else '?'} {peer.name}" for peer in near.link_peers)
            text = f"{cable.interface} leads to {there} in NetBox, and to {_describe_end(cable.device, far)} by LLDP"
            changes += _replace_cable(diff, cable, near, far, text, notes)
        elif far.cable is not None:
            end = _describe_end(cable.device, far)
            text = f"{cable.interface} leads to {end} by LLDP, which has another cable in NetBox"
            notes.append(PlanNote(diff.key, text, conflict=True))
        else:
            changes.append(_create_cable(diff, cable, near, far))
    return DiffResult(changes, notes)


def _replace_cable(
    diff: DeviceDiff,
    cable: objects.InventoryCable,
    near: NetBoxInterface,
    far: NetBoxInterface,
    text: str,
    notes: list[PlanNote],
) -> list[NetBoxChange]:
    """Another cable: where it is of ours and may go, in its place."""
    assert near.cable is not None
    existing = diff.current.cables[near.cable.id]
    if not (diff.prune and existing.ours) or far.cable is not None:
        hint = "; --prune replaces it" if existing.ours and not diff.prune and far.cable is None else ""
        notes.append(PlanNote(diff.key, text + hint, conflict=True))
        return []
    gone = diff.change("prune cable", "delete", cable.interface, id=existing.id)
    return [gone, _create_cable(diff, cable, near, far, (gone.ref,))]


def _create_cable(
    diff: DeviceDiff,
    cable: objects.InventoryCable,
    near: NetBoxInterface | None,
    far: NetBoxInterface,
    needs: tuple[ObjectRef, ...] = (),
) -> NetBoxChange:
    target = near.id if near else ObjectRef("interface", diff.key, cable.interface)
    body: dict[str, Any] = {
        "a_terminations": [{"object_type": "dcim.interface", "object_id": target}],
        "b_terminations": [{"object_type": "dcim.interface", "object_id": far.id}],
        "status": "connected",
        "tags": [{"slug": TAG}],
    }
    return diff.change(
        "cable", "create", cable.interface, body, after={"to": _describe_end(cable.device, far)}, needs=needs
    )


def _find_far_end(cable: objects.InventoryCable, shared: SharedState) -> NetBoxInterface | str:
    """The far end, or why it is not known."""
    device = _find_device(cable.device, shared.devices)
    if isinstance(device, str):
        return device
    by_name: Mapping[str, NetBoxInterface] = {
        interface.name.lower(): interface for interface in shared.interfaces if interface.device.id == device.id
    }
    for port in cable.ports:
        if port.lower() in by_name:
            return by_name[port.lower()]
    return f"{device.name} has no interface {' or '.join(cable.ports)} in NetBox"


def _find_device(name: str, devices: Sequence[NetBoxDevice]) -> NetBoxDevice | str:
    for wanted in (name.lower(), name.lower().partition(".")[0]):
        called = [device for device in devices if (device.name or "").lower() == wanted]
        if len(called) == 1:
            return called[0]
        if called:
            return f"NetBox has {len(called)} devices called {name}"
    return f"NetBox has no device called {name}"


def _describe_end(device: str, far: NetBoxInterface) -> str:
    return f"{far.device.name or device} {far.name}"
