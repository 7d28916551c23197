"""The verdict with the findings in a line each, and further down each finding with evidence, cost and remedy."""

from __future__ import annotations

from collections.abc import Sequence

from agent.model.finding import SEVERITIES, Finding
from agent.model.report import Report
from agent.outputs.names import Names
from agent.outputs.text.lines import BLANK, Line, Span, length, line, paragraph

DIGEST = 8  # findings that the top of the page names
EVIDENCE = 12
NAMED = 4  # rules that keep a verdict from ok, by name


def verdict(report: Report, width: int) -> list[Line]:
    """What a person reads first."""
    summary = report.summary
    counts = [f"{summary.counts.get(s, 0)} {s}" for s in reversed(SEVERITIES) if summary.counts.get(s)]
    style = summary.verdict if summary.verdict != "unknown" else "warning"
    told = (summary.verdict.upper(), style), f"  {', '.join(counts) or 'no findings'}"
    lines = _fitting([*told, f"  ·  {judged(report)}"], [line(*told), line(f"  {judged(report)}")], width)
    if summary.verdict == "unknown":
        rules = summary.unknown_rules
        which = (
            ", ".join(rules) if len(rules) <= NAMED else f"{len(rules)} rules, essential ones among them (at the end)"
        )
        lines += paragraph(f"not called ok: could not judge {which}", width)
    loud = [finding for finding in report.findings if finding.severity != "info"]
    for finding in loud[:DIGEST]:
        lines += paragraph(f"{finding.label}: {finding.summary}", width, indent="      ", first="  ! ")
    if len(loud) > DIGEST:
        lines.append(line(f"  and {len(loud) - DIGEST} more, below"))
    return lines


def findings(report: Report, width: int) -> list[Line]:
    """Every finding, worst first: what, evidence, cost, mend."""
    lines: list[Line] = []
    names = Names(report)
    for finding in report.findings:
        lines += [*([BLANK] if lines else []), *_finding(finding, names, width)]
    return lines


def judged(report: Report) -> str:
    """How many rules were judged, and how many were not."""
    states = [check.state for check in report.checks]
    told = [f"{sum(state in ('fail', 'pass') for state in states)} of {len(states)} rules judged"]
    for word, text in (("unknown", "unknown"), ("not_applicable", "not applicable"), ("disabled", "disabled")):
        told += [f"{states.count(word)} {text}"] if word in states else []
    return ", ".join(told)


def _finding(finding: Finding, names: Names, width: int) -> list[Line]:
    place = names.short(finding.subject.partition(":")[2])
    where = f" ({place})" if place and place not in finding.label and "+" not in place else ""
    sure = "" if finding.confidence == "high" else f"  confidence {finding.confidence}"
    head = (finding.severity.upper(), finding.severity)
    told: list[Span | str] = [head, "  ", (finding.label, "bold"), where]
    rule = f"{finding.rule}{sure}"
    lines = _fitting([*told, f"  {rule}"], [line(*told), line(f"  {rule}")], width)
    lines += paragraph(finding.summary, width)
    for seen in finding.evidence[:EVIDENCE]:
        lines += paragraph(
            f"{seen.what}: {seen.value}  [{seen.source}]", width, indent="      ", first="    - ", style="dim"
        )
    if len(finding.evidence) > EVIDENCE:
        lines.append(line((f"    - and {len(finding.evidence) - EVIDENCE} more (--format json)", "dim")))
    lines += paragraph(finding.impact, width, indent="           ", first="  impact   ")
    lines += paragraph(finding.remedy, width, indent="           ", first="  remedy   ")
    if finding.absorbs:
        explained = ", ".join(absorbed(each, names) for each in finding.absorbs)
        lines += paragraph(explained, width, indent="           ", first="  explains ", style="dim")
    return lines


def _fitting(one: Sequence[Span | str], two: list[Line], width: int) -> list[Line]:
    """One line where it fits, else two."""
    whole = line(*one)
    return [whole] if length(whole) <= width else two


def absorbed(text: str, names: Names) -> str:
    """ "rule subject" with the subject as people call it."""
    rule, _, subject = text.partition(" ")
    return f"{rule} of {names.subject(subject)}" if subject else rule
