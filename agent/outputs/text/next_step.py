"""The next command to type, chosen by the verdict and the source."""

from __future__ import annotations

import shlex

from agent.model.report import Report
from agent.outputs.text.lines import Line, make_line
from agent.outputs.text.not_checked import lacks_privilege
from agent.outputs.verdict import classify_check

_STATE_DIR = "/var/lib/fabricscope"


def render_next_step(report: Report, width: int) -> list[Line]:
    """One line: the command, and what it gives; the explanation has a line of its own where both do not fit."""
    command, gives = choose_next_step(report)
    one = make_line(("Next: ", "dim"), (command, "bold"), (f"  ({gives})", "dim"))
    if sum(len(text) for text, _ in one) <= width:
        return [one]
    return [make_line(("Next: ", "dim"), (command, "bold")), make_line((f"      ({gives})", "dim"))]


def choose_next_step(report: Report) -> tuple[str, str]:
    """The command and what it gives."""
    live = report.source.kind == "live"
    loud = next((finding for finding in report.open_findings if finding.severity != "info"), None)
    if loud is not None:
        return f"fabricscope explain {loud.rule}", "why it matters, and how it is decided"
    if report.summary.verdict == "nothing_to_check":
        return "fabricscope scan --source PATH", "a capture or saved outputs of a GPU server"
    if report.summary.verdict == "unknown" and live and any(lacks_privilege(run) for run in report.probes):
        return "sudo fabricscope scan", "some evidence can only be read as root"
    again = f"fabricscope scan{_source(report)}"
    if report.summary.verdict == "unknown":
        return f"{again} --verbose", "which checks could not run, and why"
    if live and any(classify_check(check, report) in ("second sample", "baseline") for check in report.checks):
        return f"fabricscope scan --state-dir {_STATE_DIR}", "keeps counters and inventory for the next run"
    return f"{again} --output report.html", "the same as a page, with a picture"


def _source(report: Report) -> str:
    path = report.source.path
    return f" --source {shlex.quote(path)}" if path and report.source.kind != "live" else ""
