"""The answers as lines of text, for any width."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from agent.fleet.cluster.answer import FabricRow, TopologyAnswer, UnitRow
from agent.fleet.cluster.cabling_faults import KINDS, CablingFault
from agent.fleet.cluster.cabling_plan import STATES, Cable, Cables
from agent.fleet.cluster.fabric_kind import WORDS
from agent.fleet.text.parts import hosts, wrap_item
from agent.outputs.formatting import clean_line
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

_NEXT = "give --fabric FILE or --switches DIR."
SHOWN = 30  # rows of a list; the rest is counted, and is in the JSON


def page(answer: TopologyAnswer, width: int, every: bool = False) -> list[Line]:
    """`fleet topology` as text. `every`: no list is cut."""
    limit = 10**9 if every else SHOWN
    if answer.fabrics or answer.nvlink:
        lines = list(_render_breaks(answer.breaks, width, limit))
    else:
        lines = wrap_paragraph(f"No switch, no link and no NVLink domain is known: {_NEXT}", width, "")
    lines += _render_sources(answer.sources, width)
    for number, fabric in enumerate(answer.fabrics, 1):
        lines += [BLANK, *_render_fabric(fabric, number if len(answer.fabrics) > 1 else 0, width, limit)]
    if answer.nvlink_words:
        lines += [BLANK, make_heading("NVLink"), *wrap_paragraph(answer.nvlink_words, width)]
        for domain in answer.nvlink[:limit]:
            named = domain.hosts if every else hosts(domain.hosts, domain.nodes)
            unit = "host " if domain.nodes == 1 else "hosts"
            lines += wrap_item(named, width, " " * 14, f"  {domain.nodes:>4} {unit}  ")
        lines += _render_more(len(answer.nvlink) - limit)
    for note in answer.notes:
        lines += wrap_paragraph(f"note: {note}", width, "      ", "dim", first="")
    return lines


def render_cables_page(answer: Cables, sources: Sequence[str], width: int, every: bool = False) -> list[Line]:
    """`fleet cables` as text."""
    limit = 10**9 if every else SHOWN
    by = "the plan" if answer.by == "plan" else "the pattern that most cables follow"
    total = f"{answer.right:,} of {answer.judged:,} cables match {by}"
    if not answer.of:
        return [*wrap_paragraph(f"No cable is known: {_NEXT}", width, ""), *_render_sources(sources, width)]
    noted = [row for note in answer.notes for row in wrap_paragraph(f"note: {note}", width, "      ", "dim", first="")]
    left = answer.of - answer.judged
    first = f"{total}; {left:,} {'matches' if left == 1 else 'match'} no pattern." if left > 0 else f"{total}."
    lines = [*wrap_paragraph(first, width, ""), *_render_sources(sources, width)]
    order = list(STATES)
    rows = sorted(answer.wrong, key=lambda cable: order.index(cable.state))
    for state, group in groupby(rows, key=lambda row: row.state):
        these = list(group)
        lines += [BLANK, make_line((f"{STATES[state].capitalize()} ({len(these):,})", "head"))]
        for cable in these[:limit]:
            lines += wrap_paragraph(_format_cable(cable), width, "      ", first="  ")
            lines += wrap_paragraph(cable.why, width, "      ", "dim")
        lines += _render_more(len(these) - limit)
    return [*lines, BLANK, *noted] if noted else lines


def _render_sources(sources: Sequence[str], width: int) -> list[Line]:
    return wrap_paragraph("from " + "; ".join(sources), width, "  ", "dim", first="")


def _format_cable(cable: Cable) -> str:
    if cable.should is None:
        return f"{cable.end} is on {cable.found}"
    if cable.state == "unknown":
        return f"{cable.end} should be on {cable.should}"
    if cable.trunk:
        end = re.sub(r"/\?[0-9]+$", " (one of its ports)", cable.end)
        where = f"leads to {cable.found}" if cable.found else "leads nowhere that is known"
        return f"{end} {where}, and should lead to {cable.should}"
    there = f", where {cable.there} is" if cable.there else ""
    where = f"is on {cable.found}" if cable.found else "is on no switch port that is known"
    return f"{cable.end} {where}, and should be on {cable.should}{there}"


def _render_fabric(fabric: FabricRow, number: int, width: int, limit: int) -> Iterator[Line]:
    sure = "" if fabric.sure == "sure" else f" ({fabric.sure})"
    title = f"Fabric {number}: " if number else "Fabric: "
    kind = WORDS[fabric.kind]
    levels = f", {fabric.levels} levels of switches" if fabric.levels > 1 else ""
    over = f", {fabric.oversubscription:.3g}:1" if fabric.oversubscription else ""
    yield make_heading(f"{title}{kind}{levels}{over}{sure}")
    for line in fabric.evidence:
        yield from wrap_paragraph(line, width, "    ", first="  ")
    for row in reversed(fabric.rows):
        called = "leaves" if row.row == 1 else f"row {row.row}"
        names = clean_line(row.names, 3 * width)
        yield from wrap_item(names, width, " " * 18, f"  {called:<8}{row.switches:>6,}  ", "dim")
    if fabric.units:
        yield make_line(
            (
                f"  {len(fabric.units):,} scalable unit{'s'[: len(fabric.units) != 1]}: nodes that share their leaves",
                "bold",
            )
        )
        yield from _render_units(fabric.units[:limit], width, limit > SHOWN)
        yield from _render_more(len(fabric.units) - limit)
    if fabric.in_no_unit:
        left = len(fabric.in_no_unit) - limit
        more = f" and {left:,} more" if left > 0 else ""
        yield from wrap_paragraph(
            f"in no unit: {', '.join(fabric.in_no_unit[:limit])}{more}", width, "    ", first="  "
        )


def _render_units(units: Sequence[UnitRow], width: int, every: bool) -> Iterator[Line]:
    wide = min(max(len(unit.name) for unit in units), 28)
    for unit in units:
        name = clean_line(unit.name, wide)
        leaves = f"{len(unit.leaves):>2} {'leaf' if len(unit.leaves) == 1 else 'leaves'}"
        first = f"    {name:<{wide}}  {unit.nodes:>4,} node{'s' if unit.nodes != 1 else ' '}  {leaves:<10}"
        named = unit.hosts if every else hosts(unit.hosts, unit.nodes)
        if len(first) + 1 + len(named) <= width:
            yield make_line(f"{first} {named}")
        else:
            yield make_line(first.rstrip())
            yield from wrap_item(named, width, " " * 8, first=" " * 8)


def _render_breaks(faults: Sequence[CablingFault], width: int, limit: int) -> Iterator[Line]:
    if not faults:
        yield make_line(("No deviation from its peers.", "ok"))
        return
    yield make_heading(f"Deviations from the expected layout: {len(faults):,}")
    for kind, group in groupby(faults, key=lambda cable_break: cable_break.kind):
        these = list(group)
        yield make_line((f"  {KINDS[kind]} ({len(these):,})", "bold"))
        for fault in these[:limit]:
            yield from wrap_item(fault.text, width, "      ", "    ", "error")
            if fault.compared:
                yield from wrap_item(fault.compared, width, "      ", "      ", "dim")
        yield from _render_more(len(these) - limit)
        fixes = list(dict.fromkeys(fault.fix for fault in these))
        if len(fixes) == 1 and fixes[0]:
            yield from wrap_paragraph(f"→ {fixes[0]}", width, "      ", first="    ")


def _render_more(count: int) -> list[Line]:
    return (
        [make_line((f"    … and {count:,} more: --all shows them, --format json has them", "dim"))] if count > 0 else []
    )
