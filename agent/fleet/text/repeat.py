"""`fleet repeat` for people."""

from __future__ import annotations

from agent.fleet.episodes.repeat import Offender, Repeats
from agent.fleet.text.parts import STYLES, count, number, told
from agent.outputs.text.lines import BLANK, Line, make_line, wrap_paragraph


def page(found: Repeats, width: int = 80) -> list[Line]:
    """The whole answer."""
    silenced = f", {number(found.silenced)} silenced" if found.silenced else ""
    first = f"since {found.since}: {count(len(found.offenders), 'part')} with {found.times} or more episodes{silenced}"
    lines = wrap_paragraph(first, width, "  ", first="")
    if not found.offenders:
        lines.append(make_line(("no repeat offenders", "ok")))
    for offender in found.offenders:
        lines += [BLANK, *wrap_paragraph(_title(offender), width, "  ", STYLES.get(offender.severity, ""), first="")]
        rules = ", ".join(f"{rule} ({times})" for rule, times in offender.rules)
        state = "there now" if offender.open else "not there now"
        lines += told(f"{count(offender.episodes, 'episode')}, {offender.hours:g} h in all, {state}: {rules}", width)
        lines += told(f"first {offender.first}, last began {offender.last}", width)
        if offender.far_end:
            lines += told(f"far end of the cable: {offender.far_end}", width)
    return lines


def _title(offender: Offender) -> str:
    label = "" if offender.label in (None, "node") else f" {offender.label}"
    part = f", {offender.part}" if offender.part else ""
    serial = f", serial {offender.serial}" if offender.serial else ""
    return f"{offender.hosts}{label}{part}{serial}"
