"""Differences of modules: which module of NetBox each device of the node is, and what is to be done about the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from agent.netbox.changes import DiffResult, NetBoxChange, ObjectRef, PlanNote, order_moves
from agent.netbox.state import TAG, ModuleBay, ModuleType, NetBoxInterface, NetBoxModule, NetBoxState
from agent.outputs.inventory import objects

TEMPORARY_BAY = "fabricscope moving"  # a bay for one of them while two modules change places
A = TypeVar("A")
B = TypeVar("B")


class ModulePair(NamedTuple):
    """A device of the node and the module that represents it in NetBox; None: there is none yet."""

    wanted: objects.InventoryModule
    module: NetBoxModule | None


class DeviceDiff(NamedTuple):
    """What the differences of one device are made of."""

    key: str
    node: objects.DesiredNode
    current: NetBoxState
    types: Sequence[ModuleType]
    prune: bool

    @property
    def device(self) -> int | ObjectRef:
        """The device, or the one that is to be made."""
        return self.current.device.id if self.current.device else ObjectRef("device", "", self.key)

    def change(self, stage: str, action: str, name: str, *what: Any, **more: Any) -> NetBoxChange:
        """A change of it. `what` and `more`: what a NetBoxChange has after its name."""
        return NetBoxChange(stage, action, self.key, name, *what, **more)


def pair_modules(diff: DeviceDiff) -> list[ModulePair]:
    """By serial number, then by the other identity (UUID, GUID), then by place."""
    bays = {bay.id: bay for bay in diff.current.bays}
    left, right = list(diff.node.modules), list(diff.current.modules)
    matches: dict[int, NetBoxModule] = {}

    def match(a: Callable[[objects.InventoryModule], Hashable], b: Callable[[NetBoxModule], Hashable]) -> None:
        for wanted, module in _match_unique(left, a, right, b):
            matches[id(wanted)] = module
            left.remove(wanted)
            right.remove(module)

    match(lambda wanted: (wanted.serial or "").lower(), lambda module: module.serial.lower())
    match(lambda wanted: wanted.description, lambda module: module.ours and module.description)
    match(
        lambda wanted: wanted.bay,
        lambda module: bays[module.module_bay.id].name if module.module_bay.id in bays else "",
    )
    return [ModulePair(wanted, matches.get(id(wanted))) for wanted in diff.node.modules]


def _match_unique(
    left: Sequence[A], a: Callable[[A], Hashable], right: Sequence[B], b: Callable[[B], Hashable]
) -> list[tuple[A, B]]:
    """Those of both sides that state the same, where no one else of their side does; boards may share a serial."""
    ours, theirs = Counter(a(item) for item in left), Counter(b(item) for item in right)
    by_value = {b(item): item for item in right}
    keys = [(item, a(item)) for item in left]
    return [(item, by_value[key]) for item, key in keys if key and ours[key] == 1 and theirs[key] == 1]


def diff_modules(diff: DeviceDiff, pairs: Sequence[ModulePair]) -> DiffResult:
    """What makes NetBox's modules those of the node."""
    changes: list[NetBoxChange] = []
    notes: list[PlanNote] = []
    moves: dict[int, str] = {}
    bays = bays_by_name(diff)
    by_id = {bay.id: bay for bay in diff.current.bays}
    for pair in pairs:
        if pair.module is None:
            changes += _create_module(diff, pair.wanted, bays.get(pair.wanted.bay))
            continue
        changes += _update_module(diff, pair, notes)
        stands = by_id.get(pair.module.module_bay.id)
        if stands is not None and stands.ours and stands.name != pair.wanted.bay:
            moves[pair.module.id] = pair.wanted.bay
    gone = _find_missing(diff, pairs)
    pruned = {change.id for change in gone.changes if change.kind == "module"}
    moved, held_bays = _move_modules(diff, moves, pruned, notes)
    changes = [item for item in changes if (item.stage, item.name) not in held_bays]
    return DiffResult(changes + gone.changes + moved, notes + gone.notes)


