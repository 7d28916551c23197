"""The time line of a job: a lane for ranks that have the same events, a mark for each event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from agent.model.job_answer import TimelineEntry
from agent.model.labels import name_runs
from agent.outputs.html.elements import el

STYLE = (
    ".times{table-layout:fixed;width:100%;max-width:760px;font-size:12px} .times th{font-weight:400;color:var(--ink);"
    "width:168px;padding:0 6px 0 0;overflow-wrap:anywhere;vertical-align:middle} .times td{padding:0}"
    ".times svg,.legend svg{display:block;overflow:visible} .times .axis{stroke:var(--line)} .times .end{float:right}"
    ".times .cause,.legend .cause{fill:var(--error)} .times .consequence,.legend .consequence{fill:var(--warning)}"
    ".times .hang,.legend .hang{fill:var(--info)} .times .fact{fill:var(--dim)}"
    ".legend{display:flex;flex-wrap:wrap;gap:4px 18px} .legend span{display:flex;gap:6px;align-items:center}"
)
_LANE = 20  # height
_FIRST, _SPAN = 3.0, 94.0  # percent of a lane's width: where the first event is, and how far the last is from it
_MOST_LANES, _LONGEST = 60, 28  # letters of a lane's name
_LEGEND = (("cause", "cause"), ("consequence", "consequence"), ("hang", "waited in a collective"))
_ORDER = ("hang", "fact", "consequence", "cause")  # the later are drawn over the earlier


def draw_times(entries: Sequence[TimelineEntry]) -> Element:
    """A table with a picture for each lane, as wide as there is room, and a legend.

    Colour is never the only difference, as each mark has a form and a title.
    """
    lanes, left_out = _find_lanes(entries)
    seconds = [_read_seconds(entry.at) for entry in entries]
    first, span = min(seconds), max(1.0, max(seconds) - min(seconds))
    rows = []
    for name, numbers in lanes.items():
        picture = el("svg", el("line", x1="0", x2="100%", y1=_LANE // 2, y2=_LANE // 2, class_="axis"),
                     width="100%", height=_LANE, role="img", aria_label=f"events of {name}")  # fmt: skip
        marks = sorted((_rank_role(entries[number].role), seconds[number], number) for number in numbers)
        for _, moment, number in marks:
            entry = entries[number]
            title = el("title", f"{entry.at}: {entry.text}")
            picture.append(_draw_mark(entry.role, f"{_FIRST + (moment - first) / span * _SPAN:.1f}%", title))
        rows.append(el("tr", el("th", name, scope="row"), el("td", picture)))
    begin = el("span", min(entries, key=lambda entry: entry.at).at)
    end = el("span", _format_span(max(seconds) - first), class_="end") if max(seconds) > first else None
    rows.append(el("tr", el("th", f"and {left_out} more" if left_out else ""), el("td", begin, end), class_="dim"))
    return el("div", el("table", el("tbody", *rows), class_="times"), _draw_legend(entries))


def _draw_legend(entries: Sequence[TimelineEntry]) -> Element:
    there = {entry.role for entry in entries}
    parts = [
        el("span", el("svg", _draw_mark(role, "50%"), width=16, height=_LANE), text)
        for role, text in _LEGEND
        if role in there
    ]
    return el("p", *parts, class_="legend dim")


def _rank_role(role: str) -> int:
    return _ORDER.index(role) if role in _ORDER else 0


def _draw_mark(role: str, x: str, *children: Element) -> Element:
    """A circle for a cause, a diamond for what followed, a larger pale circle for a hang."""
    y = _LANE // 2
    if role == "consequence":
        diamond = el("path", *children, d=f"M0 {y - 6}L6 {y}L0 {y + 6}L-6 {y}Z", class_=role)
        return el("svg", diamond, x=x, y="0", overflow="visible")
    return el("circle", *children, cx=x, cy=y, r=7 if role == "hang" else 5, class_=role)


def _find_lanes(entries: Sequence[TimelineEntry]) -> tuple[dict[str, list[int]], int]:
    """Names of lanes with the numbers of their events; ranks that have the same events share one."""
    events: dict[int, list[int]] = defaultdict(list)
    others: dict[str, list[int]] = defaultdict(list)
    for number, entry in enumerate(entries):
        for rank in entry.ranks:
            events[rank].append(number)
        if not entry.ranks:
            others[entry.host or "job"].append(number)
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for rank, numbers in sorted(events.items()):
        groups[tuple(numbers)].append(rank)
    lanes = {_name_lane(ranks): list(numbers) for numbers, ranks in groups.items()} | others
    ordered = sorted(lanes.items(), key=lambda lane: (lane[1][0], len(lane[0]), lane[0]))
    return dict(ordered[:_MOST_LANES]), max(0, len(ordered) - _MOST_LANES)


def _name_lane(ranks: Sequence[int]) -> str:
    """The ranks as ranges where they are short, else their number and the first of them."""
    parts = name_runs(ranks)
    text = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(parts)}"
    return text if len(text) <= _LONGEST else f"{len(ranks)} ranks: {parts[0]}, {parts[1]}, .."


def _format_span(seconds: float) -> str:
    return f"+{seconds:.0f} s" if seconds < 600 else f"+{seconds / 60:.0f} min"


def _read_seconds(at: str) -> float:
    """Seconds since the start of its month-day text, enough to place marks."""
    day, _, clock = at.rpartition("T")
    numbers = [int(part) for part in clock.split(":")[:3] if part.isdecimal()]
    hours, minutes, seconds = ([*numbers, 0, 0, 0])[:3]
    month_day = [int(part) for part in day.split("-")[-2:] if part.isdecimal()]
    days = month_day[0] * 31 + month_day[1] if len(month_day) == 2 else 0
    return float(days * 86400 + hours * 3600 + minutes * 60 + seconds)
