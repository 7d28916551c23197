"""The verdict with one line per finding, and each finding with evidence, impact and remedy."""

from __future__ import annotations

from collections.abc import Sequence

from agent.model.finding import SEVERITIES, Finding
from agent.model.report import Report
from agent.outputs.names import DisplayNames
from agent.outputs.text.lines import BLANK, Line, Span, line_length, make_line, wrap_paragraph

DIGEST = 8  # findings listed at the top of the page
EVIDENCE = 12
NAMED_RULES = 4  # rules listed that keep the verdict from ok


def render_verdict(report: Report, width: int) -> list[Line]:
    """The verdict section at the top of the page."""
    summary = report.summary
    counts = [f"{summary.counts.get(s, 0)} {s}" for s in reversed(SEVERITIES) if summary.counts.get(s)]
    style = summary.verdict if summary.verdict != "unknown" else "warning"
    title = (summary.verdict.upper(), style), f"  {', '.join(counts) or 'no findings'}"
    lines = _fit_lines(
        [*title, f"  ·  {count_checks(report)}"], [make_line(*title), make_line(f"  {count_checks(report)}")], width
    )
    if summary.verdict == "unknown":
        rules = summary.unknown_rules
        which = (
            ", ".join(rules)
            if len(rules) <= NAMED_RULES
            else f"{len(rules)} rules, essential ones among them (at the end)"
        )
        lines += wrap_paragraph(f"not called ok: could not judge {which}", width)
    loud = [finding for finding in report.findings if finding.severity != "info"]
    for finding in loud[:DIGEST]:
        lines += wrap_paragraph(f"{finding.label}: {finding.summary}", width, indent="      ", first="  ! ")
    if len(loud) > DIGEST:
        lines.append(make_line(f"  and {len(loud) - DIGEST} more, below"))
    return lines


def render_findings(report: Report, width: int) -> list[Line]:
    """Every finding, worst first: summary, evidence, impact, remedy."""
    lines: list[Line] = []
    names = DisplayNames(report)
    for finding in report.findings:
        lines += [*([BLANK] if lines else []), *_render_finding(finding, names, width)]
    return lines


def count_checks(report: Report) -> str:
    """How many rules were evaluated, and how many were not."""
    states = [check.state for check in report.checks]
    parts = [f"{sum(state in ('fail', 'pass') for state in states)} of {len(states)} rules judged"]
    for word, text in (("unknown", "unknown"), ("not_applicable", "not applicable"), ("disabled", "disabled")):
        parts += [f"{states.count(word)} {text}"] if word in states else []
    return ", ".join(parts)


def _render_finding(finding: Finding, names: DisplayNames, width: int) -> list[Line]:
    place = names.short(finding.subject.partition(":")[2])
    where = f" ({place})" if place and place not in finding.label and "+" not in place else ""
    sure = "" if finding.confidence == "high" else f"  confidence {finding.confidence}"
    head = (finding.severity.upper(), finding.severity)
    title: list[Span | str] = [head, "  ", (finding.label, "bold"), where]
    rule = f"{finding.rule}{sure}"
    lines = _fit_lines([*title, f"  {rule}"], [make_line(*title), make_line(f"  {rule}")], width)
    lines += wrap_paragraph(finding.summary, width)
    for seen in finding.evidence[:EVIDENCE]:
        lines += wrap_paragraph(
            f"{seen.what}: {seen.value}  [{seen.source}]", width, indent="      ", first="    - ", style="dim"
        )
    if len(finding.evidence) > EVIDENCE:
        lines.append(make_line((f"    - and {len(finding.evidence) - EVIDENCE} more (--format json)", "dim")))
    lines += wrap_paragraph(finding.impact, width, indent="           ", first="  impact   ")
    lines += wrap_paragraph(finding.remedy, width, indent="           ", first="  remedy   ")
    if finding.absorbs:
        explained = ", ".join(describe_absorbed(absorbed, names) for absorbed in finding.absorbs)
        lines += wrap_paragraph(explained, width, indent="           ", first="  explains ", style="dim")
    return lines


def _fit_lines(one: Sequence[Span | str], two: list[Line], width: int) -> list[Line]:
    """One line if it fits, otherwise two."""
    whole = make_line(*one)
    return [whole] if line_length(whole) <= width else two


def describe_absorbed(text: str, names: DisplayNames) -> str:
    """Describe "rule subject", with the subject's display name."""
    rule, _, subject = text.partition(" ")
    return f"{rule} of {names.subject(subject)}" if subject else rule
