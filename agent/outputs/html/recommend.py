"""What `recommend` answers, as one self-contained page."""

from __future__ import annotations

from agent.model.prediction import Recommendation
from agent.outputs.html.document import read_styles, write_document
from agent.outputs.html.elements import el
from agent.outputs.text.recommend import render_recommendation

WIDTH = 110  # columns
_STYLES = ("palette.css", "page.css", "print.css")
_EXTRA = (
    "pre{margin:0;font:clamp(9px,1.42vw,13px)/1.45 ui-monospace,monospace;overflow-x:auto}"  # its columns on 640 px
    "pre .error,pre .warning{color:var(--tone)} pre .dim{color:var(--dim)} pre .bold{font-weight:600}\n"
)


def render_recommendation_page(answer: Recommendation) -> str:
    """HTML 5 that loads nothing: the text with its emphasis, in columns, a section for each of its headings."""
    title, *lines = render_recommendation(answer, WIDTH)
    block = el("pre")
    sections = [block]
    for line in filter(None, lines):
        if line[0][1] == "head":
            block = el("pre")
            sections += [el("h2", line[0][0]), block]
            continue
        block.extend(el("span", text, class_=style or None) for text, style in line)
        block[-1].tail = f"{block[-1].tail or ''}\n"
    body = el("body", el("header", el("h1", title[0][0])), el("main", *sections))
    return write_document("recommend", read_styles(*_STYLES) + _EXTRA, body)
