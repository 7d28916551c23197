"""The text page that `scan` prints: the node, its topology, findings, and what could not be checked.

Lines and styles belong here; colours and the width of a terminal do not: they are in agent/outputs/terminal.py.
"""

from __future__ import annotations

from agent.model.report import Report
from agent.outputs.text.findings import findings, verdict
from agent.outputs.text.gpudirect import gpudirect
from agent.outputs.text.header import header
from agent.outputs.text.lines import BLANK, Line, heading
from agent.outputs.text.matrix import beside, gpu_matrix, rail_matrix
from agent.outputs.text.tree import tree
from agent.outputs.text.unjudged import not_judged


def page(report: Report, width: int = 80) -> list[Line]:
    """The whole report for people, as lines of styled text at most `width` columns wide where it can be folded."""
    lines = [*header(report, width), BLANK, *verdict(report, width)]
    drawn = tree(report, width)
    if drawn:
        lines += [BLANK, heading("Topology"), *drawn]
    lines += _matrices(report, width)
    for title, part in (
        ("GPUDirect RDMA", gpudirect(report, width)),
        ("Findings", findings(report, width)),
        ("Not judged", not_judged(report, width)),
    ):
        if part:
            lines += [BLANK, heading(title), *part]
    return lines


def _matrices(report: Report, width: int) -> list[Line]:
    """Side by side where both fit."""
    titled: list[list[Line]] = [
        [heading(title), *part]
        for title, part in (("GPU to GPU", gpu_matrix(report, width)), ("GPU to NIC", rail_matrix(report, width)))
        if part
    ]
    both = beside(titled[0], titled[1], width) if len(titled) == 2 else None
    return [BLANK, *both] if both else [each for part in titled for each in (BLANK, *part)]
