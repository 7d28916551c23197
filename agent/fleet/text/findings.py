"""`fleet findings` for people: a table, the worst rule first; each with its parts and steps where few are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from agent.fleet.questions.findings import BandwidthLoss, FindingGroup, Findings, Share
from agent.fleet.text.parts import (
    FLEET_HISTORY,
    STYLES,
    count,
    hosts,
    name_asked,
    number,
    share,
    split_steps,
    table,
    wrap_item,
)
from agent.model.node import SWITCH_PREFIX
from agent.outputs.grouping import describe_loss
from agent.outputs.text.lines import BLANK, Line, make_line, wrap_paragraph

_NODES = 40  # letters of the nodes of one row
_CLASSES = 4  # of one rule that are named


def page(answer: Findings, width: int = 80, detail: bool = False) -> list[Line]:
    """A table of all rules; with `detail` the nodes and parts of each, and what to do."""
    if not answer.nodes and not answer.switches:
        return [make_line("no nodes")]
    asked = name_asked(answer.nodes, answer.switches)
    if not answer.findings:
        return [make_line((f"no findings on {asked}", "ok"))]
    lines = [make_line(f"{count(len(answer.findings), 'kind')} of findings on {asked}")]
    lines += wrap_item(describe_bandwidth_loss(answer.lost), width) if answer.lost else []
    if not detail:
        return [*lines, BLANK, *_table(answer.findings, width), BLANK, *_list_fleet_rules(answer.findings, width),
                make_line((_MORE, "dim"))]  # fmt: skip
    for finding in answer.findings:
        lines += [
            BLANK,
            make_line((finding.severity.upper(), STYLES.get(finding.severity, "")), "  ", (finding.rule, "head")),
        ]
        for text in sentences(finding):
            lines += wrap_item(text, width)
        if finding.by_fleet:
            lines += wrap_item(describe_origin(finding), width)
        for part in finding.parts:
            lines += wrap_paragraph(f"part: {part}", width, "    ", first="  ")
        if finding.cost_percent is not None:
            lines += wrap_item(describe_cost(finding), width)
        if finding.summary:
            lines += wrap_paragraph(f"for example: {finding.summary}", width, "    ", first="  ")
        if finding.remedy:
            steps = split_steps(finding.remedy)
            fix = "fix" if finding.findings == 1 else "fix, for example (each report has its own)"
            lines += wrap_paragraph(f"{fix}: {steps[0]}" if len(steps) == 1 else f"{fix}:", width, "    ", "dim", "  ")
            for at, step in enumerate(steps if len(steps) > 1 else (), 1):
                lines += wrap_paragraph(f"{at}. {step}", width, "       ", "dim", "    ")
    return lines


_MORE = "Parts and steps: fabricscope fleet findings RULE (or NODES)"


def _list_fleet_rules(groups: Sequence[FindingGroup], width: int) -> list[Line]:
    rules = sorted({group.rule for group in groups if group.by_fleet})
    return wrap_paragraph(f"{FLEET_HISTORY.capitalize()}: {', '.join(rules)}", width, "  ", first="") if rules else []


def _table(groups: Sequence[FindingGroup], width: int) -> list[Line]:
    rows = [
        [
            group.severity,
            group.rule,
            "most of a class" if group.of_class else hosts(group.hosts, group.nodes, _NODES).partition(" ")[0],
            number(group.nodes),
            "-" if group.cost_percent is None else f"{group.cost_percent:.0f}%",
            (group.first_seen or "-").partition("T")[0],
        ]
        for group in groups
    ]
    head = ["severity", "rule", "nodes", "count", "cost", "first seen"]
    return [_colour(line) for line in table(head, rows, width, 3)]


def _colour(line: Line) -> Line:
    """The word of severity at its begin has its colour."""
    text = line[0][0]
    word = text.strip().partition(" ")[0]
    if word not in STYLES or text[2:3].isspace():
        return line
    return make_line("  ", (word, STYLES[word]), text[2 + len(word) :])


def describe_bandwidth_loss(lost: BandwidthLoss) -> str:
    """What all faults cost together, and which of them the most: others may be graver."""
    faults = "1 fault costs" if lost.findings == 1 else f"{number(lost.findings)} faults cost"
    return (
        f"{faults} {lost.percent:.3g}% of the inter-node bandwidth of {count(lost.gpus, 'GPU')}, summed over single "
        f"nodes. The costliest is {lost.rule} on {lost.node} ({lost.label}): a job with it loses "
        f"{lost.node_percent:.0f}%."
    )


def describe_origin(group: FindingGroup) -> str:
    """Of findings that no node's report has."""
    many = "" if group.by_fleet == group.findings else f"{number(group.by_fleet)} of {number(group.findings)} "
    return f"{many}{FLEET_HISTORY}: the nodes' own reports have one sample of these counters"


def describe_cost(group: FindingGroup) -> str:
    """Of the worst of them."""
    most = "up to " if group.findings > 1 else ""
    return f"{most}{describe_loss(group.cost_percent or 0.0, 'all_reduce', group.cost_nodes or 1)}"


def count_class(one: Share) -> str:
    """How many there are of a class: "8 nodes", "8 switches"."""
    return count(one.of, "switch" if one.hardware_class.startswith(SWITCH_PREFIX) else "node")


def sentences(group: FindingGroup) -> list[str]:
    """Who has it, and of how many."""
    if group.of_class:
        return [
            f"affects the whole class: {number(one.nodes)} of {count_class(one)} ({share(one.nodes, one.of)}) of "
            f"{one.hardware_class}{f'; not {one.without}' if one.without else ''}"
            for one in group.classes
        ]
    what = f" on {', '.join(group.labels)}" if group.labels and group.labels != ["node"] else ""
    many = f" ({count(group.findings, 'finding')})" if group.findings > group.nodes else ""
    stale = f"; no recent report from {hosts(group.stale, group.nodes)}" if group.stale else ""
    return [f"{hosts(group.hosts, group.nodes)}{what}{many}: {_classes(group.classes)}{stale}"]


def _classes(shares: list[Share]) -> str:
    parts = [
        one.hardware_class if one.of == 1 else f"{number(one.nodes)} of {count_class(one)} of {one.hardware_class}"
        for one in shares[:_CLASSES]
    ]  # "1 of 1 node" states nothing: the only one of its class, or the only one that was asked about
    rest = shares[_CLASSES:]
    if rest:
        parts.append(f"{number(sum(one.nodes for one in rest))} of {count(len(rest), 'other class')}")
    return "; ".join(parts)
