"""The verdict with one line per block of findings, and each block with part, evidence, impact, confirm and fix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.model.finding import Finding, describe_silence, describe_step_cost
from agent.model.labels import compress_names
from agent.model.report import Report
from agent.outputs.grouping import FindingBlock, describe_cost, group_findings, join_evidence
from agent.outputs.names import DisplayNames, begin_sentence, describe_location
from agent.outputs.text.lines import BLANK, Line, Span, line_length, make_line, wrap_paragraph
from agent.outputs.verdict import count_checks, describe_verdict, verdict_title

OVERVIEW = 3  # blocks from which on the verdict is followed by one line per block
UNSURE = 3  # blocks of low confidence; --verbose shows all
EVIDENCE = 4  # lines of evidence of one block; --verbose shows all
PARTS = 4  # parts of one block that have a line of their own
STYLES = {"unknown": "warning", "nothing_to_check": "info"}
_COLUMN = 12  # before the text of a row


def render_verdict(report: Report, width: int, is_brief: bool = False) -> list[Line]:
    """The verdict, how many checks ran, and one line per block where there are `OVERVIEW` or more above info.

    Briefly it is all that is shown of findings: one line for each block, notes too.
    """
    verdict = report.summary.verdict
    title: tuple[Span, str] = (verdict_title(report), STYLES.get(verdict, verdict)), f"  {describe_verdict(report)}"
    whole = make_line(*title)
    hang = " " * (len(title[0][0]) + 2)
    lines = [whole] if line_length(whole) <= width else _hang(title[0], title[1].strip(), width, hang)
    lines += wrap_paragraph(count_checks(report), width, style="dim")
    blocks = group_findings(report.open_findings, DisplayNames(report)) if is_brief else _list_loud_blocks(report)
    return [*lines, BLANK, *_render_blocks(blocks, width)] if len(blocks) >= (1 if is_brief else OVERVIEW) else lines


def render_overview(report: Report, width: int) -> list[Line]:
    """One line per block of findings above info, worst first."""
    return _render_blocks(_list_loud_blocks(report), width)


def _list_loud_blocks(report: Report) -> list[FindingBlock]:
    blocks = group_findings(report.open_findings, DisplayNames(report))
    return [block for block in blocks if block.first.severity != "info"]


def _render_blocks(blocks: Sequence[FindingBlock], width: int) -> list[Line]:
    """One line per block, behind its severity; all texts begin in one column."""
    column = 4 + max((len(_severity_title(block.first)) for block in blocks), default=0)
    lines: list[Line] = []
    for block in blocks:
        title = f"  {_severity_title(block.first)}".ljust(column)
        first, *more = wrap_paragraph(describe_block(block), width, indent=" " * column, first=" " * column)
        lines += [make_line((title, block.first.severity), first[0][0].strip()), *more]
    return lines


def _severity_title(finding: Finding) -> str:
    return finding.severity.upper() if finding.severity != "info" else "NOTE"


def render_findings(report: Report, width: int, everything: bool = False) -> list[Line]:
    """Every block of findings, worst first; then one line for each that is silenced."""
    lines: list[Line] = []
    names = DisplayNames(report)
    blocks = group_findings(report.open_findings, names)
    unsure = [block for block in blocks if block.first.confidence == "low"]
    left_out = [] if everything else unsure[UNSURE:]
    for block in blocks:
        if block not in left_out:
            lines += [*([BLANK] if lines else []), *_render_block(block, names, width, everything)]
    if left_out:
        text = f"and {len(left_out)} more of low confidence (--verbose)"
        lines += [BLANK, *wrap_paragraph(text, width, style="dim")]
    silenced = [line for finding in report.findings for line in _render_silenced(finding, width)]
    return [*lines, *([BLANK] if lines and silenced else []), *silenced]


def _render_silenced(finding: Finding, width: int) -> list[Line]:
    if finding.silenced is None:
        return []
    text = f"{finding.severity} {finding.rule} {finding.label}: {finding.summary}; {describe_silence(finding.silenced)}"
    return wrap_paragraph(text, width, indent=" " * len("SILENCED  "), first="SILENCED  ", style="dim")


def _render_block(block: FindingBlock, names: DisplayNames, width: int, everything: bool) -> list[Line]:
    finding = block.first
    head = (_severity_title(finding), finding.severity)
    hang = " " * (len(head[0]) + 2)
    lines = _hang(head, describe_block(block), width, hang)
    sure = "" if finding.confidence == "high" else f" (confidence: {finding.confidence})"
    lines += _render_parts(block, names, width, everything)
    lines += _rows("confirm", finding.confirm or (), width)  # the commands that show the fault on this host
    lines += _render_fix(block, width)
    lines += _row("impact", finding.impact, width)
    lines += _row("costs", cost, width) if (cost := describe_cost(finding)) else []
    lines += _render_evidence(block, width, everything)
    absorbed = join_absorbed([text for member in block.findings for text in member.absorbs], names)
    lines += _row("explains", absorbed, width, "dim") if absorbed else []
    return lines + _row("rule", f"{finding.rule}{sure}", width, "dim")


def describe_block(block: FindingBlock) -> str:
    """What is wrong with which parts, in one line."""
    if block.label == "node":
        return begin_sentence(block.summary)
    if len(block.findings) == 1 and block.summary.startswith(f"{block.label} "):
        return block.summary  # it names the part itself
    if len(block.findings) == 1 or block.same_summary:
        return f"{block.label}: {block.summary}"
    more = len(block.findings) - 1
    if not block.same_kind:
        return f"{block.first.label}: {block.first.summary}; and {more} more with the same fix"
    return f"{block.label}: {block.first.summary}; and {more} more like it"


def _render_parts(block: FindingBlock, names: DisplayNames, width: int, everything: bool) -> list[Line]:
    texts = []
    findings = block.findings if everything else block.findings[:PARTS]
    for finding in findings:
        part = describe_part(finding, names)
        if part != block.label:  # else the headline has it
            texts.append(part if block.same_summary else f"{part or finding.label}: {finding.summary}")
    lines = _rows("part", dict.fromkeys(filter(None, texts)), width)  # those of the node have one part
    if len(block.findings) > len(findings):
        lines += _row("", f"and {len(block.findings) - len(findings)} more (--verbose)", width, "dim")
    return lines


def _render_fix(block: FindingBlock, width: int) -> list[Line]:
    """The steps of the first part; where they name that part, the others need the same with their own names."""
    lines: list[Line] = []
    steps = block.first.steps
    for number, step in enumerate(steps, 1):
        mark = f"{number}. " if len(steps) > 1 else ""
        hang = " " * (_COLUMN + len(mark))
        text = f"{step.do} {describe_step_cost(step)}".rstrip()
        lines += wrap_paragraph(text, width, indent=hang, first=("" if lines else "  fix").ljust(_COLUMN) + mark)
        for outcome in step.outcomes:
            lines += wrap_paragraph(outcome, width, indent=f"{hang}  ", first=f"{hang}- ")
    lines = lines or _row("fix", block.first.remedy, width)
    if len({finding.remedy for finding in block.findings}) > 1:
        lines += _row("", f"The same for each of the {len(block.findings)} parts, with its own names.", width)
    return lines


def _render_evidence(block: FindingBlock, width: int, everything: bool) -> list[Line]:
    rows = [row for finding in block.findings for row in finding.evidence]
    rows = list(rows) if everything else join_evidence(rows)
    texts = (f"{seen.what}: {seen.value}  [{seen.source}]" for seen in (rows if everything else rows[:EVIDENCE]))
    lines = _rows("evidence", texts, width, "dim")
    if len(rows) > EVIDENCE and not everything:
        lines += _row("", f"and {len(rows) - EVIDENCE} more (--verbose)", width, "dim")
    return lines


def describe_part(finding: Finding, names: DisplayNames) -> str:
    """The physical part of a finding: label, address, where it sits, its identity; empty for the whole node."""
    if finding.subject == "node":
        return ", ".join(describe_location(finding.location))
    place = names.short(finding.subject.partition(":")[2].partition("/")[0])
    known = not place or place in finding.label or "+" in place
    return ", ".join([finding.label, *([] if known else [place]), *describe_location(finding.location)])


def join_absorbed(texts: Iterable[str], names: DisplayNames) -> str:
    """Findings that a cause explains, from "rule subject": each rule once, with its devices."""
    devices: dict[str, list[str]] = {}
    for rule, _, subject in (text.partition(" ") for text in texts):
        devices.setdefault(rule, []).extend([names.subject(subject)] if subject not in ("", "node") else [])
    return "; ".join(
        f"{rule} of {compress_names(dict.fromkeys(which))}" if which else rule for rule, which in devices.items()
    )


def _row(name: str, text: str, width: int, style: str = "") -> list[Line]:
    """A named row of a block."""
    return wrap_paragraph(text, width, indent=" " * _COLUMN, first=f"  {name}".ljust(_COLUMN), style=style)


def _rows(name: str, texts: Iterable[str], width: int, style: str = "") -> list[Line]:
    """Rows of one name, which only the first of them has."""
    return [line for number, text in enumerate(texts) for line in _row("" if number else name, text, width, style)]


def _hang(head: Span, text: str, width: int, hang: str) -> list[Line]:
    """A styled word, then text that is folded beside it."""
    folded = wrap_paragraph(text, width, indent=hang, first=hang)
    first: Sequence[Span | str] = [head, "  ", (folded[0][0][0].strip(), "bold")] if folded else [head]
    return [make_line(*first), *(make_line((line[0][0], "bold")) for line in folded[1:])]
