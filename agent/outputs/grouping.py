"""Findings of one rule and cause as one block, and equal lines of evidence as one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from agent.model.finding import Evidence, Finding, worst_first
from agent.model.labels import compress_names, group_names, name_first
from agent.outputs.names import DisplayNames

_WORD = re.compile(r"[0-9a-fA-F]{4,8}(?::[0-9a-fA-F]{2,4}){1,2}\.[0-7]|[\w@](?:[\w.:@-]*[\w@])?")
_NUMBERED = re.compile(r"[A-Za-z]+ ?(\d+)")
_MANY = 3  # lines that differ in one name only, from this number on, are one line
_NAMED = 4  # names that are listed where they form no range


class FindingBlock(NamedTuple):
    """Findings of one rule, severity and fix, in the order of the report."""

    findings: tuple[Finding, ...]
    label: str  # "GPU2", "mlx5_0-3"
    summary: str  # the first, where `same_summary`
    same_summary: bool
    same_kind: bool = True  # what the summaries begin with, numbers aside

    @property
    def first(self) -> Finding:
        """The finding that speaks for all."""
        return self.findings[0]


def group_findings(findings: Sequence[Finding], names: DisplayNames) -> list[FindingBlock]:
    """The blocks, worst first."""
    blocks: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        own = _own_names(finding, names)
        remedy = _mask_number(_mask(finding.remedy, own), finding.label)
        texts = remedy, _mask(finding.impact, own), describe_cost(finding)
        key = finding.rule, finding.severity, finding.confidence, *texts
        blocks.setdefault(key, []).append(finding)
    grouped = [_make_block(members, names) for members in blocks.values()]
    return sorted(grouped, key=lambda block: worst_first(block.first))


def describe_cost(finding: Finding) -> str:
    """What it costs a job, by the model of `recommend`; empty where there is no figure."""
    cost = finding.cost
    if cost is None:
        return ""
    return describe_loss(cost.percent, cost.collective, cost.nodes, cost.gbyte_s)


def describe_loss(percent: float, collective: str, nodes: int, gbyte_s: float | None = None) -> str:
    """The bandwidth that jobs lose: of one wording in `scan`, `recommend` and the fleet."""
    where = "inside the node" if nodes == 1 else f"in every job on {nodes} nodes with this one"
    figure = f" ({gbyte_s:.0f} GB/s)" if gbyte_s is not None else ""
    return f"{percent:.0f}% of {collective.replace('_', '-')} bandwidth{figure} lost {where}"


def _make_block(findings: list[Finding], names: DisplayNames) -> FindingBlock:
    first = findings[0]
    if len(findings) == 1:
        return FindingBlock((first,), first.label, first.summary, True)
    labels = [finding.label.partition(" (")[0] for finding in findings]
    if all(label.endswith("/1") for label in labels):
        labels = [label[:-2] for label in labels]
    summaries = {_mask(finding.summary, _own_names(finding, names)) for finding in findings}
    kinds = {re.sub(r"\d+", "#", summary.partition(": ")[0]) for summary in summaries if ": " in summary}
    return FindingBlock(tuple(findings), compress_names(labels), first.summary, len(summaries) == 1, len(kinds) < 2)


def _own_names(finding: Finding, names: DisplayNames) -> set[str]:
    """The names of a finding's own device: label, address, interface."""
    place = finding.subject.partition(":")[2].partition("/")[0]
    words = {*_WORD.findall(finding.label), place, names.short(place), names.labels.get(place, "")}
    return {word for word in words if any(c.isdigit() for c in word) and len(word) > 1}


def _mask(text: str, own: set[str]) -> str:
    """The text with a finding's own names replaced."""
    for name in sorted(own, key=len, reverse=True):
        text = text.replace(name, "*")
    return text


def _mask_number(remedy: str, label: str) -> str:
    """Also the number in its label, where it follows an option.

    >>> _mask_number("1. Reset it: nvidia-smi -r -i 1. If it stays, drain the node.", "GPU1")
    '1. Reset it: nvidia-smi -r -i *. If it stays, drain the node.'
    """
    number = _NUMBERED.fullmatch(label)
    return re.sub(rf"(\s-[a-z]+ ){number[1]}\b", r"\1*", remedy) if number else remedy


def join_evidence(rows: Sequence[Evidence]) -> list[Evidence]:
    """Evidence, with lines that differ in one name only as one: `state of mlx5_0-7`."""
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for row in dict.fromkeys((row.what, row.value, row.source) for row in rows):
        evidence = Evidence(what=row[0], value=row[1], source=row[2])
        key = re.sub(r"\d+", "#", _WORD.sub(_hide_number, row[0])), row[1], _WORD.sub(_hide_number, row[2])
        groups.setdefault(key, []).append(evidence)
    joined: list[Evidence] = []
    for members in groups.values():
        one = _join(members) if len(members) >= _MANY else None
        joined += [one] if one else members
    return joined


def _hide_number(match: re.Match[str]) -> str:
    return "#" if any(c.isdigit() for c in match[0]) else match[0]


def _join(rows: list[Evidence]) -> Evidence | None:
    """One line for all; None where they differ in more than one place."""
    words = [re.split(r"(\s+)", row.what) for row in rows]
    if len({len(parts) for parts in words}) > 1:
        return None
    differ = [k for k in range(len(words[0])) if len({parts[k] for parts in words}) > 1]
    if len(differ) > 1:
        return None
    what = list(words[0])
    for k in differ:
        what[k] = _shorten(dict.fromkeys(parts[k] for parts in words))
    more = len({row.source for row in rows}) - 1
    source = rows[0].source + (f" and {more} more like it" if more else "")
    return Evidence(what="".join(what), value=rows[0].value, source=source)


def _shorten(names: dict[str, None]) -> str:
    """`mlx5_0-7` where the names form a range, else the first few."""
    stripped = [name.rstrip(",:;") for name in names]
    groups = group_names(stripped)
    return ", ".join(groups) if len(groups) <= _NAMED else name_first(stripped, _NAMED)
