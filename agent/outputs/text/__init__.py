"""The page that `scan` prints: what the node is, how it is wired, what is wrong, what could not be judged."""

from __future__ import annotations

from agent.model.report import Report
from agent.outputs.text.findings import findings, not_judged, verdict
from agent.outputs.text.header import header
from agent.outputs.text.lines import BLANK, Line, heading
from agent.outputs.text.matrix import gpu_matrix, rail_matrix
from agent.outputs.text.tree import tree


def page(report: Report, width: int = 80) -> list[Line]:
    """The whole report for people, as lines of styled text at most `width` columns wide where it can be folded."""
    lines = [*header(report, width), BLANK, *verdict(report, width)]
    for title, part in (
        ("Topology", tree(report, width)),
        ("GPU to GPU", gpu_matrix(report, width)),
        ("GPU to NIC", rail_matrix(report, width)),
        ("Findings", findings(report, width)),
        ("Not judged", not_judged(report, width)),
    ):
        if part:
            lines += [BLANK, heading(title), *part]
    return lines
