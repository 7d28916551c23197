"""`fleet duplicates` for people."""

from __future__ import annotations

from agent.fleet.questions.duplicates import NAME, Duplicate, Duplicates
from agent.fleet.text.parts import count, hosts, wrap_item
from agent.outputs.text.lines import Line, make_line, wrap_paragraph

_LABELLED = 6


def page(answer: Duplicates, width: int = 80) -> list[Line]:
    """The whole answer."""
    many = len(answer.duplicates)
    first = f"{count(many, 'identifier')} on more than one node or machine" if many else "no duplicate identifiers"
    lines = [make_line((first, "" if many else "ok"))]
    for duplicate in answer.duplicates:
        lines += wrap_item(sentence(duplicate), width)
    for note in answer.not_judged:
        lines += wrap_paragraph(note, width, "  ", "warning", first="! ")
    return lines


def sentence(duplicate: Duplicate) -> str:
    """One value and the nodes that have it."""
    if duplicate.kind == NAME:
        return f"{duplicate.kind} {duplicate.value}: {duplicate.note}"
    if duplicate.nodes <= _LABELLED and any(holder.label for holder in duplicate.holders):
        who = ", ".join(f"{holder.node} {holder.label or ''}".strip() for holder in duplicate.holders)
    else:
        who = hosts(duplicate.hosts, duplicate.nodes)
    return f"{duplicate.kind} {duplicate.value}: {who}{f'; {duplicate.note}' if duplicate.note else ''}"
