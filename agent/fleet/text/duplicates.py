"""`fleet duplicates` for people."""

from __future__ import annotations

from agent.fleet.questions.duplicates import NAME, Duplicate, Duplicates
from agent.fleet.text.parts import count, hosts, told
from agent.outputs.text.lines import Line, make_line, wrap_paragraph

_LABELLED = 6


def page(found: Duplicates, width: int = 80) -> list[Line]:
    """The whole answer."""
    many = len(found.duplicates)
    first = (
        f"{count(many, 'identifier')} that more than one node or machine has"
        if many
        else "nothing is on two nodes that should be on one"
    )
    lines = [make_line((first, "" if many else "ok"))]
    for each in found.duplicates:
        lines += told(sentence(each), width)
    for note in found.not_judged:
        lines += wrap_paragraph(note, width, "  ", "warning", first="! ")
    return lines


def sentence(each: Duplicate) -> str:
    """One value and who has it."""
    if each.kind == NAME:
        return f"{each.kind} {each.value}: {each.note}"
    if each.nodes <= _LABELLED and any(holder.label for holder in each.holders):
        who = ", ".join(f"{holder.node} {holder.label or ''}".strip() for holder in each.holders)
    else:
        who = hosts(each.hosts, each.nodes)
    return f"{each.kind} {each.value}: {who}{f'; {each.note}' if each.note else ''}"
