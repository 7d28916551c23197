"""Differences of modules: which module of NetBox each device of the node is, and what is to be done about the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from agent.netbox.changes import Change, Differences, Note, Ref
from agent.netbox.current import TAG, Bay, Holding, Interface, Module, ModuleType
from agent.netbox.moves import ordered
from agent.outputs.inventory import objects

PARKING = "fabricscope moving"  # a bay to stand in while two modules change places
A = TypeVar("A")
B = TypeVar("B")


class Pair(NamedTuple):
    """A device of the node and the module that stands for it in NetBox; None: there is none yet."""

    wanted: objects.InventoryModule
    module: Module | None


class Of(NamedTuple):
    """What the differences of one device are made of."""

    key: str
    node: objects.DesiredNode
    has: Holding
    types: Sequence[ModuleType]
    prune: bool

    @property
    def device(self) -> int | Ref:
        """The device, or the one that is to be made."""
        return self.has.device.id if self.has.device else Ref("device", "", self.key)


def pairs(of: Of) -> list[Pair]:
    """By serial number, then by the other identity (UUID, GUID), then by place."""
    bays = {bay.id: bay for bay in of.has.bays}
    left, right = list(of.node.modules), list(of.has.modules)
    found: dict[int, Module] = {}

    def match(a: Callable[[objects.InventoryModule], Hashable], b: Callable[[Module], Hashable]) -> None:
        for wanted, module in _unique(left, a, right, b):
            found[id(wanted)] = module
            left.remove(wanted)
            right.remove(module)

    match(lambda wanted: (wanted.serial or "").lower(), lambda module: module.serial.lower())
    match(lambda wanted: wanted.description, lambda module: module.ours and module.description)
    match(
        lambda wanted: wanted.bay,
        lambda module: bays[module.module_bay.id].name if module.module_bay.id in bays else "",
    )
    return [Pair(wanted, found.get(id(wanted))) for wanted in of.node.modules]


def _unique(
    left: Sequence[A], a: Callable[[A], Hashable], right: Sequence[B], b: Callable[[B], Hashable]
) -> list[tuple[A, B]]:
    """Those of both sides that say the same, where nobody else of their side does; boards may share a serial."""
    ours, theirs = Counter(a(each) for each in left), Counter(b(each) for each in right)
    by_value = {b(each): each for each in right}
    keys = [(each, a(each)) for each in left]
    return [(each, by_value[key]) for each, key in keys if key and ours[key] == 1 and theirs[key] == 1]


def differences(of: Of, found: Sequence[Pair]) -> Differences:
    """What makes NetBox's modules those of the node."""
    changes: list[Change] = []
    notes: list[Note] = []
    moves: dict[int, str] = {}
    bays = by_name(of)
    by_id = {bay.id: bay for bay in of.has.bays}
    for pair in found:
        if pair.module is None:
            changes += _made(of, pair.wanted, bays.get(pair.wanted.bay))
            continue
        changes += _altered(of, pair, notes)
        stands = by_id.get(pair.module.module_bay.id)
        if stands is not None and stands.ours and stands.name != pair.wanted.bay:
            moves[pair.module.id] = pair.wanted.bay
    gone = _gone(of, found)
    pruned = {change.id for change in gone.changes if change.kind == "module"}
    moved, held = _moved(of, moves, pruned, notes)
    changes = [each for each in changes if (each.stage, each.name) not in held]
    return Differences(changes + gone.changes + moved, notes + gone.notes)


def by_name(of: Of) -> dict[str, Bay]:
    """Bays by name. NetBox does not keep a device from having two of one name: the first that holds something."""
    found: dict[str, Bay] = {}
    for bay in sorted(of.has.bays, key=lambda each: (each.installed_module is None, each.id)):
        found.setdefault(bay.name, bay)
    return found


def _made(of: Of, wanted: objects.InventoryModule, bay: Bay | None) -> list[Change]:
    place = Ref("module bay", of.key, wanted.bay)
    body: dict[str, Any] = {
        "device": of.device,
        "module_bay": place,
        "module_type": type_of(of.types, wanted),
        "status": "active",
        "serial": wanted.serial or "",
        "description": wanted.description or "",
        "tags": [{"slug": TAG}],
        "replicate_components": False,  # ports come from the node, not from a template
    }
    after = {"model": f"{wanted.manufacturer} {wanted.model}"} | ({"serial": wanted.serial} if wanted.serial else {})
    made = Change("module", "create", "module", of.key, wanted.bay, body, after=after)
    return [made] if bay is not None else [_bay(of, wanted.bay, wanted.position), made]


def _bay(of: Of, name: str, position: str | None = None) -> Change:
    body = {"device": of.device, "name": name, "position": position or "", "tags": [{"slug": TAG}]}
    return Change("module bay", "create", "module bay", of.key, name, body)


def type_of(types: Sequence[ModuleType], wanted: objects.InventoryModule) -> int | Ref:
    """The module type of a device: one of its maker with that model, or that part number."""
    same = [each for each in types if (each.manufacturer.name or "").lower() == wanted.manufacturer.lower()]
    own = [each for each in same if each.model == wanted.model] or [
        each for each in same if each.part_number == wanted.model
    ]
    return own[0].id if own else Ref("module type", "", type_name(wanted))


def type_name(wanted: objects.InventoryModule) -> str:
    """What people, and references, call a module type."""
    return f"{wanted.manufacturer} {wanted.model}"


