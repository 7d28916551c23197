"""A report in the output formats of monitoring: one line, an exit code, and for Nagios one line per finding.

The contracts differ: monitoring plugins have four states and details, node-problem-detector reads 80 characters and
three states, a Slurm prolog drains the node on any exit but 0.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.model.finding import SEVERITIES, Check, Finding, describe_silence
from agent.model.labels import group_by_key, name_first
from agent.model.report import Report
from agent.outputs.formatting import clean_line
from agent.outputs.names import describe_location
from agent.outputs.text.lines import clean
from agent.outputs.verdict import count_checks, count_findings, describe_verdict, verdict_title

OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3
NPD_OK, NPD_PROBLEM, NPD_UNKNOWN = 0, 1, 2
NAMED_RULES = 5  # rules listed for one reason
NPD_LIMIT = 80  # characters: node-problem-detector's max_output_length


class CheckResult(NamedTuple):
    """The output and the exit code."""

    text: str
    code: int


def format_nagios(report: Report, fail_on: str = "warning", stale: str | None = None) -> CheckResult:
    """Format for monitoring plugins: 0 ok, 1 warning, 2 error or critical, 3 unknown."""
    counted = _failing_findings(report, fail_on)
    code = _exit_code(report, counted, stale)
    word = ("OK", "WARNING", "CRITICAL", "UNKNOWN")[code]
    if code == OK and report.summary.verdict == "nothing_to_check":
        word = verdict_title(report)
    counts = report.summary.counts
    perfdata = " ".join(f"{severity}={counts.get(severity, 0)};;;0" for severity in reversed(SEVERITIES))
    perfdata += f" silenced={report.summary.silenced};;;0" if report.summary.silenced else ""
    lines = [f"FABRICSCOPE {word} - {_headline(report, counted, stale)}"]
    for finding in report.findings:
        where = ", ".join(describe_location(finding.location))
        place = f" ({where})" if where else ""
        head = f"SILENCED {finding.severity}" if finding.silenced else finding.severity.upper()
        why = f"; {describe_silence(finding.silenced)}" if finding.silenced else ""
        lines.append(f"{head} {finding.rule} {finding.label}: {finding.summary}{place}{why}")
    if not stale and code == UNKNOWN:
        lines += [
            f"UNKNOWN {name_first(rules, NAMED_RULES, spare=1)}: {reason}"
            for reason, rules in _group_by_reason(report).items()
        ]
    texts = [clean(line).replace("|", "/") for line in lines]  # what is behind a bar is performance data
    texts[0] += f" | {perfdata}"
    return CheckResult("".join(f"{text}\n" for text in texts), code)


def format_npd(report: Report, fail_on: str = "warning", stale: str | None = None) -> CheckResult:
    """Format for node-problem-detector's custom plugins: 0 ok, 1 problem, anything else unknown; one short line."""
    counted = _draining_findings(report, fail_on)
    code = {OK: NPD_OK, UNKNOWN: NPD_UNKNOWN}.get(_exit_code(report, counted, stale), NPD_PROBLEM)
    return CheckResult(clean_line(_headline(report, counted, stale), NPD_LIMIT) + "\n", code)


def format_slurm_prolog(
    report: Report, fail_on: str = "critical", stale: str | None = None, fail_on_unknown: bool = False
) -> CheckResult:
    """Format for a Slurm prolog: any exit code but 0 drains the node.

    Unknown and stale exit 0 with a message, unless `fail_on_unknown`.
    """
    counted = _draining_findings(report, fail_on)
    unknown = stale or _describe_unknown(report)
    if fail_on_unknown and unknown and (stale or not counted):
        return CheckResult(clean(unknown) + "\n", 1)
    text = clean(_headline(report, counted, stale)) + "\n"
    return CheckResult(text, 1 if counted and not stale else 0)


def _describe_unknown(report: Report) -> str | None:
    """Which essential checks had no data; None where all had."""
    rules = report.summary.unknown_rules[: report.summary.unknown_essential]
    return f"essential checks without data: {name_first(rules, NAMED_RULES, spare=1)}" if rules else None


def _failing_findings(report: Report, fail_on: str) -> list[Finding]:
    floor = SEVERITIES.index(fail_on)
    return [f for f in report.open_findings if SEVERITIES.index(f.severity) >= floor]


def _draining_findings(report: Report, fail_on: str) -> list[Finding]:
    """Of those that fail the check, the ones that a machine may act on: none of low confidence."""
    return [finding for finding in _failing_findings(report, fail_on) if finding.confidence != "low"]


def _exit_code(report: Report, counted: list[Finding], stale: str | None) -> int:
    if stale:
        return UNKNOWN
    if counted:
        return WARNING if all(f.severity == "warning" for f in counted) else CRITICAL
    return UNKNOWN if report.summary.verdict == "unknown" else OK


def _headline(report: Report, counted: list[Finding], stale: str | None) -> str:
    if stale:
        return stale
    if counted:
        first, more = counted[0], len(counted) - 1
        return f"{first.rule} {first.label}: {first.summary}" + (f" (and {more} more)" if more else "")
    if report.summary.verdict in ("unknown", "nothing_to_check"):
        return describe_verdict(report)
    less = count_findings({severity: report.summary.counts.get(severity, 0) for severity in SEVERITIES[1:]})
    silenced = f", {report.summary.silenced} silenced" if report.summary.silenced else ""
    return f"{f'{less}, below --fail-on' if less else 'no problems found'}{silenced}; {count_checks(report)}"


def _group_by_reason(report: Report) -> dict[str, list[str]]:
    """Rules by the reason for unknown; those that keep the verdict from ok first."""
    order = {rule: place for place, rule in enumerate(report.summary.unknown_rules)}
    unknown = sorted((c for c in report.checks if c.unknown), key=lambda c: order.get(c.rule, len(order)))
    return group_by_key((check.reason or _first_reason(check), check.rule) for check in unknown)


def _first_reason(check: Check) -> str:
    first = next(iter(check.unknown_subjects), None)
    return f"{first.subject}: {first.reason}" if first else "no reason given"
