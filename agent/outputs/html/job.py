"""Why a job failed, as one self-contained page: headline, causes with their lines, a time line of ranks, the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from xml.etree.ElementTree import Element

from agent.model.job_answer import JobAnswer, JobCause, Rank
from agent.model.labels import compress_names
from agent.outputs.html.document import read_styles, write_document
from agent.outputs.html.elements import Child, el
from agent.outputs.html.job_times import STYLE, draw_times
from agent.outputs.text.job import (
    describe_consequence,
    describe_gap,
    describe_job,
    describe_jobs,
    describe_other_job,
    describe_report,
    describe_table,
)
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.recommend_answers import render_log_answer

_STYLES = ("palette.css", "page.css", "print.css")
_EXTRA = (
    ".lines{margin:4px 0 0;padding:0;list-style:none} .lines li{margin:0 0 3px;overflow-wrap:anywhere}"
    "pre{font:13px/1.45 ui-monospace,monospace;overflow-x:auto}" + STYLE + "\n"
)
_TONES = {"well": "ok", "failed": "error", "hung": "error", "killed": "error", "cut": "warning", "unknown": "warning"}
_MOST_RANKS, _MOST_ROWS, _MOST_FINDINGS = 512, 64, 4
_CODE = re.compile(r"`([^`]{1,200})`")


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
    if answer.ranks:
        yield el("h2", "Ranks")
        yield _table(
            ("rank", "host", "GPU", "NICs", "state", "last collective"),
            [_rank(row) for row in answer.ranks[:_MOST_RANKS]],
        )
        if len(answer.ranks) > _MOST_RANKS:
            yield el("p", f"and {len(answer.ranks) - _MOST_RANKS} more", class_="dim")
    settings = [(row.name, row.value, row.where, row.verdict, row.reason or "") for row in answer.settings]
    if settings:
        yield el("h2", "Settings")
        yield _table(("name", "value", "where", "verdict", "reason"), settings[:_MOST_ROWS])
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
    files = [
        (file.name, file.read_as or "not read", "" if file.lines is None else str(file.lines), file.reason or "")
        for file in answer.source.files
    ]
    yield el("h2", "Files")
    yield _table(("file", "read as", "lines", "reason"), files[: 2 * _MOST_ROWS])


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
        el("span", fault.kind, class_="badge"),
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
    steps = el("ol", *[el("li", *_inline(text)) for text in cause.next]) if cause.next else None
    tone = {"high": "error", "medium": "warning"}.get(cause.confidence, "info")
    return el(
        "article",
        title,
        el("p", *_inline(cause.summary), class_="what"),
        el("p", f"confidence {cause.confidence}{f', at {cause.at}' if cause.at else ''}", class_="dim"),
        el("ul", *lines, class_="lines"),
        el("h4", "Next") if steps is not None else None,
        steps,
        class_=f"finding {tone}",
    )


def _inline(text: str) -> list[Child]:
    """A text whose commands are marked."""
    return [el("code", part) if number % 2 else part for number, part in enumerate(_CODE.split(text))]


def _rank(row: Rank) -> tuple[str, ...]:
    gpu = ""
    if row.gpu is not None:
        gpu = row.gpu.pci or (f"GPU{row.gpu.index}" if row.gpu.index is not None else "")
    last = ""
    if row.last is not None:
        known = (row.last.group, str(row.last.sequence) if row.last.sequence is not None else None, row.last.collective)
        last = " ".join(part for part in known if part)
    return str(row.rank), row.host or "", gpu, ", ".join(row.nics), row.state, last


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Element:
    head = el("thead", el("tr", *[el("th", title, scope="col") for title in titles]))
    body = el("tbody", *[el("tr", *[el("td", cell) for cell in row]) for row in rows])
    return el("div", el("table", head, body), class_="scroll", tabindex=0, role="region", aria_label=titles[0])


def _listed(title: str, texts: Iterable[str]) -> Iterator[Element]:
    items = [el("li", *_inline(text)) for text in islice(texts, _MOST_ROWS)]
    if items:
        yield el("h2", title)
        yield el("ul", *items)
