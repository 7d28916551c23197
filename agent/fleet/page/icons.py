"""An icon for every state that the map shows: a shape, so that colour is never all that separates states.

Shapes are relative paths in a square of 1 x 1; the script draws the same ones, scaled, from the same texts.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from agent.outputs.html.elements import el

_RIM = "m0 0 h1 v1 h-1 z m.16 .16 v.68 h.68 v-.68 z"


SQUARE = "m0 0 h1 v1 h-1 z"


DIAMOND = "m.5 -.1 l.6 .6 -.6 .6 -.6 -.6 z"


SHAPES = {
    "ok": SQUARE,
    "warning": "m0 1 l.5 -1 .5 1 z",
    "error": DIAMOND,
    "critical": "m0 .27 l.27 -.27 .23 .23 .23 -.23 .27 .27 -.23 .23 .23 .23 -.27 .27 -.23 -.23 -.23 .23 -.27 -.27 "
    ".23 -.23 z",
    "unknown": _RIM,
    "stale": f"{_RIM} m.18 .18 h.32 v.32 h-.32 z",
    "info": "m0 .5 a.5 .5 0 0 1 1 0 a.5 .5 0 0 1 -1 0 z",
    "none": "m.38 .38 h.24 v.24 h-.24 z",
    "nothing_to_check": "m0 .38 h1 v.24 h-1 z",
    "level": SQUARE,
    "below": DIAMOND,
}


WORDS = {
    "ok": "ok",
    "warning": "warning",
    "error": "error",
    "critical": "critical",
    "unknown": "could not be checked",
    "stale": "stale",
    "info": "note",
    "nothing_to_check": "nothing to check",
}


def sign(look: str) -> Element:
    """The shape beside a text that states the same."""
    path = el("path", d=f"M1 1{_scale(SHAPES[look], 10)}", class_=f"look {look}")
    return el("svg", path, viewBox="0 0 12 12", width=12, height=12, class_="sign", aria_hidden="true")


def _scale(shape: str, size: float) -> str:
    """Numbers times the size; the flags of an arc are none."""
    words, arc = [], -1
    for word in shape.split():
        letter, number = (word[0], word[1:]) if word[0].isalpha() else ("", word)
        arc = 0 if letter == "a" else -1 if letter else arc + 1 if arc >= 0 else arc
        words.append(
            letter + (number if not number or (arc % 7 in (2, 3, 4) and arc >= 0) else f"{float(number) * size:g}")
        )
    return " ".join(words)
