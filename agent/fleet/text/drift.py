"""`fleet drift` for people."""

from __future__ import annotations

from itertools import groupby

from agent.fleet.questions.drift import Drift, DriftChange
from agent.fleet.questions.drift_rows import GONE, MOVED, NEW
from agent.fleet.text.parts import count, hosts, number, wrap_item
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

_TITLES = {
    "host": "Hosts", "finding": "Findings", "NIC": "NICs", "GPU": "GPUs", "IP address": "IP addresses",
    "switch": "Switches", "switch port": "Switch ports", "hop": "Hops",
}  # fmt: skip
_NODES = ("host", "switch")  # what a change of is one of the node
_BAGS = {
    "cmdline": "kernel command line",
    "settings": "NCCL settings",
    "services": "services",
    "part_settings": "settings of GPUs and rails",
}


def page(answer: Drift, width: int = 80) -> list[Line]:
    """The whole answer."""
    with_reports = max(answer.compared_nodes - answer.silent_nodes, 0)
    compared = f"{count(with_reports, 'node')} compared since {answer.since}"
    first = f"{compared}, newest report {answer.newest}" if answer.newest else compared
    lines = wrap_paragraph(first, width, "  ", first="")
    for title, hosts_, nodes in (
        ("another machine by the same name", answer.replaced, None),
        ("reinstalled (another machine-id)", answer.reinstalled, None),
        ("new", answer.added, answer.added_nodes),
        ("no report since", answer.silent, answer.silent_nodes),
    ):
        if hosts_:
            lines += wrap_item(f"{title}: {hosts(hosts_, nodes or 0) if nodes else hosts_}", width)
    if not with_reports and not answer.changes:
        lines += wrap_paragraph(
            "no node has a report of then and one of now: nothing is compared", width, "  ", first=""
        )
    elif not answer.changes:
        lines.append(make_line(("nothing changed", "ok")))
    for subject, changes in groupby(answer.changes, lambda change: change.subject):
        lines += [BLANK, make_heading(_TITLES.get(subject, f"{subject}s"))]
        for drift_change in changes:
            lines += wrap_item(sentence(drift_change), width)
    return lines


def sentence(change: DriftChange) -> str:
    """One change, the nodes that have it, and when it was noticed."""
    who = "" if change.what == MOVED else f"{hosts(change.hosts, change.nodes)}: "
    return f"{who}{describe_change(change)}  [{format_times(change)}]"


def describe_change(change: DriftChange) -> str:
    """What changed, on how many things, and their labels where they are few."""
    labels = ", ".join(change.labels)
    if change.subject == "finding":
        times = f" on {number(change.things)} subjects" if change.things > change.nodes else ""
        return f"{labels} {change.what}{times}"
    if change.what == MOVED:
        return f"{labels}: moved from {change.old} to {change.new}"
    named = f" ({labels})" if labels else ""
    if change.what in (GONE, NEW) and change.subject not in _NODES:
        return f"{count(change.things, change.subject)} {change.what}{named}"
    many = f" on {count(change.things, change.subject)}" if change.things > 1 and change.subject not in _NODES else ""
    return f"{_describe_value(change)}{many}{named}"


def format_times(change: DriftChange) -> str:
    """When the first and the last of them were noticed."""
    return str(change.first) if change.first == change.last else f"{change.first} to {change.last}"


def _describe_value(change: DriftChange) -> str:
    if change.what in (GONE, NEW):
        return change.what
    name = _BAGS.get(change.what, change.what.replace("_", " "))
    if change.old is None or change.new is None:
        return f"other {name} than before"
    return f"{name} {change.old} -> {change.new}"