def bays_by_name(diff: DeviceDiff) -> dict[str, ModuleBay]:
    """Bays by name. NetBox does not keep a device from having two of one name: the first that holds something."""
    bays: dict[str, ModuleBay] = {}
    for bay in sorted(diff.current.bays, key=lambda bay: (bay.installed_module is None, bay.id)):
        bays.setdefault(bay.name, bay)
    return bays


def _create_module(diff: DeviceDiff, wanted: objects.InventoryModule, bay: ModuleBay | None) -> list[NetBoxChange]:
    place = ObjectRef("module bay", diff.key, wanted.bay)
    body: dict[str, Any] = {
        "device": diff.device,
        "module_bay": place,
        "module_type": find_module_type(diff.types, wanted),
        "status": "active",
        "serial": wanted.serial or "",
        "description": wanted.description or "",
        "tags": [{"slug": TAG}],
        "replicate_components": False,  # ports come from the node, not from a template
    }
    after = {"model": f"{wanted.manufacturer} {wanted.model}"} | ({"serial": wanted.serial} if wanted.serial else {})
    change = diff.change("module", "create", wanted.bay, body, after=after)
    return [change] if bay is not None else [_create_bay(diff, wanted.bay, wanted.position), change]


def _create_bay(diff: DeviceDiff, name: str, position: str | None = None) -> NetBoxChange:
    body = {"device": diff.device, "name": name, "position": position or "", "tags": [{"slug": TAG}]}
    return diff.change("module bay", "create", name, body)


def find_module_type(types: Sequence[ModuleType], wanted: objects.InventoryModule) -> int | ObjectRef:
    """The module type of a device: one of its maker with that model, or that part number."""
    same = [
        module_type
        for module_type in types
        if (module_type.manufacturer.name or "").lower() == wanted.manufacturer.lower()
    ]
    candidates = [module_type for module_type in same if module_type.model == wanted.model] or [
        module_type for module_type in same if module_type.part_number == wanted.model
    ]
    return candidates[0].id if candidates else ObjectRef("module type", "", module_type_name(wanted))


def module_type_name(wanted: objects.InventoryModule) -> str:
    """What people, and references, call a module type."""
    return f"{wanted.manufacturer} {wanted.model}"


def _update_module(diff: DeviceDiff, pair: ModulePair, notes: list[PlanNote]) -> list[NetBoxChange]:
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
        notes.append(PlanNote(diff.key, f"{text}, and the node has {wanted.serial} there", conflict=True))
        return []
    if wanted.serial and (not module.serial or (other and (module.ours or wanted.board_serial))):
        body["serial"], before["serial"], after["serial"] = wanted.serial, module.serial, wanted.serial
    kind = find_module_type(diff.types, wanted)
    known = next((module_type for module_type in diff.types if module_type.id == module.module_type.id), None)
    retyped = module.ours and wanted.certain and known is not None and known.ours  # people's own types are better
    if kind != module.module_type.id and (retyped or ("serial" in body and other)):
        body["module_type"], after["model"] = kind, module_type_name(wanted)
        before["model"] = module.module_type.model or "another model"
    if module.ours and wanted.description and wanted.description != module.description:
        body["description"] = after["identity"] = wanted.description
        before["identity"] = module.description
    if not body:
        return []
    return [diff.change("module", "update", wanted.bay, body, module.id, before, after)]


