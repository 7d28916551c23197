"""One file with everything in it: it loads nothing and sends nothing.

What matters is in the text of the page and is read without a script. The script draws the map, finds nodes, and opens
what is known of one at the side.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pkgutil import get_data
from urllib.parse import quote
from xml.etree.ElementTree import Element

from agent.fleet.cluster.picture import STYLE
from agent.fleet.page.hops import render_picture, render_switches
from agent.fleet.page.overview import render_map, render_nodes, render_overview
from agent.fleet.page.scene import FleetScene, encode_scene
from agent.fleet.page.sections import render_coverage, render_section, render_skew
from agent.outputs.html.document import read_styles, write_document
from agent.outputs.html.elements import el

SCRIPTS = ("unpack.js", "match.js", "layout.js", "map.js", "list.js", "panel.js", "take.js", "start.js")


def page(scene: FleetScene) -> str:
    """HTML 5, the same bytes for the same scene."""
    script = '"use strict";\n(() => {\n' + "".join(_read_asset(f"js/{script}") for script in SCRIPTS) + "})();\n"
    panel = el(
        "aside", el("button", "Close", type="button"), el("div", class_="inside"), id="panel", hidden="hidden",
        aria_label="what is known of a node",
    )  # fmt: skip
    body = el(
        "body", el("a", "To the nodes", href="#nodes", class_="skip"), render_overview(scene), _render_main(scene)
    )
    style = read_styles("palette.css", "page.css") + _read_asset("page.css") + _format_widths(body)
    style += STYLE if scene.hops is not None else ""
    data = el("script", id="data", type="application/json")
    data.text = encode_scene(scene)
    body.extend([_render_footer(scene), panel, data])
    return write_document(scene.title, style, body, script)


def _format_widths(body: Element) -> str:
    """A rule for each width of a part of a bar: inline styles have no hash."""
    words = {word for part in body.iter("span") for word in (part.get("class") or "").split()}
    counts = sorted(int(word[5:]) for word in words if word.startswith("grow-"))
    return "".join(f".grow-{count} {{ flex-grow: {count}; }}\n" for count in counts)


def _render_main(scene: FleetScene) -> Element:
    main = el("main", _render_contents(scene))
    main.extend(render_map(scene))
    main.extend(render_nodes(scene))
    for part in scene.sections:
        elements = list(render_section(part, scene))
        if scene.hops is not None and part is scene.hops.section:
            elements[2:2] = [render_picture(scene.hops)]  # below the heading and its note
            elements += render_switches(scene.hops)
        main.extend(elements)
    main.extend(render_skew(scene))
    main.extend(render_coverage(scene))
    return main


def _render_contents(scene: FleetScene) -> Element:
    """Where the parts are, with how much is in each."""
    links = [("Map", "map", ""), ("Nodes", "nodes", "")]
    links += [
        (section.title, section.anchor, f" {len(section.said)}" if section.said else "") for section in scene.sections
    ]
    links += [("Versions", "versions", "")] if scene.skew else []
    links += [("Coverage", "coverage", "")] if scene.coverage else []
    return el("nav", *_join_elements([el("a", title + count, href=f"#{anchor}") for title, anchor, count in links]))


def _join_elements(parts: list[Element]) -> Iterator[Element | str]:
    for at, part in enumerate(parts):
        if at:
            yield " · "
        yield part


def _render_footer(scene: FleetScene) -> Element:
    text = f"fabricscope {scene.version}, made {scene.made}"
    return el("footer", el("p", text), el("p", "Every rule in words: fabricscope explain RULE"))


def _read_asset(name: str) -> str:
    return (get_data(__package__ or "", name) or b"").decode()


SUFFIX = ".html"
MOST = 1_000_000  # entries of the folder


def render_pages(folder: str, output: str | None) -> dict[str, str]:
    """Node -> address, as seen from the page that is written (else from the current folder). Raises OSError."""
    start = os.path.dirname(os.path.abspath(output)) if output else os.getcwd()
    before = os.path.relpath(os.path.abspath(folder), start)
    files: dict[str, str] = {}
    clusters = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= MOST:
                break
            if entry.name.endswith(SUFFIX) and entry.is_file():
                files[entry.name.removesuffix(SUFFIX)] = _format_address(before, entry.name)
            elif entry.is_dir():
                clusters.append(entry.name)
    for cluster in clusters:
        try:
            names = os.listdir(os.path.join(folder, cluster))
        except OSError:
            continue  # a folder of someone else's
        for name in names[:MOST]:
            if name.endswith(SUFFIX):
                files[f"{cluster}/{name.removesuffix(SUFFIX)}"] = _format_address(before, cluster, name)
    return files


def _format_address(before: str, *names: str) -> str:
    """Relative, and never anything else: the dot keeps a name with a colon from being read as a scheme."""
    path = "/".join(names if before == "." else (before, *names))
    return ("" if path.startswith("../") else "./") + quote(path.encode("utf-8", "surrogateescape"), safe="/")
