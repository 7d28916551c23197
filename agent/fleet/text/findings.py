"""`fleet findings` for people: the worst rule first, and what is a matter of a class after what is a node's."""

from __future__ import annotations

from agent.fleet.questions.findings import FindingGroup, Findings, Lost, Share
from agent.fleet.text.parts import STYLES, count, hosts, number, share, split_steps, told
from agent.outputs.text.lines import BLANK, Line, make_line, wrap_paragraph

_CLASSES = 4  # of one rule that are named


def page(found: Findings, width: int = 80) -> list[Line]:
    """The whole answer."""
    if not found.nodes:
        return [make_line("no nodes")]
    if not found.findings:
        return [make_line((f"no findings on {count(found.nodes, 'node')}", "ok"))]
    lines = [make_line(f"{count(len(found.findings), 'answer')} on {count(found.nodes, 'node')}")]
    lines += told(describe_lost(found.lost), width) if found.lost else []
    for each in found.findings:
        lines += [BLANK, make_line((each.severity.upper(), STYLES.get(each.severity, "")), "  ", (each.rule, "head"))]
        for text in sentences(each):
            lines += told(text, width)
        for part in each.parts:
            lines += wrap_paragraph(f"part: {part}", width, "    ", first="  ")
        if each.cost_percent is not None:
            lines += told(describe_cost(each), width)
        if each.summary:
            lines += wrap_paragraph(f"for example: {each.summary}", width, "    ", first="  ")
        if each.remedy:
            steps = split_steps(each.remedy)
            fix = "fix" if each.findings == 1 else "fix, for example (each report has its own)"
            lines += wrap_paragraph(f"{fix}: {steps[0]}" if len(steps) == 1 else f"{fix}:", width, "    ", "dim", "  ")
            for at, step in enumerate(steps if len(steps) > 1 else (), 1):
                lines += wrap_paragraph(f"{at}. {step}", width, "       ", "dim", "    ")
    return lines


def describe_lost(lost: Lost) -> str:
    """What all faults cost together, and which repair gives back most."""
    faults = "This fault costs" if lost.findings == 1 else f"These {number(lost.findings)} faults cost"
    return (
        f"{faults} {lost.percent:.3g}% of the inter-node bandwidth of {count(lost.gpus, 'GPU')}, each node taken by "
        f"itself. Repair first: {lost.rule} on {lost.node} ({lost.label}), {lost.node_percent:.0f}% of a job with it."
    )


def describe_cost(each: FindingGroup) -> str:
    """Of the worst of them."""
    most = "up to " if each.findings > 1 else ""
    where = "of jobs on several nodes" if (each.cost_nodes or 1) > 1 else "inside the node"
    return f"costs {most}{each.cost_percent:.0f}% of all-reduce {where}, by NCCL's model"


def sentences(each: FindingGroup) -> list[str]:
    """Who has it, and of how many."""
    if each.of_class:
        return [
            f"affects the whole class: {number(one.nodes)} of {count(one.of, 'node')} ({share(one.nodes, one.of)}) of "
            f"{one.hardware_class}{f'; not {one.without}' if one.without else ''}"
            for one in each.classes
        ]
    what = f" on {', '.join(each.labels)}" if each.labels and each.labels != ["node"] else ""
    many = f" ({count(each.findings, 'finding')})" if each.findings > each.nodes else ""
    stale = f"; no recent report from {hosts(each.stale, each.nodes)}" if each.stale else ""
    return [f"{hosts(each.hosts, each.nodes)}{what}{many}: {_classes(each.classes)}{stale}"]


def _classes(shares: list[Share]) -> str:
    parts = [f"{number(one.nodes)} of {count(one.of, 'node')} of {one.hardware_class}" for one in shares[:_CLASSES]]
    rest = shares[_CLASSES:]
    if rest:
        parts.append(f"{number(sum(one.nodes for one in rest))} of {count(len(rest), 'other class')}")
    return "; ".join(parts)
