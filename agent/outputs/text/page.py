"""The page that `scan` prints: the verdict, findings, the node, its topology, and the next command."""

from __future__ import annotations

import shlex
from enum import Enum

from agent.model.report import Report
from agent.model.topology import Topology
from agent.outputs.text.findings import render_findings, render_verdict
from agent.outputs.text.header import render_facts, render_hosts, render_title
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line
from agent.outputs.text.not_checked import count_not_checked, lacks_privilege, render_fragment, render_not_checked
from agent.outputs.verdict import classify_check

_STATE_DIR = "/var/lib/fabricscope"


def render_next_step(report: Report, width: int, program: str = "fabricscope") -> list[Line]:
    """One line: the command, and what it gives; the explanation has a line of its own where both do not fit."""
    command, gives = choose_next_step(report, program)
    one = make_line(("Next: ", "dim"), (command, "bold"), (f"  ({gives})", "dim"))
    if sum(len(text) for text, _ in one) <= width:
        return [one]
    return [make_line(("Next: ", "dim"), (command, "bold")), make_line((f"      ({gives})", "dim"))]


def choose_next_step(report: Report, program: str = "fabricscope") -> tuple[str, str]:
    """The command and what it gives. `program`: as it was started."""
    live = report.source.kind == "live"
    loud = next((finding for finding in report.open_findings if finding.severity != "info"), None)
    if loud is not None:
        return f"{program} explain {loud.rule}", "why it matters, and how to confirm"
    if any(file.read_by == "job" for file in report.source.files or ()):
        return f"{program} job {shlex.quote(report.source.path or '-')}", "why the job failed or was slow"
    if report.summary.verdict == "nothing_to_check":
        return f"{program} scan --source PATH", "a capture or saved outputs of a GPU server"
    if report.summary.verdict == "unknown" and live and any(lacks_privilege(run) for run in report.probes):
        return f"sudo {program} scan", "some evidence can only be read as root"
    again = f"{program} scan{_source(report)}"
    if report.summary.verdict == "unknown":
        return f"{again} --verbose", "which checks could not run, and why"
    if live and any(classify_check(check) in ("second sample", "baseline") for check in report.checks):
        return f"{program} scan --state-dir {_STATE_DIR}", "keeps counters and inventory for the next run"
    return f"{again} --output report.html", "the same as a page, with a picture"


def _source(report: Report) -> str:
    path = report.source.path
    return f" --source {shlex.quote(path)}" if path and report.source.kind != "live" else ""


class Detail(str, Enum):
    """How much of a report the text shows."""

    BRIEF = "brief"  # the verdict, and one line per finding
    TOPOLOGY = "topology"  # the node and its topology, without findings
    NORMAL = "normal"
    VERBOSE = "verbose"  # all evidence, and every check that could not run


def render_page(
    report: Report, width: int = 80, detail: Detail = Detail.NORMAL, program: str = "fabricscope"
) -> list[Line]:
    """Render the report as lines of styled text, folded to `width` columns where possible.

    `program`: how the next command begins.
    """
    hosts = render_hosts(report, width)
    is_clear = all(host.name for host in report.source.hosts or ())  # each finding names its host
    lines = [*render_title(report, width), *(() if is_clear else hosts)]
    if detail == Detail.TOPOLOGY:
        return [*lines, *render_facts(report, width), *_render_topology(report, width)]
    if detail == Detail.BRIEF:
        return [
            *lines,
            *render_verdict(report, width, is_brief=True),
            *_add_section("", render_next_step(report, width, program)),
        ]
    everything = detail == Detail.VERBOSE
    lines += render_verdict(report, width)
    fragment = render_fragment(report, width)
    lines += fragment
    lines += _add_section("", render_findings(report, width, everything))
    lines += _add_section("Hosts", hosts) if is_clear else []
    lines += _add_section("Host", render_facts(report, width))
    lines += _render_topology(report, width)
    if everything:
        lines += _add_section("Could not check", render_not_checked(report, width))
    elif not fragment:  # what to save next settles them
        lines += _add_section("", count_not_checked(report, width))
    return lines + _add_section("", render_next_step(report, width, program))


def _render_topology(report: Report, width: int) -> list[Line]:
    """Tree, matrices with their legend, GPUDirect. What draws each is imported where there is something to draw."""
    lines: list[Line] = []
    if report.topology != Topology():
        from agent.outputs.text.tree import render_tree

        lines += _add_section("Topology", render_tree(report, width))
    if report.topology.paths:
        from agent.outputs.text.matrix import render_legend

        matrices = _render_matrices(report, width)
        lines += [*matrices, *(render_legend(report, width) if matrices else ())]
    if report.gpudirect:
        from agent.outputs.text.gpudirect import render_gpudirect

        lines += _add_section("GPUDirect RDMA", render_gpudirect(report, width))
    return lines


def _add_section(title: str, part: list[Line]) -> list[Line]:
    """A blank line, the heading and the part; nothing for an empty part."""
    if not part:
        return []
    return [BLANK, *([make_heading(title)] if title else []), *part]


def _render_matrices(report: Report, width: int) -> list[Line]:
    """The two matrices, side by side if both fit."""
    from agent.outputs.text.matrix import join_side_by_side, render_gpu_matrix, render_rail_matrix

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
