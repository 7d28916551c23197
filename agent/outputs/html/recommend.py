"""What `recommend` answers, as one self-contained page."""

from __future__ import annotations

from agent.model.prediction import Recommendation
from agent.outputs.html.document import write_document
from agent.outputs.html.elements import el
from agent.outputs.text.recommend import render_recommendation

WIDTH = 110  # columns
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "pre{font:clamp(9px,1.42vw,13px)/1.45 ui-monospace,monospace;overflow-x:auto}"  # its columns on 640 px and more
    ".head{font-weight:600}.error{color:light-dark(#a3201d,#ff8f88)}"
    ".warning{color:light-dark(#7a5200,#f0c060)}.dim{opacity:.7}.bold{font-weight:600}"
)


def render_recommendation_page(answer: Recommendation) -> str:
    """HTML 5 that loads nothing: the text with its emphasis, in columns."""
    block = el("pre")
    for line in render_recommendation(answer, WIDTH):
        block.extend(el("span", text, class_=style or None) for text, style in line)
        block[-1].tail = f"{block[-1].tail or ''}\n"
    return write_document("recommend", _STYLE, el("body", el("h1", "What this machine reaches"), block))
