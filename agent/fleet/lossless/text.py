"""The answer of `fleet lossless` as lines of text, for any width."""

from __future__ import annotations

from collections.abc import Iterator

from agent.fleet.lossless.answer import LosslessAnswer
from agent.fleet.lossless.changes import SwitchChange
from agent.fleet.lossless.rows import HopRow
from agent.fleet.lossless.verdict import VERDICTS
from agent.fleet.text.parts import count
from agent.model.finding import Finding
from agent.model.labels import group_by_key
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

PORTS = 8  # of one change in its text
SHOWN = 20  # rows of a list; the rest is counted, and is in the JSON
_STYLES = {"proved": "ok", "set": "ok", "trimmed": "warning", "unknown": "warning", "lossy": "error"}


def page(answer: LosslessAnswer, width: int, every: bool = False) -> list[Line]:
    """`every`: no list is cut."""
    limit = 10**9 if every else SHOWN
    lines = [*_render_head(answer, width)]
    if answer.findings:
        lines += [BLANK, make_heading(f"Findings: {len(answer.findings):,}")]
        for finding in answer.findings[:limit]:
            lines += _render_finding(finding, width)
        lines += _render_more(len(answer.findings) - limit)
    if answer.changes:
        lines += [BLANK, make_heading(f"Changes since the earlier collection: {len(answer.changes):,}")]
        for change in answer.changes[:limit]:
            lines += wrap_paragraph(_describe_change(change), width, "    ", first="  ")
        lines += _render_more(len(answer.changes) - limit)
    lines += _render_unknown(answer, width, limit)
    if every:
        lines += [BLANK, make_heading(f"Hops: {len(answer.hops):,}")]
        for hop in answer.hops:
            lines += _render_hop(hop, width)
    if answer.not_read:
        lines += [BLANK, make_heading(f"Not read: {len(answer.not_read):,}")]
        for line in answer.not_read[:limit]:
            lines += wrap_paragraph(line, width, "    ", "dim", first="  ")
        lines += _render_more(len(answer.not_read) - limit)
    for note in answer.notes:
        lines += wrap_paragraph(f"note: {note}", width, "      ", "dim", first="")
    return lines


def _render_head(answer: LosslessAnswer, width: int) -> Iterator[Line]:
    switches = count(len(answer.switches), "switch")
    hosts = f", {count(answer.hosts, 'host')} with {count(answer.host_ports, 'RoCE port')}"
    yield make_line((f"RoCE over {switches}{hosts if answer.hosts else ''}", "bold"))
    yield from wrap_paragraph(f"DSCP {answer.dscp}: {answer.dscp_source}", width)
    counts = [f"{hops:,} {verdict}" for verdict, hops in answer.counts.items() if hops]
    yield from wrap_paragraph(f"{count(len(answer.hops), 'hop')}: {', '.join(counts) or 'none is known'}", width)
    paths = answer.paths
    if paths.pairs:
        weak = sum(pairs for verdict, pairs in paths.by_verdict.items() if verdict not in ("proved", "set"))
        apart = f"; of {paths.unjoined:,} no path is known" if paths.unjoined else ""
        text = f"{weak:,} of {paths.pairs:,} pairs of rails have a path that is not known to be lossless{apart}"
        yield from wrap_paragraph(text, width)
    if paths.weakest:
        first = paths.weakest[0]
        behind = f" ({count(first.hosts_behind, 'host')} behind it)" if first.hosts_behind else ""
        yield from wrap_paragraph(f"Weakest: {first.hop}, {first.verdict}{behind}", width)
        reason = next((hop.reason for hop in answer.hops if hop.label == first.hop), "")
        if reason:
            yield from wrap_paragraph(reason, width, "    ", "dim")


def _render_finding(finding: Finding, width: int) -> Iterator[Line]:
    yield from wrap_paragraph(
        f"{finding.severity.upper()}  {finding.rule}  {finding.label}", width, "    ", finding.severity, first="  "
    )
    yield from wrap_paragraph(finding.summary, width, "    ")
    for step in finding.steps:
        yield from wrap_paragraph(f"→ {step.do}", width, "      ", "dim", first="    ")


def _describe_change(change: SwitchChange) -> str:
    """ "leaf1 Ethernet0: PFC priority 3 -> no priority"."""
    ports = change.ports if len(change.ports) <= PORTS else [*change.ports[:PORTS], f"{len(change.ports) - PORTS} more"]
    return f"{change.switch} {', '.join(ports)}: {change.what} {change.before} -> {change.after}"


def _render_unknown(answer: LosslessAnswer, width: int, limit: int) -> Iterator[Line]:
    """What to save next, with the hops that it would settle."""
    wanted = group_by_key((hop.settle or hop.reason, hop) for hop in answer.hops if hop.verdict == "unknown")
    if not wanted:
        return
    yield BLANK
    yield make_heading(f"Unknown: {answer.counts['unknown']:,}")
    for what, hops in list(wanted.items())[:limit]:
        save = f"save {what}" if hops[0].settle else what
        yield from wrap_paragraph(f"{count(len(hops), 'hop')}: {save}", width, "    ", first="  ")
        yield from wrap_paragraph(f"{hops[0].label}: {hops[0].reason}", width, "      ", "dim", first="    ")
    yield from _render_more(len(wanted) - limit)


def _render_hop(hop: HopRow, width: int) -> Iterator[Line]:
    style = _STYLES[hop.verdict]
    yield from wrap_paragraph(f"{hop.verdict:<8} {hop.label}", width, " " * 11, style, first="  ")
    if hop.reason:
        yield from wrap_paragraph(hop.reason, width, " " * 11, "dim")


def _render_more(count: int) -> list[Line]:
    return [make_line((f"    … and {count:,} more: --all shows them", "dim"))] if count > 0 else []


assert set(_STYLES) == set(VERDICTS)
