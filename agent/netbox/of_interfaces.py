"""Differences of interfaces: by MAC address or GUID, then by name. A port is renamed, never made twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.netbox.changes import Change, Differences, Note, Ref
from agent.netbox.current import TAG, Interface, MacAddress
from agent.netbox.moves import ordered
from agent.netbox.of_modules import Of, Pair, uncabled
from agent.outputs.inventory import objects

ASIDE = "fabricscope moving"  # a name to bear while two interfaces change theirs
_STACKED = ("virtual", "bridge", "lag")  # these borrow the address of a port


class Port(NamedTuple):
    """A port of the node and the interface that stands for it in NetBox; None: there is none yet."""

    wanted: objects.InventoryInterface
    interface: Interface | None


def ports(of: Of) -> list[Port]:
    """Which interface each port is."""
    addresses: dict[int, set[str]] = {}
    for mac in of.has.macs:
        addresses.setdefault(mac.assigned_object_id or 0, set()).add(mac.mac_address.upper())
    left = list(of.node.interfaces)
    right = [each for each in of.has.interfaces if each.type.value not in _STACKED]
    found: dict[str, Interface] = {}

    def match(same: Callable[[objects.InventoryInterface, Interface], bool]) -> None:
        for wanted in list(left):
            alike = [each for each in right if same(wanted, each)]
            rivals = [each for each in left if alike and same(each, alike[0])]
            if len(alike) == 1 and len(rivals) == 1:
                found[wanted.name] = alike[0]
                left.remove(wanted)
                right.remove(alike[0])

    match(lambda wanted, each: wanted.mac is not None and wanted.mac in addresses.get(each.id, ()))
    match(lambda wanted, each: wanted.wwn is not None and wanted.wwn == (each.wwn or "").upper())
    match(lambda wanted, each: wanted.name == each.name)
    match(lambda wanted, each: wanted.name.lower() == each.name.lower())
    return [Port(wanted, found.get(wanted.name)) for wanted in of.node.interfaces]


def differences(of: Of, modules: Sequence[Pair], found: Sequence[Port]) -> Differences:
    """What makes NetBox's interfaces those of the node."""
    changes: list[Change] = []
    notes: list[Note] = []
    inside = {
        pair.wanted.bay: pair.module.id if pair.module else Ref("module", of.key, pair.wanted.bay) for pair in modules
    }
    gone = _gone(of, modules, found)
    renamed = _renamed(of, found, {change.id for change in gone.changes}, notes)
    for port in found:
        if port.interface is None:
            changes.append(_made(of, port.wanted, inside[port.wanted.bay]))
        else:
            changes += _altered(of, port.wanted, port.interface, inside[port.wanted.bay])
        changes += _addressed(of, port)
    return Differences(changes + renamed + gone.changes, notes + gone.notes)