def _move_modules(
    diff: DeviceDiff, moves: Mapping[int, str], pruned: Container[int | None], notes: list[PlanNote]
) -> tuple[list[NetBoxChange], set[tuple[str, str]]]:
    """Modules that are in another bay now; and what cannot be made, as one that cannot move is in its place."""
    names = {bay.id: bay.name for bay in diff.current.bays}
    places = {
        module.id: names[module.module_bay.id]
        for module in diff.current.modules
        if module.module_bay.id in names and module.id not in pruned
    }
    order = order_moves(places, moves, TEMPORARY_BAY)
    positions = {wanted.bay: wanted.position for wanted in diff.node.modules}
    new = dict.fromkeys(place for _, place in order.steps if place not in names.values())
    changes = [_create_bay(diff, place, positions.get(place)) for place in new]
    for step, (module, place) in enumerate(order.steps):
        body = {"module_bay": ObjectRef("module bay", diff.key, place)}
        after = {"bay": place}
        before = {"bay": places[module]}
        changes.append(diff.change("move module", "update", moves[module], body, module, before, after, step))
    for module in order.stuck:
        text = f"module {moves[module]} cannot move there: NetBox has one in that bay that the node does not have"
        notes.append(PlanNote(diff.key, text, conflict=True))
    return changes, {("module", places[module]) for module in order.stuck}


def _find_missing(diff: DeviceDiff, pairs: Sequence[ModulePair]) -> DiffResult:
    """Modules and bays of ours that the node does not have: reported, and taken away only where that was asked for."""
    stays = {pair.module.id for pair in pairs if pair.module}
    names = {pair.wanted.bay for pair in pairs}
    changes: list[NetBoxChange] = []
    notes: list[PlanNote] = []
    bays = {bay.id: bay for bay in diff.current.bays}
    chosen = bays_by_name(diff)
    kept_bays: set[int] = {
        module.module_bay.id for module in diff.current.modules if module.id in stays or not module.ours
    }
    for module in diff.current.modules:
        if module.id in stays or not module.ours:
            continue
        bay = bays.get(module.module_bay.id)
        name = bay.name if bay else f"#{module.module_bay.id}"
        why = _why_keep(diff, module)
        if why:
            notes.append(PlanNote(diff.key, f"module {name} ({_describe_module(module)}) is not in the report; {why}"))
            kept_bays.add(module.module_bay.id)
            continue
        changes += [
            delete_cable(diff, interface)
            for interface in diff.current.interfaces
            if interface.cable and is_in_module(interface, module)
        ]
        changes.append(
            diff.change("prune module", "delete", name, id=module.id, before={"module": _describe_module(module)})
        )
    if diff.prune and diff.node.modules_known:
        for bay in diff.current.bays:
            used = bay.name in names and chosen[bay.name].id == bay.id
            if bay.ours and bay.id not in kept_bays and not used:
                inside = tuple(change.ref for change in changes if change.name == bay.name)
                changes.append(diff.change("prune module bay", "delete", bay.name, id=bay.id, needs=inside))
    return DiffResult(changes, notes)


def _why_keep(diff: DeviceDiff, module: NetBoxModule) -> str | None:
    """Why a module of ours that the report does not have is not deleted; None: nothing speaks against it."""
    if not diff.prune:
        return "--prune removes it"
    if not diff.node.modules_known:
        return "the report does not list all devices, so it stays"
    inside = [interface for interface in diff.current.interfaces if is_in_module(interface, module)]
    foreign = [interface.name for interface in inside if not interface.ours]
    if foreign:
        return f"interface {foreign[0]} in it was made by others, so it stays"
    cabled = [interface for interface in inside if interface.cable and not diff.current.cables[interface.cable.id].ours]
    return f"a cable at {cabled[0].name} was made by others, so it stays" if cabled else None


def is_in_module(interface: NetBoxInterface, module: NetBoxModule) -> bool:
    """Whether an interface goes where its module goes."""
    return interface.module is not None and interface.module.id == module.id


def delete_cable(diff: DeviceDiff, interface: NetBoxInterface) -> NetBoxChange:
    """The cable of an interface that goes: NetBox would leave it hanging from the other end."""
    assert interface.cable is not None
    return diff.change("prune cable", "delete", interface.name, id=interface.cable.id)


def _describe_module(module: NetBoxModule) -> str:
    return module.serial or module.description or module.module_type.model or f"#{module.id}"
