"""`check`: a report as a monitoring answer."""

from __future__ import annotations

import sys
from datetime import datetime, timezone

from agent.cli.asked import Asked
from agent.cli.refused import Refused
from agent.model.report import Report
from agent.outputs.check import nagios, npd, slurm_prolog
from agent.reports import ReportError, read_report

ANSWERS = {"nagios": nagios, "npd": npd, "slurm-prolog": slurm_prolog}


def check(asked: Asked, fail_on: str | None, max_age: float | None, contract: str) -> int:
    """Print the answer; its code is the exit code."""
    if max_age is not None and not asked.report:
        raise Refused("--max-age goes with --report: a scan of now is never old")
    stale = _stale(asked.report, max_age) if asked.report else None
    report, _ = asked.reported()
    answer = ANSWERS[contract](report, **({"fail_on": fail_on} if fail_on else {}), stale=stale)
    sys.stdout.write(answer.text)
    return answer.code


def _stale(path: str, max_age: float | None) -> str | None:
    """Why the report is too old to be answered from: by when the host was seen, not by when it was read."""
    if max_age is None:
        return None
    try:
        report: Report = read_report(path)
    except ReportError as error:
        raise Refused(str(error)) from error
    seen = report.observed_at or report.generated_at
    try:
        age = (datetime.now(timezone.utc) - datetime.fromisoformat(seen.replace("Z", "+00:00"))).total_seconds()
    except (ValueError, TypeError):
        return f"the report does not say when it was made ({seen:.40})"
    return f"the report is {age:.0f} s old, more than {max_age:.0f} s" if age > max_age else None
