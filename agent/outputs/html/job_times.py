"""The time line of a job: a lane for ranks that have the same events, a mark for each event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from agent.model.job_answer import TimelineEntry
from agent.model.labels import name_runs
from agent.outputs.html.elements import el

STYLE = (
    ".times text{font:11px system-ui,sans-serif;fill:var(--ink)} .times .axis{stroke:var(--line)}"
    ".times .cause{fill:var(--error)} .times .consequence{fill:var(--warning)} .times .hang{fill:var(--info)}"
    ".times .fact{fill:var(--dim)} .times .small{fill:var(--dim)}"
)
_LANE, _WIDTH, _LETTER = 20, 640, 6.5
_MOST_LANES, _LONGEST = 60, 28  # letters of a lane's name
_LEGEND = (("cause", "cause"), ("consequence", "consequence"), ("hang", "waited in a collective"))
_ORDER = ("hang", "fact", "consequence", "cause")  # the later are drawn over the earlier


def draw_times(entries: Sequence[TimelineEntry]) -> Element:
    """As SVG, with a legend: colour is never the only difference, as each mark has a title."""
    lanes, left_out = _find_lanes(entries)
    left = round(max(len(name) for name in lanes) * _LETTER) + 14
    seconds = [_read_seconds(entry.at) for entry in entries]
    first, span = min(seconds), max(1.0, max(seconds) - min(seconds))
    height = _LANE * (len(lanes) + 3)
    picture = el("svg", viewBox=f"0 0 {_WIDTH} {height}", width=_WIDTH, height=height, class_="times", role="img",
                 aria_label="time line")  # fmt: skip
    for lane, name in enumerate(lanes):
        y = _LANE * (lane + 1)
        picture.append(el("text", name, x=4, y=y + 4))
        picture.append(el("line", x1=left, x2=_WIDTH - 10, y1=y, y2=y, class_="axis"))
    marks = [
        (_ORDER.index(entry.role) if entry.role in _ORDER else 0, lane, moment, entry)
        for lane, numbers in enumerate(lanes.values())
        for number in numbers
        for entry, moment in ((entries[number], seconds[number]),)
    ]
    for _, lane, moment, entry in sorted(marks, key=lambda mark: mark[:3]):
        x = round(left + 10 + (moment - first) / span * (_WIDTH - left - 40), 1)
        title = el("title", f"{entry.at}: {entry.text}")
        picture.append(_draw_mark(entry.role, x, _LANE * (lane + 1), title))
    y = _LANE * (len(lanes) + 1)
    picture.append(el("text", min(entries, key=lambda entry: entry.at).at, x=left, y=y, class_="small"))
    if max(seconds) > first:
        text = _format_span(max(seconds) - first)
        picture.append(el("text", text, x=_WIDTH - 60, y=y, class_="small"))
    x = left
    for role, text in _LEGEND:
        if any(entry.role == role for entry in entries):
            picture.append(_draw_mark(role, x + 5, y + _LANE - 4))
            picture.append(el("text", text, x=x + 15, y=y + _LANE, class_="small"))
            x += 30 + round(len(text) * _LETTER)
    if left_out:
        picture.append(el("text", f"and {left_out} more lanes", x=x, y=y + _LANE, class_="small"))
    return picture


def _draw_mark(role: str, x: float, y: int, *children: Element) -> Element:
    """A circle for a cause, a diamond for what followed, a larger pale circle for a hang."""
    if role == "consequence":
        return el("path", *children, d=f"M{x} {y - 6}L{x + 6} {y}L{x} {y + 6}L{x - 6} {y}Z", class_=role)
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
    numbers = [int(part) for part in clock.split(":")[:3] if part.isdigit()]
    hours, minutes, seconds = ([*numbers, 0, 0, 0])[:3]
    month_day = [int(part) for part in day.split("-")[-2:] if part.isdigit()]
    days = month_day[0] * 31 + month_day[1] if len(month_day) == 2 else 0
    return float(days * 86400 + hours * 3600 + minutes * 60 + seconds)
