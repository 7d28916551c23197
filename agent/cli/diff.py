"""`diff`: the changes between two reports or sources."""

from __future__ import annotations

from msgspec.structs import replace

from agent.cli.output import choose_format, deliver_json, show
from agent.cli.request import ReportRequest, load_report
from agent.diagnose import evaluate_report
from agent.diff import diff as compare
from agent.model.report import Report
from agent.reports import is_report
from agent.version import VERSION

SAME, DIFFERS = 0, 1


def run_diff(
    old: str, new: str, request: ReportRequest, form_option: str | None, output: str | None, no_color: bool
) -> int:
    """Print the changes and return the exit code."""
    form = form_option or choose_format(output)
    difference = compare(_load_or_scan(old, request), _load_or_scan(new, request))
    if form == "json":
        deliver_json(difference, output, sort_keys=True)
    else:
        from agent.diff.page import page

        show(lambda width: page(difference, width), output, no_color)
    return DIFFERS if difference.changes else SAME


def _load_or_scan(path: str, request: ReportRequest) -> Report:
    """Load a finished report, judged again if another version wrote it or the request states how; or scan the
    source."""
    if not is_report(path):
        return replace(request, source=path).make_report()[0]
    report = load_report(path)
    if report.generator.version == VERSION and request.config is None and request.profile == "auto":
        return report
    return evaluate_report(report, request.configuration(), request.profile)
