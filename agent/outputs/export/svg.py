"""The machine as one SVG file: for a page of one's own, a ticket, a wiki.

Colours stand as they are in it, once for a light page and once for a dark one: many readers of SVG know no variables.
"""

from __future__ import annotations

import re
from pkgutil import get_data
from xml.etree.ElementTree import Element, tostring

from agent.model.report import Report
from agent.outputs.html.elements import el
from agent.outputs.html.picture import picture
from agent.outputs.html.scene import scene

_COLOURS = re.compile(r"--([a-z-]{1,20}): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")


def export(report: Report) -> str:
    """SVG 1.1 with its own style; a machine without GPU and NIC is one sentence."""
    drawn = picture(report, scene(report), anchors=False)
    drawn = _nothing(report) if drawn is None else drawn
    drawn.set("xmlns", "http://www.w3.org/2000/svg")
    style = el("style")
    light, dark = _style(1), _style(2)
    style.text = f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    drawn.insert(0, style)
    drawn.insert(1, el("rect", width="100%", height="100%", class_="paper"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(drawn, encoding="unicode")}\n'


def colours(rules: str, which: int) -> str:
    """Rules of a style with the palette's colours of a light page (1) or a dark one (2) in them."""
    palette = (get_data("agent.outputs.html", "palette.css") or b"").decode()
    known = {found[1]: found[which + 1] for found in _COLOURS.finditer(palette)}
    return re.sub(r"var\(--([a-z-]{1,20})\)", lambda found: known[found[1]], rules)


def _style(which: int) -> str:
    rules = (get_data("agent.outputs.html", "picture.css") or b"").decode()
    return colours(rules + ".machine .paper { fill: var(--paper); }\n", which)


def _nothing(report: Report) -> Element:
    said = f"{report.node.hostname or 'this node'}: no GPU and no RDMA NIC known"
    text = el("text", said, x=12, y=24, class_="small")
    return el("svg", text, viewBox="0 0 600 40", width=600, height=40, class_="machine", role="img", aria_label=said)
