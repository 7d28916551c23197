"""`fleet outliers` for people: by hardware class, an answer a line."""

from __future__ import annotations

from itertools import groupby

from agent.fleet.questions.bags import ABSENT
from agent.fleet.questions.odd import Mixed, Outlier
from agent.fleet.questions.outliers import Outliers
from agent.fleet.words.pieces import count, hosts, number, share, told
from agent.outputs.text.lines import BLANK, Line, make_heading, wrap_paragraph

_LABELS = 4


def page(found: Outliers, width: int = 80) -> list[Line]:
    """The whole answer."""
    compared = f"{count(found.compared_nodes, 'node')} of {count(len(found.classes), 'hardware class')} compared"
    answers = f"{count(len(found.outliers), 'answer')}" if found.outliers else "no outliers"
    first = (
        f"{compared}: {answers}" if found.compared_nodes else "no node has enough others of its class to compare with"
    )
    lines = wrap_paragraph(first, width, "  ", first="")
    for name, each in groupby(found.outliers, lambda outlier: outlier.hardware_class):
        lines += [BLANK, *_class(name, found.classes.get(name), width)]
        for outlier in each:
            lines += told(sentence(outlier), width)
    mixed = sorted(found.mixed, key=lambda each: each.hardware_class)
    if mixed:
        lines += [BLANK, make_heading("No majority value, outliers not computed")]
        for group in mixed:
            lines += told(mixture(group), width)
    if found.too_few:
        alone = ", ".join(f"{name} ({number(nodes)})" for name, nodes in found.too_few.items())
        text = f"Too few nodes to have anything usual: {alone}"
        lines += [BLANK, *wrap_paragraph(text, width, "  ", "dim", first="")]
    return lines


def sentence(outlier: Outlier) -> str:
    """One answer without its class."""
    by = f" ({outlier.by})" if outlier.by else ""
    parts = [f"{hosts(outlier.hosts, outlier.nodes)}: {_has(outlier)}{by}{_where(outlier)}; {_usually(outlier)}"]
    if outlier.also:
        parts.append(f"with it: {'; '.join(outlier.also)}")
    if outlier.common:
        parts.append(f"in common: {'; '.join(outlier.common)}")
    if outlier.stale:
        parts.append(f"no recent report from {hosts(outlier.stale, outlier.nodes)}")
    return ". ".join(parts)


def mixture(group: Mixed) -> str:
    """One group without a usual value."""
    values = ", ".join(f"{value} on {share(each, group.of)}" for value, each in group.values)
    places = f" of {group.places[0]}" if len(group.places) == 1 else ""
    return f"{group.what}{places}: {values} of {count(group.of, group.one)} of {group.hardware_class}"


def _has(outlier: Outlier) -> str:
    if outlier.attribute in ("cmdline", "settings"):
        if outlier.value == ABSENT:
            return f"{outlier.usual} is missing from {outlier.what}"
        return f"{outlier.what} has {outlier.value}"
    if outlier.attribute == "services":
        return f"service {outlier.value.replace('=', ' is ', 1)}"
    if outlier.attribute == "probe-status":
        return f"probe {', '.join(outlier.places)} ended as {outlier.value}"
    return f"{outlier.what} {outlier.value}"


def _where(outlier: Outlier) -> str:
    if outlier.attribute in ("probe-status", "probe-seconds") or outlier.one == "node":
        return ""
    if outlier.things == 1 and outlier.labels:
        rail = f"{outlier.places[0]}, " if outlier.one == "rail" else ""
        return f" on {rail}{outlier.labels[0]}"
    per_node = f" ({', '.join(outlier.labels)})" if 0 < len(outlier.labels) <= _LABELS else ""
    return f" on {count(outlier.things, outlier.one)}{per_node}"


def _usually(outlier: Outlier) -> str:
    of = f"{number(outlier.usual_count)} of {count(outlier.of, outlier.one)}"
    percent = share(outlier.usual_count, outlier.of)
    if outlier.attribute in ("cmdline", "settings"):
        if outlier.value == ABSENT:
            return f"{of} have it ({percent})"
        if outlier.usual == ABSENT:
            return f"{of} do not have this option ({percent})"
    usual = outlier.usual.partition("=")[2] if outlier.attribute == "services" else outlier.usual
    board = outlier.places[0] if outlier.attribute.startswith("nic-") and len(outlier.places) == 1 else ""
    return f"usually {usual} ({of}{f' with board {board}' if board.startswith('MT_') else ''}, {percent})"


def _class(name: str, nodes: int | None, width: int) -> list[Line]:
    size = f" ({count(nodes, 'node')})" if nodes else ""
    return wrap_paragraph(f"{name}{size}", width, "  ", "head", first="")
