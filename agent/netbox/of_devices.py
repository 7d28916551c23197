"""All differences of one device, and of what devices share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.netbox import of_cables, of_interfaces, of_modules
from agent.netbox.changes import Change, Differences, Note, Ref
from agent.netbox.current import FIELDS, TAG, CustomField, Shared
from agent.netbox.journal import entry, opened, state
from agent.netbox.of_modules import Of, type_name, type_of
from agent.outputs.inventory.fields import make_slug
from agent.outputs.inventory.objects import DesiredNode

_ABOUT = {
    "fabricscope_verdict": (
        "Fabric verdict",
        "Worst finding of the last report: ok, warning, error, critical, unknown",
    ),
    "fabricscope_findings": ("Fabric findings", "How many findings are open, and which set it is; see the journal"),
}


def differences(of: Of, shared: Shared) -> Differences:
    """Everything that is to be done about one device."""
    pairs = of_modules.pairs(of)
    ports = of_interfaces.ports(of)
    parts = [
        of_modules.differences(of, pairs),
        of_interfaces.differences(of, pairs, ports),
        of_cables.differences(of, ports, shared),
        _device(of),
        _findings(of),
    ]
    return Differences([change for part in parts for change in part.changes], [n for part in parts for n in part.notes])


def new_device(of: Of, name: str, place: Mapping[str, int]) -> Change:
    """The device itself, where it is to be made. `place`: ids of site, role and device type."""
    body = {"name": name, "serial": of.node.serial or "", "status": "active", "tags": [{"slug": TAG}], **place}
    after = {"serial": of.node.serial} if of.node.serial else {}
    return Change("device", "create", "device", "", of.key, body, after=after)


def _device(of: Of) -> Differences:
    device = of.has.device
    if device is None or device.serial or not of.node.serial:
        return Differences([], [])
    body = {"serial": of.node.serial}
    after = {"serial": of.node.serial}
    return Differences([Change("device", "update", "device", of.key, "", body, device.id, {"serial": ""}, after)], [])


def unsettled(of: Of) -> bool:
    """Whether the journal has to be read: the device does not say that it has this set of findings."""
    device = of.has.device
    return device is not None and device.custom_fields.get("fabricscope_findings") != state(of.node.findings)


def _findings(of: Of) -> Differences:
    """A journal entry where the set of findings is another, then the two fields. In this order: an interrupted run is
    seen by the field, and the journal says how far it came."""
    changes = []
    device = of.has.device
    if device is None or unsettled(of):
        due = entry(of.node.findings, opened(of.has.journal.comments if of.has.journal else None), of.node.not_judged)
        if due is not None:
            body = {
                "assigned_object_type": "dcim.device",
                "assigned_object_id": of.device,
                "kind": due.kind,
                "comments": due.comments,
                "tags": [{"slug": TAG}],
            }
            changes.append(
                Change("journal entry", "create", "journal entry", of.key, "findings", body, after={"": due.told})
            )
    wanted = {"fabricscope_verdict": of.node.verdict, "fabricscope_findings": state(of.node.findings)}
    has = device.custom_fields if device else {}
    before = {name: str(has.get(name) or "") for name, value in wanted.items() if has.get(name) != value}
    if before:
        fields = {name: wanted[name] for name in before}
        named: dict[str, Any] = {"custom_fields": fields} | ({} if device else {"id": of.device})
        needs = tuple(Ref("custom field", "", name) for name in fields) + tuple(change.ref for change in changes)
        changes.append(
            Change(
                "verdict",
                "update",
                "device",
                of.key,
                "verdict",
                named,
                device.id if device else None,
                {name.removeprefix("fabricscope_"): value for name, value in before.items()},
                {name.removeprefix("fabricscope_"): value for name, value in fields.items()},
                needs=needs,
            )
        )
    return Differences(changes, [])


def of_shared(nodes: Sequence[DesiredNode], shared: Shared, wanted: Iterable[Change]) -> Differences:
    """The tag, fields, makers and types that are missing, of those that the devices' changes need."""
    changes = [] if shared.tags else [_tag()]
    notes: list[Note] = []
    needed = {ref for change in wanted for ref in _refs(change.body)}
    for name in FIELDS:
        has = next((field for field in shared.custom_fields if field.name == name), None)
        if has is None:
            changes.append(_field(name))
        elif "dcim.device" not in has.object_types:
            changes.append(_widened(has))
    modules = {type_name(module): module for node in nodes for module in node.modules}
    makers: dict[str, str] = {}
    for name, module in sorted(modules.items()):
        kind = type_of(shared.module_types, module)
        if kind not in needed or isinstance(kind, int):
            continue
        maker = _maker(shared, module.manufacturer)
        if isinstance(maker, Ref):
            makers[module.manufacturer] = make_slug(module.manufacturer)
        body: dict[str, Any] = {
            "manufacturer": maker,
            "model": module.model,
            "part_number": module.part_number or "",
            "tags": [{"slug": TAG}],
        }
        changes.append(Change("module type", "create", "module type", "", name, body))
    for name, word in makers.items():
        changes.append(
            Change(
                "manufacturer",
                "create",
                "manufacturer",
                "",
                name,
                {"name": name, "slug": word, "tags": [{"slug": TAG}]},
            )
        )
    return Differences(changes, notes)


def _maker(shared: Shared, name: str) -> int | Ref:
    """By name, else by slug: NetBox takes neither twice."""
    named = [each for each in shared.manufacturers if (each.name or "").lower() == name.lower()]
    own = named or [each for each in shared.manufacturers if each.slug == make_slug(name)]
    return own[0].id if own else Ref("manufacturer", "", name)


def _tag() -> Change:
    body = {"name": TAG, "slug": TAG, "color": "4caf50", "description": "Made by fabricscope, and kept by it"}
    return Change("tag", "create", "tag", "", TAG, body)


def _field(name: str) -> Change:
    label, about = _ABOUT[name]
    body = {
        "name": name,
        "label": label,
        "type": "text",
        "object_types": ["dcim.device"],
        "description": about,
        "ui_editable": "no",
    }
    return Change("custom field", "create", "custom field", "", name, body)


def _widened(field: CustomField) -> Change:
    body = {"object_types": [*field.object_types, "dcim.device"]}
    return Change("custom field", "update", "custom field", "", field.name, body, field.id, after={"of": "devices"})


def _refs(value: Any) -> Iterable[Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _refs(each)
