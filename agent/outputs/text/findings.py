"""The verdict, the findings with their evidence, and what could not be judged and why."""

from __future__ import annotations

from agent.model.finding import SEVERITIES, Finding
from agent.model.report import ProbeRun, Report
from agent.outputs.text.lines import BLANK, Line, line, paragraph

UNANSWERED = ("partial", "absent", "denied", "timed_out", "failed")
SUBJECTS_SHOWN = 6


def verdict(report: Report, width: int) -> list[Line]:
    """One line that a person reads first."""
    summary = report.summary
    counts = [f"{summary.counts.get(s, 0)} {s}" for s in reversed(SEVERITIES) if summary.counts.get(s)]
    style = "ok" if summary.verdict == "ok" else "warning" if summary.verdict == "unknown" else summary.verdict
    judged = sum(check.state in ("fail", "pass") for check in report.checks)
    told = f"  {', '.join(counts) or 'no findings'}  ·  {judged} of {len(report.checks)} rules judged"
    unknown = len(summary.unknown_rules)
    return [line((summary.verdict.upper(), style), told, f", {unknown} unknown" if unknown else "")]


def findings(report: Report, width: int) -> list[Line]:
    """Every finding, worst first: what, evidence, cost, mend."""
    lines: list[Line] = []
    for finding in report.findings:
        lines += [*([BLANK] if lines else []), *_finding(finding, width)]
    return lines


def _finding(finding: Finding, width: int) -> list[Line]:
    lines = [line((finding.severity.upper(), finding.severity), "  ", (finding.label, "bold"), f"  {finding.rule}")]
    lines += paragraph(finding.summary, width)
    for seen in finding.evidence:
        lines += paragraph(
            f"{seen.what}: {seen.value}  [{seen.source}]", width, indent="      ", first="    - ", style="dim"
        )
    lines += paragraph(finding.impact, width, indent="          ", first="  costs   ")
    lines += paragraph(finding.remedy, width, indent="          ", first="  remedy  ")
    if finding.absorbs:
        lines += paragraph(", ".join(finding.absorbs), width, indent="          ", first="  so too  ", style="dim")
    return lines


def not_judged(report: Report, width: int) -> list[Line]:
    """Rules that are unknown with their reasons, then the probes that could not say all, with what would help."""
    lines: list[Line] = []
    for check in report.checks:
        if check.unknown or check.state == "unknown":
            reasons: dict[str, list[str]] = {}
            for each in check.unknown_subjects:
                reasons.setdefault(each.reason, []).append(each.subject)
            for reason, subjects in reasons.items():
                lines += paragraph(f"{check.rule}: {_subjects(subjects)}{reason}", width, indent="      ", first="  ? ")
    for run in report.probes:
        if run.status in UNANSWERED and run.reason:
            lines += paragraph(_probe(run), width, indent="      ", first="  - ", style="dim")
    return lines


def _probe(run: ProbeRun) -> str:
    return f"probe {run.name} {run.status.replace('_', ' ')}: {run.reason}"


def _subjects(subjects: list[str]) -> str:
    if subjects == ["node"]:
        return ""
    shown = ", ".join(subjects[:SUBJECTS_SHOWN])
    more = len(subjects) - SUBJECTS_SHOWN
    return f"{shown}{f' and {more} more' if more > 0 else ''}: "
