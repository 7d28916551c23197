"""The machine as one SVG file, for embedding in pages, tickets and wikis.

Colours are written out, once for light and once for dark pages: many SVG readers do not support variables.
"""

from __future__ import annotations

import re
from pkgutil import get_data
from xml.etree.ElementTree import Element, tostring

from agent.model.report import Report
from agent.outputs.html.elements import el
from agent.outputs.html.picture import draw_picture
from agent.outputs.html.scene import build_scene

_COLOURS = re.compile(r"--([a-z-]{1,20}): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")


def export(report: Report) -> str:
    """SVG 1.1 with its own style; one sentence for a machine without GPU and NIC."""
    drawn = draw_picture(report, build_scene(report), anchors=False)
    drawn = _empty_picture(report) if drawn is None else drawn
    drawn.set("xmlns", "http://www.w3.org/2000/svg")
    style = el("style")
    light, dark = _picture_style(1), _picture_style(2)
    style.text = f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    drawn.insert(0, style)
    drawn.insert(1, el("rect", width="100%", height="100%", class_="paper"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(drawn, encoding="unicode")}\n'


def apply_palette(rules: str, which: int) -> str:
    """Style rules with the palette's colours for a light (1) or dark (2) page filled in."""
    palette = (get_data("agent.outputs.html", "palette.css") or b"").decode()
    known = {match[1]: match[which + 1] for match in _COLOURS.finditer(palette)}
    return re.sub(r"var\(--([a-z-]{1,20})\)", lambda match: known[match[1]], rules)


def _picture_style(which: int) -> str:
    rules = (get_data("agent.outputs.html", "picture.css") or b"").decode()
    return apply_palette(rules + ".machine .paper { fill: var(--paper); }\n", which)


def _empty_picture(report: Report) -> Element:
    caption = f"{report.node.hostname or 'this node'}: no GPU and no RDMA NIC known"
    text = el("text", caption, x=12, y=24, class_="small")
    return el("svg", text, viewBox="0 0 600 40", width=600, height=40, class_="machine", role="img", aria_label=caption)