def _altered(of: Of, pair: Pair, notes: list[Note]) -> list[Change]:
    """What NetBox has wrong of a module. Of modules that others made, only what identifies the device."""
    wanted, module = pair.wanted, pair.module
    assert module is not None
    body: dict[str, Any] = {}
    before, after = {}, {}
    other = bool(wanted.serial and module.serial and wanted.serial.lower() != module.serial.lower())
    if other and module.asset_tag:
        text = (
            f"module {wanted.bay} has the asset tag {module.asset_tag} and the serial number {module.serial} in NetBox"
        )
        notes.append(Note(of.key, f"{text}, and the node has {wanted.serial} there", conflict=True))
        return []
    if wanted.serial and (not module.serial or (other and (module.ours or wanted.board_serial))):
        body["serial"], before["serial"], after["serial"] = wanted.serial, module.serial, wanted.serial
    kind = type_of(of.types, wanted)
    known = next((each for each in of.types if each.id == module.module_type.id), None)
    retyped = module.ours and wanted.certain and known is not None and known.ours  # people's own types are better
    if kind != module.module_type.id and (retyped or ("serial" in body and other)):
        body["module_type"], after["model"] = kind, type_name(wanted)
        before["model"] = module.module_type.model or "another model"
    if module.ours and wanted.description and wanted.description != module.description:
        body["description"] = after["identity"] = wanted.description
        before["identity"] = module.description
    if not body:
        return []
    return [Change("module", "update", "module", of.key, wanted.bay, body, module.id, before, after)]


def _moved(
    of: Of, moves: Mapping[int, str], pruned: Container[int | None], notes: list[Note]
) -> tuple[list[Change], set[tuple[str, str]]]:
    """Modules that stand in another bay now; and what cannot be made, as one that cannot move is in its place."""
    names = {bay.id: bay.name for bay in of.has.bays}
    places = {
        module.id: names[module.module_bay.id]
        for module in of.has.modules
        if module.module_bay.id in names and module.id not in pruned
    }
    order = ordered(places, moves, PARKING)
    positions = {wanted.bay: wanted.position for wanted in of.node.modules}
    new = dict.fromkeys(place for _, place in order.steps if place not in names.values())
    changes = [_bay(of, place, positions.get(place)) for place in new]
    for step, (module, place) in enumerate(order.steps):
        body = {"module_bay": Ref("module bay", of.key, place)}
        after = {"bay": place}
        before = {"bay": places[module]}
        changes.append(
            Change("move module", "update", "module", of.key, moves[module], body, module, before, after, step)
        )
    for module in order.stuck:
        text = f"module {moves[module]} cannot move there: NetBox has one in that bay that the node does not have"
        notes.append(Note(of.key, text, conflict=True))
    return changes, {("module", places[module]) for module in order.stuck}


def _gone(of: Of, found: Sequence[Pair]) -> Differences:
    """Modules and bays of ours that the node does not have: told, and taken away only where that was asked for."""
    stays = {pair.module.id for pair in found if pair.module}
    names = {pair.wanted.bay for pair in found}
    changes: list[Change] = []
    notes: list[Note] = []
    bays = {bay.id: bay for bay in of.has.bays}
    chosen = by_name(of)
    kept: set[int] = {module.module_bay.id for module in of.has.modules if module.id in stays or not module.ours}
    for module in of.has.modules:
        if module.id in stays or not module.ours:
            continue
        bay = bays.get(module.module_bay.id)
        name = bay.name if bay else f"#{module.module_bay.id}"
        why = _why_kept(of, module)
        if why:
            notes.append(Note(of.key, f"module {name} ({_who(module)}) is not in the report; {why}"))
            kept.add(module.module_bay.id)
            continue
        changes += [uncabled(of, each) for each in of.has.interfaces if each.cable and in_module(each, module)]
        changes.append(
            Change("prune module", "delete", "module", of.key, name, id=module.id, before={"module": _who(module)})
        )
    if of.prune and of.node.modules_known:
        for bay in of.has.bays:
            used = bay.name in names and chosen[bay.name].id == bay.id
            if bay.ours and bay.id not in kept and not used:
                inside = tuple(change.ref for change in changes if change.name == bay.name)
                changes.append(
                    Change("prune module bay", "delete", "module bay", of.key, bay.name, id=bay.id, needs=inside)
                )
    return Differences(changes, notes)


def _why_kept(of: Of, module: Module) -> str | None:
    """Why a module of ours that the report does not have is not deleted; None: nothing speaks against it."""
    if not of.prune:
        return "--prune removes it"
    if not of.node.modules_known:
        return "the report does not know all devices, so it stays"
    inside = [each for each in of.has.interfaces if in_module(each, module)]
    foreign = [each.name for each in inside if not each.ours]
    if foreign:
        return f"interface {foreign[0]} in it was made by others, so it stays"
    cabled = [each for each in inside if each.cable and not of.has.cables[each.cable.id].ours]
    return f"a cable at {cabled[0].name} was made by others, so it stays" if cabled else None


def in_module(interface: Interface, module: Module) -> bool:
    """Whether an interface goes where its module goes."""
    return interface.module is not None and interface.module.id == module.id


def uncabled(of: Of, interface: Interface) -> Change:
    """The cable of an interface that goes: NetBox would leave it hanging from the other end."""
    assert interface.cable is not None
    return Change("prune cable", "delete", "cable", of.key, interface.name, id=interface.cable.id)


def _who(module: Module) -> str:
    return module.serial or module.description or module.module_type.model or f"#{module.id}"
