"""`check`: a report in the output format of a monitoring plugin."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from agent.cli.errors import CliError
from agent.cli.output import deliver_text
from agent.cli.request import build_request, load_report
from agent.model.report import Report
from agent.outputs.check import format_nagios, format_npd, format_slurm_prolog
from agent.outputs.names import format_duration

FORMATTERS = {"nagios": format_nagios, "npd": format_npd, "slurm-prolog": format_slurm_prolog}

_EARLIEST = "2020"  # reports are not as old; a clock that was never set begins in 1970


def check_host(values: Mapping[str, Any]) -> int:
    """Run `check` with the values of its parameters: print the result and return its exit code."""
    request, max_age = build_request(values), values["max_age"]
    if values["fail_on_unknown"] and values["as_"] != "slurm-prolog":
        raise CliError("--fail-on-unknown is for --as slurm-prolog: the other formats have an exit code for unknown")
    if max_age is not None and not request.report:
        raise CliError("--max-age needs --report")
    report, _ = request.make_report()
    stale = _why_stale(report, request.report, max_age) if request.report and max_age is not None else None
    options = {name: values[name] for name in ("fail_on", "fail_on_unknown") if values[name]}
    answer = FORMATTERS[values["as_"]](report, **options, stale=stale)
    deliver_text(answer.text, None)
    return answer.code


def _why_stale(report: Report, path: str, max_age: float) -> str | None:
    """Why the report is too old, by when the host was observed; None if it is not."""
    seen = report.observed_at or load_report(path).generated_at  # which is now of the one that was judged again
    try:
        age = (datetime.now(timezone.utc) - datetime.fromisoformat(seen.replace("Z", "+00:00"))).total_seconds()
    except (ValueError, TypeError):
        return f"the time of the report is not known ({seen:.40})"
    if age < -max_age or seen < _EARLIEST:  # from the future it would never be old
        return f"the report is of {seen}: a clock is, or was, wrong"
    if age <= max_age:
        return None
    return f"the report is {format_duration(age)} old, more than {format_duration(max_age)}"
