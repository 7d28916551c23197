"""The page that `scan` prints: the node, its topology, findings, and what could not be checked."""

from __future__ import annotations

from agent.model.report import Report
from agent.outputs.text.findings import render_findings, render_verdict
from agent.outputs.text.gpudirect import render_gpudirect
from agent.outputs.text.header import render_header
from agent.outputs.text.lines import BLANK, Line, make_heading
from agent.outputs.text.matrix import join_side_by_side, render_gpu_matrix, render_rail_matrix
from agent.outputs.text.not_checked import render_not_checked
from agent.outputs.text.tree import render_tree


def render_page(report: Report, width: int = 80) -> list[Line]:
    """Render the report as lines of styled text, folded to `width` columns where possible."""
    lines = [*render_header(report, width), BLANK, *render_verdict(report, width)]
    drawn = render_tree(report, width)
    if drawn:
        lines += [BLANK, make_heading("Topology"), *drawn]
    lines += _render_matrices(report, width)
    for title, part in (
        ("GPUDirect RDMA", render_gpudirect(report, width)),
        ("Findings", render_findings(report, width)),
        ("Not judged", render_not_checked(report, width)),
    ):
        if part:
            lines += [BLANK, make_heading(title), *part]
    return lines


def _render_matrices(report: Report, width: int) -> list[Line]:
    """The two matrices, side by side if both fit."""
    titled: list[list[Line]] = [
        [make_heading(title), *part]
        for title, part in (
            ("GPU to GPU", render_gpu_matrix(report, width)),
            ("GPU to NIC", render_rail_matrix(report, width)),
        )
        if part
    ]
    both = join_side_by_side(titled[0], titled[1], width) if len(titled) == 2 else None
    return [BLANK, *both] if both else [line for part in titled for line in (BLANK, *part)]
