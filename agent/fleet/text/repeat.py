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
    for each in found.offenders:
        lines += [BLANK, *wrap_paragraph(_title(each), width, "  ", STYLES.get(each.severity, ""), first="")]
        rules = ", ".join(f"{rule} ({times})" for rule, times in each.rules)
        state = "there now" if each.open else "not there now"
        lines += told(f"{count(each.episodes, 'episode')}, {each.hours:g} h in all, {state}: {rules}", width)
        lines += told(f"first {each.first}, last began {each.last}", width)
        if each.far_end:
            lines += told(f"far end of the cable: {each.far_end}", width)
    return lines


def _title(each: Offender) -> str:
    label = "" if each.label in (None, "node") else f" {each.label}"
    part = f", {each.part}" if each.part else ""
    serial = f", serial {each.serial}" if each.serial else ""
    return f"{each.hosts}{label}{part}{serial}"
