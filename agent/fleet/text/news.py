"""`fleet news` for people, for Slack and for a webhook; `fleet repeat` for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec

from agent.fleet.episodes import gravest
from agent.fleet.episodes.finding_changes import News, NewsItem
from agent.fleet.episodes.repeat import Offender, Repeats
from agent.fleet.hostlist import fold
from agent.fleet.text.parts import FLEET_HISTORY, STYLES, count, hosts, number, wrap_item
from agent.outputs.formatting import clean_line
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

TITLES = {
    "new": "New",
    "back": "Back",
    "worse": "Worse",
    "flapping": "Flapping",
    "silent": "Stopped reporting",
    "gone": "Gone",
    "reporting": "Reporting again",
}
_NAMED = 8  # devices of one line
_SLACK_LINES, _LINE_LENGTH = 40, 900  # a text of 40,000 characters is cut by Slack


def page(answer: News, width: int = 80) -> list[Line]:
    """The whole answer."""
    lines = wrap_paragraph(_head(answer), width, "  ", first="")
    if not answer.items and not _is_without_reports(answer):
        lines.append(make_line(("nothing new", "ok")))
    for kind, items in groupby(answer.items, lambda item: item.kind):
        lines += [BLANK, make_heading(TITLES[kind])]
        for text, severity in sentences(list(items)):
            lines += wrap_item(text, width, style=STYLES.get(severity or "", ""))
    return lines


def sentences(items: list[NewsItem]) -> Iterator[tuple[str, str | None]]:
    """One for each rule, severity and device label: the nodes folded. With its severity."""
    if items[0].rule is None:
        yield hosts(fold(item.node for item in items), len(items)), None
        return
    alike: dict[tuple[str | None, ...], list[NewsItem]] = {}
    for item in items:
        detail = f"began {item.times} times" if item.times else f"was {item.before}" if item.before else None
        by_fleet = FLEET_HISTORY if item.fleet_window else None
        alike.setdefault((item.severity, item.rule, detail, by_fleet), []).append(item)
    for (severity, rule, detail, by_fleet), these in alike.items():
        nodes = {item.node for item in these}
        labels = sorted({item.label for item in these if item.label and item.label != "node"})
        on = f" on {', '.join(labels)}" if 0 < len(labels) <= _NAMED else ""
        more = "".join(f"; {text}" for text in (detail, by_fleet) if text)
        yield f"{(severity or '').upper()} {rule}: {hosts(fold(nodes), len(nodes))}{on}{_since(these)}{more}", severity


def _since(items: list[NewsItem]) -> str:
    times = sorted(item.ended or item.began or "" for item in items)
    if not times[0]:
        return ""
    return f" [{times[0]}]" if times[0] == times[-1] else f" [{times[0]} to {times[-1]}]"


def _head(answer: News) -> str:
    parts = [f"since {answer.since}: {number(len(answer.alarming))} new"]
    parts.append(f"{number(len(answer.items) - len(answer.alarming))} gone or back to normal")
    parts.append(f"{count(answer.open, 'finding')} open")
    if answer.silenced:
        parts.append(f"{number(answer.silenced)} silenced")
    if _is_without_reports(answer):
        newest = f"the newest is of {answer.newest}" if answer.newest else "there is none"
        parts.append(f"no report arrived in this time ({newest})")
    return ", ".join(parts)


def _is_without_reports(answer: News) -> bool:
    return answer.newest is None or answer.newest < answer.since


def slack(answer: News) -> dict[str, Any]:
    """The body of a Slack incoming webhook."""
    lines = [f"*fabricscope*: {_escape(_head(answer))}"]
    for kind, items in groupby(answer.items, lambda item: item.kind):
        lines.append(f"*{TITLES[kind]}*")
        lines += [f"• {_escape(text)}" for text, _ in sentences(list(items))]
    if len(lines) > _SLACK_LINES:
        lines[_SLACK_LINES:] = [f"and {number(len(lines) - _SLACK_LINES)} lines more"]
    return {"text": "\n".join(lines)}


def webhook(answer: News) -> dict[str, Any]:
    """The body for any other receiver: a title, the most severe severity, the text, and all of it as data."""
    severities = [item.severity for item in answer.alarming if item.severity]
    text = [clean_line(f"{TITLES[item.kind]}: {_one(item)}", _LINE_LENGTH) for item in answer.items[:_SLACK_LINES]]
    return {
        "title": f"fabricscope: {_head(answer)}",
        "severity": gravest(severities) if severities else "info",
        "text": "\n".join(text),
        "news": msgspec.to_builtins(answer),
    }


def _one(item: NewsItem) -> str:
    return f"{item.rule} on {item.node} ({item.label})" if item.rule else item.node


def _escape(text: str) -> str:
    """Slack's control characters: a name may not call a channel or show one address for another.

    >>> _escape("<!channel>\\nleaf & spine")
    '&lt;!channel&gt;?leaf &amp; spine'
    """
    return clean_line(text, _LINE_LENGTH).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def repeat_page(answer: Repeats, width: int = 80) -> list[Line]:
    """The whole answer."""
    silenced = f", {number(answer.silenced)} silenced" if answer.silenced else ""
    first = (
        f"since {answer.since}: {count(len(answer.offenders), 'part')} with {answer.times} or more episodes{silenced}"
    )
    lines = wrap_paragraph(first, width, "  ", first="")
    if not answer.offenders:
        lines.append(make_line(("no part with repeated findings", "ok")))
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