def _made(of: Of, wanted: objects.InventoryInterface, module: int | Ref) -> Change:
    body: dict[str, Any] = {
        "device": of.device,
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
    return Change("interface", "create", "interface", of.key, wanted.name, body, after=after)


def _altered(of: Of, wanted: objects.InventoryInterface, has: Interface, module: int | Ref) -> list[Change]:
    """Of interfaces that others made, only the GUID: type, speed and place are theirs."""
    body: dict[str, Any] = {}
    before: dict[str, str] = {}
    after: dict[str, str] = {}

    def set_(field: str, word: str, now: object, then: object) -> None:
        body[field], before[word], after[word] = then, str(now or ""), str(then)

    if wanted.wwn and wanted.wwn != (has.wwn or "").upper():
        set_("wwn", "GUID", has.wwn, wanted.wwn)
    if has.ours:
        if wanted.certain and wanted.type != has.type.value:
            set_("type", "type", has.type.value, wanted.type)
        if wanted.speed_kbit_s and wanted.speed_kbit_s != has.speed:
            set_("speed", "speed", has.speed, wanted.speed_kbit_s)
        if module != (has.module.id if has.module else None):
            body["module"] = module
            after["module"] = wanted.bay
            before["module"] = "another" if has.module else ""
    if not body:
        return []
    return [Change("interface", "update", "interface", of.key, wanted.name, body, has.id, before, after)]


def _addressed(of: Of, port: Port) -> list[Change]:
    """The MAC address: one more for an interface of others, in place of the old one for an interface of ours."""
    wanted, has = port
    if wanted.mac is None:
        return []
    own = [mac for mac in of.has.macs if has and mac.assigned_object_id == has.id]
    there = next((mac for mac in own if mac.mac_address.upper() == wanted.mac), None)
    primary = next(
        (mac for mac in own if has and has.primary_mac_address and mac.id == has.primary_mac_address.id), None
    )
    if there is not None:
        return [_primary(of, wanted, has, there.id)] if primary is None else []
    old = {"MAC": primary.mac_address} if primary else {}
    if primary is not None and primary.ours:
        return [_mac(of, wanted, "update", {"mac_address": wanted.mac}, primary, old)]
    target: int | Ref = has.id if has else Ref("interface", of.key, wanted.name)
    body: dict[str, Any] = {
        "mac_address": wanted.mac,
        "assigned_object_type": "dcim.interface",
        "assigned_object_id": target,
    }
    made = _mac(of, wanted, "create", body | {"tags": [{"slug": TAG}]}, None, old)
    return [made, _primary(of, wanted, has, made.ref)]


def _mac(
    of: Of,
    wanted: objects.InventoryInterface,
    action: str,
    body: Mapping[str, Any],
    mac: MacAddress | None,
    old: dict[str, str],
) -> Change:
    return Change(
        "MAC address",
        action,
        "MAC address",
        of.key,
        wanted.name,
        dict(body),
        mac.id if mac else None,
        old,
        {"MAC": wanted.mac or ""},
    )


def _primary(of: Of, wanted: objects.InventoryInterface, has: Interface | None, mac: int | Ref) -> Change:
    target = None if has else Ref("interface", of.key, wanted.name)
    body: dict[str, Any] = {"primary_mac_address": mac} | ({"id": target} if target else {})
    after = {"primary MAC": wanted.mac or ""}
    return Change("primary MAC", "update", "interface", of.key, wanted.name, body, has.id if has else None, after=after)


def _renamed(of: Of, found: Sequence[Port], pruned: set[int | None], notes: list[Note]) -> list[Change]:
    """Interfaces of ours that the node calls otherwise now; a name of others stays."""
    names = {each.id: each.name for each in of.has.interfaces if each.id not in pruned}
    targets = {
        port.interface.id: port.wanted.name
        for port in found
        if port.interface and port.interface.ours and port.interface.name != port.wanted.name
    }
    order = ordered(names, targets, ASIDE)
    for one in order.stuck:
        text = f"interface {names[one]} is {targets[one]} on the node, and NetBox has another one of that name"
        notes.append(Note(of.key, text, conflict=True))
    return [
        Change(
            "rename interface",
            "update",
            "interface",
            of.key,
            targets[one],
            {"name": name},
            one,
            {"name": names[one]},
            {"name": name},
            step,
        )
        for step, (one, name) in enumerate(order.steps)
    ]


def _gone(of: Of, modules: Sequence[Pair], found: Sequence[Port]) -> Differences:
    """Interfaces of ours that the node does not have: told, and taken away only where that was asked for."""
    stays = {port.interface.id for port in found if port.interface}
    blind = {pair.module.id for pair in modules if pair.module and not pair.wanted.ports_known}
    known = {pair.module.id for pair in modules if pair.module}
    changes: list[Change] = []
    notes: list[Note] = []
    for each in of.has.interfaces:
        if each.id in stays or not each.ours:
            continue
        module = each.module.id if each.module else None
        if module is not None and module not in known:
            continue  # goes, or stays, with its module
        if not of.prune:
            why = "--prune removes it"
        elif not of.node.interfaces_known or module in blind:
            why = "the report does not know all ports, so it stays"
        elif each.cable and not of.has.cables[each.cable.id].ours:
            why = "its cable was made by others, so it stays"
        else:
            changes += [uncabled(of, each)] if each.cable else []
            changes.append(Change("prune interface", "delete", "interface", of.key, each.name, id=each.id))
            continue
        notes.append(Note(of.key, f"interface {each.name} is not in the report; {why}"))
    return Differences(changes, notes)
