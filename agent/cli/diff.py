"""`diff`: two reports or sources, and what changed between them."""

from __future__ import annotations

import msgspec

from agent.cli.asked import Asked
from agent.cli.delivery import deliver, form_of, show
from agent.cli.refused import Refused
from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.diff import diff as compare
from agent.model.report import Report
from agent.reports import ReportError, is_report, read_report
from agent.version import VERSION

SAME, DIFFERS = 0, 1


def diff(old: str, new: str, asked: Asked, wanted: str | None, output: str | None, no_color: bool) -> int:
    """Print what changed; the exit code tells whether anything did."""
    form = wanted or form_of(output)
    made = compare(_report(old, asked), _report(new, asked))
    if form == "json":
        deliver(msgspec.json.format(msgspec.json.encode(made, order="deterministic"), indent=2) + b"\n", output)
    else:
        from agent.diff.page import page

        show(lambda width: page(made, width), output, no_color)
    return DIFFERS if made.changes else SAME


def _report(path: str, asked: Asked) -> Report:
    """A finished report as it stands, judged again where another version wrote it; else a scan of what is there."""
    if not is_report(path):
        return asked._replace(source=path).reported()[0]
    try:
        report = read_report(path)
    except ReportError as error:
        raise Refused(str(error)) from error
    return report if report.generator.version == VERSION else evaluate_report(report, Configuration())
