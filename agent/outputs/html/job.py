"""Why a job failed, as one self-contained page: headline, causes with their lines, a time line of ranks, the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from xml.etree.ElementTree import Element

from agent.model.job_answer import JobAnswer, JobCause, Rank, TimelineEntry
from agent.model.labels import compress_names, group_by_key, name_runs
from agent.outputs.html.document import read_styles, write_document
from agent.outputs.html.elements import el, mark_code, render_table
from agent.outputs.names import begin_sentence
from agent.outputs.text.job import (
    describe_consequence,
    describe_fault,
    describe_gap,
    describe_job,
    describe_jobs,
    describe_other_job,
    describe_report,
    describe_table,
    list_unread,
)
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.recommend_answers import render_log_answer

_TIMES_STYLE = (
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
_STYLES = ("palette.css", "page.css", "print.css")
_EXTRA = (
    ".lines{margin:4px 0 0;padding:0;list-style:none} .lines li{margin:0 0 3px;overflow-wrap:anywhere}"
    "pre{font:clamp(9px,1.42vw,13px)/1.45 ui-monospace,monospace;overflow-x:auto}" + _TIMES_STYLE + "\n"
)
_TONES = {"well": "ok", "failed": "error", "hung": "error", "killed": "error", "cut": "warning", "unknown": "warning"}
_MOST_RANKS, _MOST_ROWS, _MOST_FINDINGS = 512, 64, 4


def render_job_page(answer: JobAnswer) -> str:
    """HTML 5 that loads nothing; the same bytes for the same answer."""
    tone = "warning" if answer.headline.startswith("Slow") else _TONES.get(answer.job.ended, "warning")
    word, separator, rest = answer.headline.partition(": ")
    verdict = el(
        "div",
        el("strong", word if separator else answer.headline),
        el("span", rest) if separator else None,
        class_=f"verdict {tone}",
    )
    jobs = el("p", describe_jobs(answer), class_="dim") if answer.other_jobs else None
    header = el("header", el("h1", "Job"), el("p", describe_job(answer), class_="dim"), jobs, verdict)
    footer = el("footer", el("p", f"fabricscope {answer.generator.version}, {answer.generated_at}", class_="dim"))
    body = el("body", header, el("main", *_sections(answer)), footer)
    return write_document("job", read_styles(*_STYLES) + _EXTRA, body)


def _sections(answer: JobAnswer) -> Iterator[Element]:
    if answer.causes:
        yield el("h2", "Causes", id="causes")
        yield from (_cause(cause, number) for number, cause in enumerate(answer.causes, 1))
    if answer.timeline:
        yield el("h2", "Time line")
        yield draw_times(answer.timeline)
    yield from _listed("What followed", map(describe_consequence, answer.consequences))
    ranks = [_rank(row) for row in answer.ranks[:_MOST_RANKS]]
    yield from _tabled("Ranks", ("rank", "host", "GPU", "NICs", "state", "last collective"), ranks)
    if len(answer.ranks) > _MOST_RANKS:
        yield el("p", f"and {len(answer.ranks) - _MOST_RANKS} more", class_="dim")
    settings = [(row.name, row.value, row.where, row.verdict, row.reason or "") for row in answer.settings]
    yield from _tabled("Settings", ("name", "value", "where", "verdict", "reason"), settings[:_MOST_ROWS])
    yield from _listed("Measured", map(describe_table, answer.measured))
    yield from _listed("Other jobs in these files", map(describe_other_job, answer.other_jobs))
    yield from _listed("Notes", (row.summary for row in answer.notes))
    yield from _listed("Reports", (describe_report(row, _MOST_FINDINGS) for row in answer.reports))
    if answer.machine is not None:
        yield el("h2", "NCCL's choices")
        block = el("pre")
        for line in to_plain_text(render_log_answer(answer.machine, 110)).splitlines():
            block.append(el("span", line))
            block[-1].tail = "\n"
        yield block
    yield from _listed("What these files do not show", map(describe_gap, answer.cannot_tell))
    unread = dict(list_unread(answer))
    files = [
        (
            file.name,
            file.read_as or "not read",
            "" if file.lines is None else str(file.lines),
            unread.get(file.name, ""),
        )
        for file in answer.source.files
    ]
    yield from _tabled("Files", ("file", "read as", "lines", "reason"), files[: 2 * _MOST_ROWS])


def _cause(cause: JobCause, number: int) -> Element:
    fault = cause.at_fault
    parts = [
        fault.host,
        compress_names([f"rank {rank}" for rank in fault.ranks]) if fault.ranks else None,
        fault.gpu,
        fault.nic,
    ]
    place = ", ".join(part for part in parts if part)
    title = el(
        "header",
        el("span", describe_fault(cause), class_="badge"),
        el("span", f"{number}. {place}", class_="dim"),
        el("code", cause.id, class_="rule"),
    )
    lines = [
        el(
            "li",
            el("code", row.text),
            el("span", f" {row.source}{f':{row.line}' if row.line is not None else ''}", class_="dim"),
        )
        for row in cause.evidence
    ]
    steps = el("ol", *[el("li", *mark_code(text)) for text in cause.next]) if cause.next else None
    tone = {"high": "error", "medium": "warning"}.get(cause.confidence, "info")
    return el(
        "article",
        title,
        el("p", *mark_code(begin_sentence(cause.summary)), class_="what"),
        el("p", f"confidence {cause.confidence}{f', at {cause.at}' if cause.at else ''}", class_="dim"),
        el("ul", *lines, class_="lines"),
        el("h4", "Next") if steps is not None else None,
        steps,
        class_=f"finding {tone}",
    )


def _rank(row: Rank) -> tuple[str, ...]:
    gpu = ""
    if row.gpu is not None:
        gpu = row.gpu.pci or (f"GPU{row.gpu.index}" if row.gpu.index is not None else "")
    last = ""
    if row.last is not None:
        known = (row.last.group, str(row.last.sequence) if row.last.sequence is not None else None, row.last.collective)
        last = " ".join(part for part in known if part)
    return str(row.rank), row.host or "", gpu, ", ".join(row.nics), row.state, last


def _tabled(title: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Element]:
    table = render_table(titles, rows)
    if table is not None:
        yield el("h2", title)
        yield table


def _listed(title: str, texts: Iterable[str]) -> Iterator[Element]:
    items = [el("li", *mark_code(text)) for text in islice(texts, _MOST_ROWS)]
    if items:
        yield el("h2", title)
        yield el("ul", *items)


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
    events = group_by_key((rank, number) for number, entry in enumerate(entries) for rank in entry.ranks)
    others = group_by_key((entry.host or "job", number) for number, entry in enumerate(entries) if not entry.ranks)
    groups = group_by_key((tuple(numbers), rank) for rank, numbers in sorted(events.items()))
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
