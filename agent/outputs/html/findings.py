"""Findings as cards: what is wrong on which part, its impact, how to confirm it, how to fix it, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.model.finding import Finding
from agent.model.report import Report
from agent.outputs.html.elements import Child, el
from agent.outputs.html.rule_panels import RuleLinks
from agent.outputs.names import DisplayNames, compress_names

UNLINKED = ("node", "pair")  # kinds of subjects without a row in the device table
OPEN_EVIDENCE = 3  # findings up to this number show their evidence at once


def render_findings(report: Report, rules: RuleLinks) -> Iterator[Element]:
    """The section: findings from warning on, worst first; notes are folded."""
    names = DisplayNames(report)
    blocks = group_findings(report)
    loud = [block for block in blocks if block[0].severity != "info"]
    notes = [block for block in blocks if block[0].severity == "info"]
    yield el("h2", "Findings", id="findings")
    if not loud:
        yield el("p", _describe_none(report))
    for block in loud:
        yield _render_block(block, names, rules, len(loud) <= OPEN_EVIDENCE)
    if notes:
        title = f"{len(notes)} note{'s' if len(notes) > 1 else ''}"
        cards = [_render_block(block, names, rules, False) for block in notes]
        yield el("details", el("summary", title), *cards, class_="notes")


def group_findings(report: Report) -> list[list[Finding]]:
    """Findings of one rule, severity and text are one block, where the first of them stands."""
    blocks: dict[tuple[str, str, str, str, str], list[Finding]] = {}
    for f in report.findings:
        blocks.setdefault((f.rule, f.severity, f.summary, f.impact, f.remedy), []).append(f)
    return list(blocks.values())


def _describe_none(report: Report) -> str:
    verdict = report.summary.verdict
    if verdict == "unknown":
        return "None among the checks that could run."
    return "Nothing to check on this host." if verdict == "nothing_to_check" else "No problems found."


def _render_block(block: list[Finding], names: DisplayNames, rules: RuleLinks, show_evidence: bool) -> Element:
    first = block[0]
    sure = f"confidence {first.confidence}" if first.confidence != "high" else ""
    head = el(
        "header",
        el("span", first.severity, class_=f"badge {first.severity}"),
        *_render_subjects(block, names),
        el("span", sure, class_="dim") if sure else None,
        rules.link(first.rule),
    )
    facts: list[tuple[str, Element]] = []
    if first.impact:
        facts.append(("Impact", el("p", first.impact)))
    facts.append(("Fix", el("p", first.remedy)))
    if first.absorbs:
        facts.append(("Also explains", el("p", *_render_absorbed(first, names, rules))))
    card = el(
        "article",
        head,
        el("p", first.summary, class_="what"),
        el("dl", *[cell for name, part in facts for cell in (el("dt", name), el("dd", part))]),
        class_=f"finding {first.severity}",
        id=f"f-{first.fingerprint}",
    )
    evidence = _render_evidence(block)
    if evidence is not None:
        if show_evidence:
            evidence.set("open", "open")
        card.append(evidence)
    return card


def _render_subjects(block: list[Finding], names: DisplayNames) -> list[Child]:
    parts: list[Child] = []
    for finding in block:
        kind, _, which = finding.subject.partition(":")
        key = which.partition("/")[0]
        place = names.short(key)
        label = el("a", finding.label, href=f"#d-{key}") if kind not in UNLINKED else el("strong", finding.label)
        parts.append(label)
        if kind not in UNLINKED and place and place not in finding.label:
            parts.append(el("span", place, class_="dim"))
    return parts


def _render_absorbed(finding: Finding, names: DisplayNames, rules: RuleLinks) -> list[Child]:
    labels: dict[str, list[str]] = {}
    for text in finding.absorbs:
        rule, _, subject = text.partition(" ")
        labels.setdefault(rule, []).append(names.subject(subject) if subject else "")
    parts: list[Child] = []
    for rule, subjects in labels.items():
        on = compress_names(subject for subject in subjects if subject not in ("", "node"))
        parts += ["; " if parts else "", rules.link(rule), f" of {on}" if on else ""]
    return parts


def _render_evidence(block: list[Finding]) -> Element | None:
    rows = [
        el("tr", el("td", seen.what), el("td", seen.value, class_="mono"), el("td", seen.source, class_="mono dim"))
        for finding in block
        for seen in finding.evidence
    ]
    if not rows:
        return None
    head = el("thead", el("tr", *[el("th", title, scope="col") for title in ("Observed", "Value", "Source")]))
    table = el("div", el("table", head, el("tbody", *rows)), class_="scroll")
    return el("details", el("summary", f"Evidence ({len(rows)})"), table, class_="evidence")
