"""`fleet duplicates` for people."""

from __future__ import annotations

from agent.fleet.questions.duplicates import NAME, Duplicate, Duplicates
from agent.fleet.text.parts import count, hosts, number, wrap_item
from agent.model.labels import group_by_key
from agent.outputs.text.lines import Line, make_line, wrap_paragraph

_LABELLED = 6
_ONE_BY_ONE = 3  # values of one kind on the same nodes; more are one line


def page(answer: Duplicates, width: int = 80) -> list[Line]:
    """The whole answer."""
    many = len(answer.duplicates)
    first = f"{count(many, 'identifier')} on more than one node or machine" if many else "no duplicate identifiers"
    lines = [make_line((first, "" if many else "ok"))]
    by_nodes = group_by_key(((one.kind, one.hosts, one.note), one) for one in answer.duplicates)
    for alike in by_nodes.values():
        lines += [line for text in _describe_alike(alike) for line in wrap_item(text, width)]
    for note in answer.not_judged:
        lines += wrap_paragraph(note, width, "  ", "warning", first="! ")
    return lines


def _describe_alike(duplicates: list[Duplicate]) -> list[str]:
    """A sentence for each value; one for many of a kind that the same nodes have."""
    first = duplicates[0]
    if len(duplicates) <= _ONE_BY_ONE or first.kind == NAME:
        return [sentence(duplicate) for duplicate in duplicates]
    values = f"{number(len(duplicates))} values such as {first.value}"
    return [f"{first.kind}, {values}: {hosts(first.hosts, first.nodes)}{f'; {first.note}' if first.note else ''}"]


def sentence(duplicate: Duplicate) -> str:
    """One value and the nodes that have it."""
    if duplicate.kind == NAME:
        return f"{duplicate.kind} {duplicate.value}: {duplicate.note}"
    if duplicate.nodes <= _LABELLED and any(holder.label for holder in duplicate.holders):
        who = ", ".join(f"{holder.node} {holder.label or ''}".strip() for holder in duplicate.holders)
    else:
        who = hosts(duplicate.hosts, duplicate.nodes)
    return f"{duplicate.kind} {duplicate.value}: {who}{f'; {duplicate.note}' if duplicate.note else ''}"
