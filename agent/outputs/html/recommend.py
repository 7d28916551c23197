"""What `recommend` answers, as one self-contained page."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

from agent.model.prediction import Recommendation
from agent.outputs.html.elements import el
from agent.outputs.text.recommend import render_recommendation

WIDTH = 110  # columns
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "pre{font:13px/1.45 ui-monospace,monospace;overflow-x:auto}"
    ".head{font-weight:600}.error{color:light-dark(#a3201d,#ff8f88)}"
    ".warning{color:light-dark(#7a5200,#f0c060)}.dim{opacity:.7}.bold{font-weight:600}"
)


def render_recommendation_page(answer: Recommendation) -> str:
    """HTML 5 that loads nothing: the text with its emphasis, in columns."""
    block = el("pre")
    for line in render_recommendation(answer, WIDTH):
        for text, style in line:
            block.append(_span(text, style))
        _append_text(block, "\n")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("title", "recommend - fabricscope"),
        el("style", _STYLE),
    )
    page = el("html", head, el("body", el("h1", "What this machine reaches"), block), lang="en")
    return "<!DOCTYPE html>\n" + tostring(page, encoding="unicode", method="html") + "\n"


def _span(text: str, style: str) -> Element:
    return el("span", text, class_=style) if style else el("span", text)


def _append_text(parent: Element, text: str) -> None:
    last = parent[-1] if len(parent) else None
    if last is None:
        parent.text = (parent.text or "") + text
    else:
        last.tail = (last.tail or "") + text
