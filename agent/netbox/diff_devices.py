"""All differences of one device, and of what devices share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.netbox import diff_interfaces, diff_modules
from agent.netbox.changes import DiffResult, NetBoxChange, ObjectRef
from agent.netbox.diff_modules import DeviceDiff, find_module_type, module_type_name
from agent.netbox.journal import make_entry, parse_open_findings, summarize_findings
from agent.netbox.state import FIELDS, TAG, CustomField, SharedState
from agent.outputs.inventory.objects import DesiredNode, make_slug

_ABOUT = {
    "fabricscope_verdict": (
        "Fabric verdict",
        "Verdict of the last report: ok, warning, error, critical, unknown, nothing_to_check",
    ),
    "fabricscope_findings": ("Fabric findings", "How many findings are open, and which set it is; see the journal"),
}


def diff_device(diff: DeviceDiff, shared: SharedState) -> DiffResult:
    """Everything that is to be done about one device."""
    pairs = diff_modules.pair_modules(diff)
    ports = diff_interfaces.pair_ports(diff)
    parts = [
        diff_modules.diff_modules(diff, pairs),
        diff_interfaces.diff_interfaces(diff, pairs, ports),
        diff_interfaces.diff_cables(diff, ports, shared),
    ]
    changes = [change for part in parts for change in part.changes] + _diff_serial(diff) + _diff_findings(diff)
    return DiffResult(changes, [note for part in parts for note in part.notes])


def create_device(diff: DeviceDiff, name: str, place: Mapping[str, int]) -> NetBoxChange:
    """The device itself, where it is to be made. `place`: ids of site, role and device type."""
    body = {"name": name, "serial": diff.node.serial or "", "status": "active", "tags": [{"slug": TAG}], **place}
    after = {"serial": diff.node.serial} if diff.node.serial else {}
    return NetBoxChange("device", "create", "", diff.key, body, after=after)


def _diff_serial(diff: DeviceDiff) -> list[NetBoxChange]:
    device = diff.current.device
    if device is None or device.serial or not diff.node.serial:
        return []
    serial = {"serial": diff.node.serial}
    return [diff.change("device", "update", "", serial, device.id, {"serial": ""}, serial)]


def has_new_findings(diff: DeviceDiff) -> bool:
    """Whether the journal has to be read: the device does not show that it has this set of findings."""
    device = diff.current.device
    return device is not None and device.custom_fields.get("fabricscope_findings") != summarize_findings(
        diff.node.findings
    )


def _diff_findings(diff: DeviceDiff) -> list[NetBoxChange]:
    """A journal entry where the set of findings is another, then the two fields. In this order: an interrupted run is
    seen by the field, and the journal states how far it came."""
    changes = []
    device = diff.current.device
    if device is None or has_new_findings(diff):
        entry = make_entry(
            diff.node.findings,
            parse_open_findings(diff.current.journal.comments if diff.current.journal else None),
            diff.node.not_judged,
        )
        if entry is not None:
            body = {
                "assigned_object_type": "dcim.device",
                "assigned_object_id": diff.device,
                "kind": entry.kind,
                "comments": entry.comments,
                "tags": [{"slug": TAG}],
            }
            changes.append(diff.change("journal entry", "create", "findings", body, after={"": entry.summary}))
    wanted = {"fabricscope_verdict": diff.node.verdict, "fabricscope_findings": summarize_findings(diff.node.findings)}
    fields_now = device.custom_fields if device else {}
    before = {name: str(fields_now.get(name) or "") for name, value in wanted.items() if fields_now.get(name) != value}
    if before:
        fields = {name: wanted[name] for name in before}
        named: dict[str, Any] = {"custom_fields": fields} | ({} if device else {"id": diff.device})
        needs = tuple(ObjectRef("custom field", "", name) for name in fields) + tuple(change.ref for change in changes)
        changes.append(
            diff.change(
                "verdict",
                "update",
                "verdict",
                named,
                device.id if device else None,
                {name.removeprefix("fabricscope_"): value for name, value in before.items()},
                {name.removeprefix("fabricscope_"): value for name, value in fields.items()},
                needs=needs,
            )
        )
    return changes


def diff_shared(
    nodes: Sequence[DesiredNode], shared: SharedState, wanted: Iterable[NetBoxChange]
) -> list[NetBoxChange]:
    """The tag, fields, makers and types that are missing, of those that the devices' changes need."""
    changes = [] if shared.tags else [_tag()]
    needed = {ref for change in wanted for ref in _refs(change.body)}
    for name in FIELDS:
        custom_field = next((field for field in shared.custom_fields if field.name == name), None)
        if custom_field is None:
            changes.append(_make_field(name))
        elif "dcim.device" not in custom_field.object_types:
            changes.append(_widen(custom_field))
    modules = {module_type_name(module): module for node in nodes for module in node.modules}
    makers: dict[str, str] = {}
    for name, module in sorted(modules.items()):
        kind = find_module_type(shared.module_types, module)
        if kind not in needed or isinstance(kind, int):
            continue
        maker = _maker(shared, module.manufacturer)
        if isinstance(maker, ObjectRef):
            makers[module.manufacturer] = make_slug(module.manufacturer)
        body: dict[str, Any] = {
            "manufacturer": maker,
            "model": module.model,
            "part_number": module.part_number or "",
            "tags": [{"slug": TAG}],
        }
        changes.append(NetBoxChange("module type", "create", "", name, body))
    for name, word in makers.items():
        changes.append(
            NetBoxChange("manufacturer", "create", "", name, {"name": name, "slug": word, "tags": [{"slug": TAG}]})
        )
    return changes


def _maker(shared: SharedState, name: str) -> int | ObjectRef:
    """By name, else by slug: NetBox takes neither twice."""
    named = [row for row in shared.manufacturers if (row.name or "").lower() == name.lower()]
    candidates = named or [row for row in shared.manufacturers if row.slug == make_slug(name)]
    return candidates[0].id if candidates else ObjectRef("manufacturer", "", name)


def _tag() -> NetBoxChange:
    body = {"name": TAG, "slug": TAG, "color": "4caf50", "description": "Created and maintained by fabricscope"}
    return NetBoxChange("tag", "create", "", TAG, body)


def _make_field(name: str) -> NetBoxChange:
    label, about = _ABOUT[name]
    body = {
        "name": name,
        "label": label,
        "type": "text",
        "object_types": ["dcim.device"],
        "description": about,
        "ui_editable": "no",
    }
    return NetBoxChange("custom field", "create", "", name, body)


def _widen(field: CustomField) -> NetBoxChange:
    body = {"object_types": [*field.object_types, "dcim.device"]}
    return NetBoxChange("custom field", "update", "", field.name, body, field.id, after={"of": "devices"})


def _refs(value: Any) -> Iterable[ObjectRef]:
    if isinstance(value, ObjectRef):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _refs(item)
