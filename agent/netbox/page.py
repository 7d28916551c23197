"""A plan, or what came of it, for people and as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agent.netbox.changes import Change, Note
from agent.netbox.matching import Match
from agent.netbox.run import Applied, Plan
from agent.netbox.sending import Failed
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

SCHEMA = "fabricscope.netbox-plan/1"
SHOWN = 12  # changes of one kind of one device; the rest is counted
_MARKS = {"create": "+", "update": "~", "delete": "-"}
_STYLES = {"create": "info", "update": "warning", "delete": "error"}


def page(plan: Plan, width: int, applied: Applied | None = None) -> list[Line]:
    """A section a device: what is to be done (or was done), what was refused, what only a person can settle."""
    failed = applied.failed if applied else []
    changes = applied.done if applied else plan.changes
    lines = _section("shared by all devices", None, changes, [], failed, "", width)
    for match in plan.matches:
        lines += _match(match, changes, plan.notes, failed, width)
    last = wrap_paragraph(summary(plan, applied), width, "  ", "ok" if _quiet(plan, applied) else "bold", first="")
    return [*lines[1:], BLANK, *last]


def _match(
    match: Match, changes: Sequence[Change], notes: Sequence[Note], failed: Sequence[Failed], width: int
) -> list[Line]:
    title = match.label if match.label == match.given.report else f"{match.label}  {match.given.report}"
    if match.problem:
        return [BLANK, make_heading(title), *wrap_paragraph(match.problem, width, "    ", "error", first="  x ")]
    if match.older:
        told = f"not looked at: {match.older} is a later report of the same host"
        return [BLANK, make_heading(title), *wrap_paragraph(told, width, "    ", "dim", first="  . ")]
    if match.device:
        told = f"device {match.device.id}, found by its {'serial number' if match.by == 'serial' else 'name'}"
    else:
        told = "a new device"
    own = [note for note in notes if note.of == match.key]
    changes = [msgspec.structs.replace(each, of=match.key) if _makes(each, match) else each for each in changes]
    return _section(title, told, changes, own, failed, match.key, width)


def _makes(change: Change, match: Match) -> bool:
    """A device is made among what is shared, as others refer to it; it is told where it belongs."""
    return change.stage == "device" and change.action == "create" and change.name == match.by_name


def _section(
    title: str,
    told: str | None,
    changes: Iterable[Change],
    notes: Sequence[Note],
    failed: Sequence[Failed],
    key: str,
    width: int,
) -> list[Line]:
    own = [change for change in changes if change.of == key and (key or change.stage != "device")]
    bad = [each for each in failed if each.change.of == key]
    if not told and not own and not bad:
        return []
    lines = [BLANK, make_heading(title)]
    if told:
        lines.append(make_line((f"  {told}", "dim")))
    plain = [change for change in own if not _goes_without_saying(change, own)]
    for alike in _alike(plain):
        shown = alike if len(alike) <= SHOWN else alike[: SHOWN - 1]
        for change in shown:
            style = _STYLES[change.action]
            lines += wrap_paragraph(sentence(change), width, "      ", style, first=f"  {_MARKS[change.action]} ")
        if len(shown) < len(alike):
            lines.append(make_line((f"    and {len(alike) - len(shown)} more of {alike[0].kind}", "dim")))
    if len(plain) < len(own):
        lines.append(make_line((f"    and {len(own) - len(plain)} bays and addresses of these", "dim")))
    for each in bad:
        text = f"refused: {sentence(each.change)}: {each.why}"
        lines += wrap_paragraph(text, width, "      ", "error", first="  x ")
    for note in notes:
        style, mark = ("warning", "!") if note.conflict else ("dim", ".")
        lines += wrap_paragraph(note.text, width, "      ", style, first=f"  {mark} ")
    if told and not own and not bad and not notes:
        lines.append(make_line(("  in step", "ok")))
    return lines


def _goes_without_saying(change: Change, others: Sequence[Change]) -> bool:
    """A bay that is made for a module, an address for a port: told with these, in one line."""
    if change.stage == "primary MAC":
        return True
    needed = {("module bay", "create"): "module", ("MAC address", "create"): "interface"}.get(
        (change.kind, change.action)
    )
    return any(each.kind == needed and each.name == change.name and each.stage != "primary MAC" for each in others)


def _alike(changes: Sequence[Change]) -> list[list[Change]]:
    found: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        found.setdefault((change.kind, change.action), []).append(change)
    return list(found.values())


def sentence(change: Change) -> str:
    """One change in one line, without its mark.

    >>> sentence(Change("module", "update", "module", "#1", "GPU 1", {}, 7, {"serial": "1"}, {"serial": "2"}))
    'module GPU 1  serial 1 -> 2'
    """
    told = []
    for word, value in change.after.items():
        before = change.before.get(word)
        told.append(f"{word} {before} -> {value}" if before else f"{word} {value}".strip())
    told += [value for word, value in change.before.items() if word not in change.after and value]
    name = change.body.get("name", change.name) if change.stage == "device" else change.name
    return f"{change.kind} {name}  {', '.join(told)}".rstrip()


def summary(plan: Plan, applied: Applied | None = None) -> str:
    """The last line."""
    devices = len(plan.matches)
    conflicts = sum(note.conflict for note in plan.notes)
    problems = sum(match.problem is not None for match in plan.matches)
    if applied is None:
        parts = [_count(len(plan.changes), "change")] if plan.changes else ["nothing to do"]
    else:
        parts = [f"{_count(len(applied.done), 'change')} made" if applied.done else "nothing changed"]
        parts += [f"{len(applied.failed)} refused"] if applied.failed else []
    parts += [f"{_count(conflicts, 'conflict')} for a person to settle"] if conflicts else []
    parts += [f"{_count(problems, 'report')} without a device"] if problems else []
    return f"{_count(devices, 'report')}: {', '.join(parts)}"


def _quiet(plan: Plan, applied: Applied | None) -> bool:
    return applied.in_step if applied else plan.in_step


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def data(plan: Plan, applied: Applied | None = None) -> dict[str, Any]:
    """The same as data: `changes` of a plan, `done` and `refused` of what was applied."""
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "in_step": _quiet(plan, applied),
        "reports": [_row(match) for match in plan.matches],
        "notes": [
            {"device": _label(note.of, plan.matches), "conflict": note.conflict, "text": note.text}
            for note in plan.notes
        ],
    }
    if applied is None:
        made["changes"] = [_change(change, plan.matches) for change in plan.changes]
    else:
        made["done"] = [_change(change, plan.matches) for change in applied.done]
        made["refused"] = [{**_change(each.change, plan.matches), "why": each.why} for each in applied.failed]
        made["broken"] = applied.broken
    return made


def _row(match: Match) -> dict[str, Any]:
    return {
        "report": match.given.report,
        "device": match.label,
        "id": match.device.id if match.device else None,
        "found_by": match.by or None,
        "new": match.new,
        "problem": match.problem,
        "later_report": match.older,
    }


def _change(change: Change, matches: Sequence[Match]) -> dict[str, Any]:
    return {
        "device": _label(change.of, matches),
        "action": change.action,
        "kind": change.kind,
        "name": change.name,
        "before": change.before,
        "after": change.after,
    }


def _label(key: str, matches: Sequence[Match]) -> str | None:
    return next((match.label for match in matches if match.key == key), None) if key else None
