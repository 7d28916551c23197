"""A plan, or what came of it, for people and as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agent.netbox.changes import NetBoxChange, PlanNote
from agent.netbox.matching import NodeMatch
from agent.netbox.run import ApplyResult, FailedChange, SyncPlan
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

SCHEMA = "fabricscope.netbox-plan/1"
LINE_LIMIT = 12  # changes of one kind of one device; the rest is counted
_MARKS = {"create": "+", "update": "~", "delete": "-"}
_STYLES = {"create": "info", "update": "warning", "delete": "error"}


def page(plan: SyncPlan, width: int, applied: ApplyResult | None = None) -> list[Line]:
    """A section a device: what is to be done (or was done), what was refused, what only a person can settle."""
    failed = applied.failed if applied else []
    changes = applied.done if applied else plan.changes
    lines = _section("shared by all devices", None, changes, [], failed, "", width)
    for match in plan.matches:
        lines += _match(match, changes, plan.notes, failed, width)
    last = wrap_paragraph(summary(plan, applied), width, "  ", "ok" if _quiet(plan, applied) else "bold", first="")
    return [*lines[1:], BLANK, *last]


def _match(
    match: NodeMatch,
    changes: Sequence[NetBoxChange],
    notes: Sequence[PlanNote],
    failed: Sequence[FailedChange],
    width: int,
) -> list[Line]:
    title = match.label if match.label == match.reported.report else f"{match.label}  {match.reported.report}"
    if match.problem:
        return [BLANK, make_heading(title), *wrap_paragraph(match.problem, width, "    ", "error", first="  x ")]
    if match.older:
        text = f"not looked at: {match.older} is a later report of the same host"
        return [BLANK, make_heading(title), *wrap_paragraph(text, width, "    ", "dim", first="  . ")]
    if match.device:
        text = f"device {match.device.id}, found by its {'serial number' if match.by == 'serial' else 'name'}"
    else:
        text = "a new device"
    own_notes = [note for note in notes if note.device_key == match.key]
    changes = [
        msgspec.structs.replace(change, device_key=match.key) if _makes(change, match) else change for change in changes
    ]
    return _section(title, text, changes, own_notes, failed, match.key, width)


def _makes(change: NetBoxChange, match: NodeMatch) -> bool:
    """A device is made among what is shared, as others refer to it; it is given its place."""
    return change.stage == "device" and change.action == "create" and change.name == match.by_name


def _section(
    title: str,
    subtitle: str | None,
    changes: Iterable[NetBoxChange],
    notes: Sequence[PlanNote],
    failed: Sequence[FailedChange],
    key: str,
    width: int,
) -> list[Line]:
    own_changes = [change for change in changes if change.device_key == key and (key or change.stage != "device")]
    refused = [failure for failure in failed if failure.change.device_key == key]
    if not subtitle and not own_changes and not refused:
        return []
    lines = [BLANK, make_heading(title)]
    if subtitle:
        lines.append(make_line((f"  {subtitle}", "dim")))
    plain = [change for change in own_changes if not _goes_without_saying(change, own_changes)]
    for alike in _group_alike(plain):
        visible = alike if len(alike) <= LINE_LIMIT else alike[: LINE_LIMIT - 1]
        for change in visible:
            style = _STYLES[change.action]
            lines += wrap_paragraph(sentence(change), width, "      ", style, first=f"  {_MARKS[change.action]} ")
        if len(visible) < len(alike):
            lines.append(make_line((f"    and {len(alike) - len(visible)} more of {alike[0].kind}", "dim")))
    if len(plain) < len(own_changes):
        lines.append(make_line((f"    and {len(own_changes) - len(plain)} bays and addresses of these", "dim")))
    for failure in refused:
        text = f"refused: {sentence(failure.change)}: {failure.why}"
        lines += wrap_paragraph(text, width, "      ", "error", first="  x ")
    for note in notes:
        style, mark = ("warning", "!") if note.conflict else ("dim", ".")
        lines += wrap_paragraph(note.text, width, "      ", style, first=f"  {mark} ")
    if subtitle and not own_changes and not refused and not notes:
        lines.append(make_line(("  in step", "ok")))
    return lines


def _goes_without_saying(change: NetBoxChange, others: Sequence[NetBoxChange]) -> bool:
    """A bay that is made for a module, an address for a port: reported with these, in one line."""
    if change.stage == "primary MAC":
        return True
    needed = {("module bay", "create"): "module", ("MAC address", "create"): "interface"}.get(
        (change.kind, change.action)
    )
    return any(other.kind == needed and other.name == change.name and other.stage != "primary MAC" for other in others)


def _group_alike(changes: Sequence[NetBoxChange]) -> list[list[NetBoxChange]]:
    groups: dict[tuple[str, str], list[NetBoxChange]] = {}
    for change in changes:
        groups.setdefault((change.kind, change.action), []).append(change)
    return list(groups.values())


def sentence(change: NetBoxChange) -> str:
    """One change in one line, without its mark.

    >>> sentence(NetBoxChange("module", "update", "#1", "GPU 1", {}, 7, {"serial": "1"}, {"serial": "2"}))
    'module GPU 1  serial 1 -> 2'
    """
    parts = []
    for word, value in change.after.items():
        before = change.before.get(word)
        parts.append(f"{word} {before} -> {value}" if before else f"{word} {value}".strip())
    parts += [value for word, value in change.before.items() if word not in change.after and value]
    name = change.body.get("name", change.name) if change.stage == "device" else change.name
    return f"{change.kind} {name}  {', '.join(parts)}".rstrip()


def summary(plan: SyncPlan, applied: ApplyResult | None = None) -> str:
    """The last line."""
    devices = len(plan.matches)
    conflicts = sum(note.conflict for note in plan.notes)
    problems = sum(match.problem is not None for match in plan.matches)
    if applied is None:
        parts = [_count(len(plan.changes), "change")] if plan.changes else ["nothing to do"]
    else:
        parts = [f"{_count(len(applied.done), 'change')} made" if applied.done else "nothing changed"]
        parts += [f"{len(applied.failed)} refused"] if applied.failed else []
    parts += [f"{_count(conflicts, 'conflict')} to resolve by hand"] if conflicts else []
    parts += [f"{_count(problems, 'report')} without a device"] if problems else []
    return f"{_count(devices, 'report')}: {', '.join(parts)}"


def _quiet(plan: SyncPlan, applied: ApplyResult | None) -> bool:
    return applied.in_step if applied else plan.in_step


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def data(plan: SyncPlan, applied: ApplyResult | None = None) -> dict[str, Any]:
    """The same as data: `changes` of a plan, `done` and `refused` of what was applied."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "in_step": _quiet(plan, applied),
        "reports": [_row(match) for match in plan.matches],
        "notes": [
            {"device": _label(note.device_key, plan.matches), "conflict": note.conflict, "text": note.text}
            for note in plan.notes
        ],
    }
    if applied is None:
        document["changes"] = [_change(change, plan.matches) for change in plan.changes]
    else:
        document["done"] = [_change(change, plan.matches) for change in applied.done]
        document["refused"] = [
            {**_change(failure.change, plan.matches), "why": failure.why} for failure in applied.failed
        ]
        document["broken"] = applied.broken
    return document


def _row(match: NodeMatch) -> dict[str, Any]:
    return {
        "report": match.reported.report,
        "device": match.label,
        "id": match.device.id if match.device else None,
        "found_by": match.by or None,
        "new": match.new,
        "problem": match.problem,
        "later_report": match.older,
    }


def _change(change: NetBoxChange, matches: Sequence[NodeMatch]) -> dict[str, Any]:
    return {
        "device": _label(change.device_key, matches),
        "action": change.action,
        "kind": change.kind,
        "name": change.name,
        "before": change.before,
        "after": change.after,
    }


def _label(key: str, matches: Sequence[NodeMatch]) -> str | None:
    return next((match.label for match in matches if match.key == key), None) if key else None
