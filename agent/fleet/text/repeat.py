"""`fleet repeat` for people."""

from __future__ import annotations

from agent.fleet.episodes.repeat import Offender, Repeats
from agent.fleet.text.parts import STYLES, count, number, wrap_item
from agent.outputs.text.lines import BLANK, Line, make_line, wrap_paragraph


def page(answer: Repeats, width: int = 80) -> list[Line]:
    """The whole answer."""
    silenced = f", {number(answer.silenced)} silenced" if answer.silenced else ""
    first = (
        f"since {answer.since}: {count(len(answer.offenders), 'part')} with {answer.times} or more episodes{silenced}"
    )
    lines = wrap_paragraph(first, width, "  ", first="")
    if not answer.offenders:
        lines.append(make_line(("no repeat offenders", "ok")))
    for offender in answer.offenders:
        lines += [BLANK, *wrap_paragraph(_title(offender), width, "  ", STYLES.get(offender.severity, ""), first="")]
        rules = ", ".join(f"{rule} ({times})" for rule, times in offender.rules)
        state = "there now" if offender.open else "not there now"
        lines += wrap_item(
            f"{count(offender.episodes, 'episode')}, {offender.hours:g} h in all, {state}: {rules}", width
        )
        lines += wrap_item(f"first {offender.first}, last began {offender.last}", width)
        if offender.far_end:
            lines += wrap_item(f"far end of the cable: {offender.far_end}", width)
    return lines


def _title(offender: Offender) -> str:
    label = "" if offender.label in (None, "node") else f" {offender.label}"
    part = f", {offender.part}" if offender.part else ""
    serial = f", serial {offender.serial}" if offender.serial else ""
    return f"{offender.hosts}{label}{part}{serial}"
