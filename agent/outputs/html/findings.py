"""Findings as cards: what is wrong on which part, its impact, how to confirm it, how to fix it, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.model.finding import Finding, Step, describe_silence, describe_step_cost
from agent.model.report import Report
from agent.outputs.grouping import FindingBlock, describe_cost, group_findings, join_evidence
from agent.outputs.html.coverage import RuleLinks, render_command, render_inline
from agent.outputs.html.elements import Child, el
from agent.outputs.names import DisplayNames, begin_sentence
from agent.outputs.text.findings import OVERVIEW, describe_block, join_absorbed

UNLINKED = ("node", "pair")  # kinds of subjects without a row in the device table
OPEN_EVIDENCE = 3  # blocks up to this number show their evidence at once
PARTS = 16  # parts of one block that are named
COMMANDS = 6  # that confirm a block


def render_findings(report: Report, rules: RuleLinks) -> Iterator[Element]:
    """The section: findings from warning on, worst first; notes and what is silenced are folded."""
    names = DisplayNames(report)
    blocks = group_findings(report.open_findings, names)
    loud = [block for block in blocks if block.first.severity != "info"]
    notes = [block for block in blocks if block.first.severity == "info"]
    yield el("h2", "Findings", id="findings")
    if not loud:
        yield el("p", _describe_none(report))
    if len(loud) >= OVERVIEW:
        yield el("ol", *map(_render_overview, loud), class_="overview")
    for block in loud:
        yield _render_block(block, names, rules, len(loud) <= OPEN_EVIDENCE)
    if notes:
        title = f"{len(notes)} note{'s' if len(notes) > 1 else ''}"
        cards = [_render_block(block, names, rules, False) for block in notes]
        yield el("details", el("summary", title), *cards, class_="notes")
    silenced = [finding for finding in report.findings if finding.silenced]
    if silenced:
        cards = [_render_block(block, names, rules, False) for block in group_findings(silenced, names)]
        yield el("details", el("summary", f"{len(silenced)} silenced"), *cards, class_="notes silenced")


def _render_overview(block: FindingBlock) -> Element:
    """One line that leads to the card."""
    first = block.first
    badge = el("span", first.severity, class_=f"badge {first.severity}")
    return el("li", badge, el("a", describe_block(block), href=f"#f-{first.fingerprint}"))


def _describe_none(report: Report) -> str:
    verdict = report.summary.verdict
    if verdict == "unknown":
        return "None among the checks that could run."
    return "Nothing to check on this host." if verdict == "nothing_to_check" else "No problems found."


def _render_block(block: FindingBlock, names: DisplayNames, rules: RuleLinks, show_evidence: bool) -> Element:
    first = block.first
    sure = f"confidence {first.confidence}" if first.confidence != "high" else ""
    head = el(
        "header",
        el("span", first.severity if first.severity != "info" else "note", class_=f"badge {first.severity}"),
        *_render_parts(block, names),
        el("span", sure, class_="dim") if sure else None,
        rules.link(first.rule),
    )
    parts = _render_locations(block)
    reasons = dict.fromkeys(describe_silence(f.silenced) for f in block.findings if f.silenced)
    facts = [("Silenced", el("p", "; ".join(reasons)))] if reasons else []
    facts += [("Parts" if len(parts) > 1 else "Part", el("div", *parts))] if parts else []
    facts += [("Impact", el("p", first.impact))] if first.impact else []
    facts += [("Costs", el("p", cost))] if (cost := describe_cost(first)) else []
    commands = list(dict.fromkeys(command for finding in block.findings for command in finding.confirm or ()))
    if commands:
        facts.append(("Confirm", el("div", *map(render_command, commands[:COMMANDS]))))
    facts.append(("Fix", _render_fix(block)))
    absorbed = join_absorbed([text for finding in block.findings for text in finding.absorbs], names)
    if absorbed:
        facts.append(("Explains", el("p", *rules.link_words(absorbed))))
    card = el(
        "article",
        head,
        *(el("span", id=f"f-{finding.fingerprint}") for finding in block.findings[1:]),  # rows of devices link to it
        *_render_summaries(block),
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


def _render_parts(block: FindingBlock, names: DisplayNames) -> list[Child]:
    """Every part, linked to its row; with its address where nothing else is known of where it is."""
    parts: list[Child] = [_render_part(finding) for finding in block.findings[:PARTS]]
    more = len(block.findings) - PARTS
    if more > 0:
        parts.append(el("span", f"and {more} more", class_="dim"))
    place = names.short(block.first.subject.partition(":")[2].partition("/")[0])
    if block.first.location is None and len(block.findings) == 1 and place and "+" not in place:
        parts.append(el("span", place, class_="dim") if place not in block.first.label else None)
    return parts


def _render_locations(block: FindingBlock) -> list[Element]:
    """The physical part of each finding, with what identifies it and where its cable goes."""
    many = len(block.findings) > 1
    return [
        el("p", f"{finding.label}: " if many else None, text)
        for finding in block.findings[:PARTS]
        if (text := describe_location(finding))
    ]


def describe_location(finding: Finding) -> str:
    """`SXM module 3, serial 1727549902355, GPU-72ce.., 0000:4c:00.0; cable to leaf-1, port 12`."""
    location = finding.location
    if location is None:
        return ""
    known = (
        location.part,
        f"serial {location.serial}" if location.serial else "",
        location.uuid or "",
        f"GUID {location.port_guid}" if location.port_guid else "",
        f"MAC {location.mac}" if location.mac else "",
        location.pci or "",
    )
    text = ", ".join(part for part in known if part)
    far = location.far_end
    if far is None or not (far.system or far.port):
        return text
    return (
        f"{text}; cable to {', '.join(part for part in (far.system, f'port {far.port}' if far.port else '') if part)}"
    )


def _render_part(finding: Finding) -> Element:
    kind, _, which = finding.subject.partition(":")
    label = "this node" if finding.label == "node" else finding.label
    return el("strong", label) if kind in UNLINKED else el("a", label, href=f"#d-{which.partition('/')[0]}")


def _render_summaries(block: FindingBlock) -> Iterator[Element]:
    if block.same_summary:
        summary = block.first.summary
        yield el("p", begin_sentence(summary), class_="what")
        return
    lines = [el("li", f"{finding.label}: {finding.summary}") for finding in block.findings]
    yield el("ul", *lines, class_="what")


def _render_fix(block: FindingBlock) -> Element:
    """The steps for the first part; where they name that part, the others need the same with their own names."""
    steps = block.first.steps or [Step(do=block.first.remedy)]
    many = len({finding.remedy for finding in block.findings}) > 1
    same = f"The same for each of the {len(block.findings)} parts, with its own names." if many else ""
    element = (
        el("ol", *[el("li", *_render_do(step), _render_outcomes(step)) for step in steps])
        if len(steps) > 1
        else el("p", *_render_do(steps[0]))
    )
    if len(steps) == 1 and steps[0].outcomes:
        element = el("div", element, _render_outcomes(steps[0]))
    return el("div", element, el("p", same, class_="dim") if same else None)


def _render_do(step: Step) -> list[Child]:
    cost = describe_step_cost(step)
    return [*render_inline(step.do), " ", el("span", cost, class_="dim")] if cost else render_inline(step.do)


def _render_outcomes(step: Step) -> Element | None:
    if not step.outcomes:
        return None
    return el("ul", *[el("li", *render_inline(outcome)) for outcome in step.outcomes], class_="outcomes")


def _render_evidence(block: FindingBlock) -> Element | None:
    rows = [
        el("tr", el("td", seen.what), el("td", seen.value, class_="mono"), el("td", seen.source, class_="mono dim"))
        for seen in join_evidence([seen for finding in block.findings for seen in finding.evidence])
    ]
    if not rows:
        return None
    head = el("thead", el("tr", *[el("th", title, scope="col") for title in ("Observed", "Value", "Source")]))
    table = el("div", el("table", head, el("tbody", *rows)), class_="scroll")
    return el("details", el("summary", f"Evidence ({len(rows)})"), table, class_="evidence")
