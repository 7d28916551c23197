"""One file with everything in it: it loads nothing and asks nobody.

What matters is in the text of the page and is read without a script. The script draws the map, finds nodes, and opens
what is known of one at the side.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from pkgutil import get_data
from urllib.parse import quote
from xml.etree.ElementTree import Element, tostring

from agent.fleet.page.data import embedded
from agent.fleet.page.heatmap import the_map
from agent.fleet.page.overview import glance, nodes_of
from agent.fleet.page.scene import FleetScene
from agent.fleet.page.sections import coverage, section, skew
from agent.outputs.html.elements import el

SCRIPTS = ("unpack.js", "match.js", "layout.js", "map.js", "list.js", "panel.js", "take.js", "start.js")


def page(scene: FleetScene) -> str:
    """HTML 5, the same bytes for the same scene."""
    script = '"use strict";\n(() => {\n' + "".join(_own(f"js/{each}") for each in SCRIPTS) + "})();\n"
    panel = el(
        "aside", el("button", "Close", type="button"), el("div", class_="inside"), id="panel", hidden="hidden",
        aria_label="what is known of a node",
    )  # fmt: skip
    body = el("body", el("a", "To the nodes", href="#nodes", class_="skip"), glance(scene), _main(scene))
    style = _house("palette.css") + _house("page.css") + _own("page.css") + _widths(body)
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=policy(script, style)),
        el("title", f"{scene.title} - fabricscope"),
        _raw("style", style),
    )
    data = el("script", id="data", type="application/json")
    data.text = embedded(scene)
    body.extend([_footer(scene), panel, data, _raw("script", script)])
    return "<!DOCTYPE html>\n" + tostring(el("html", head, body, lang="en"), encoding="unicode", method="html") + "\n"


def policy(script: str, style: str) -> str:
    """Nothing from outside, and no script and no style but these, whatever a name in the data holds."""
    rest = "base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; {rest}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _widths(body: Element) -> str:
    """A rule for each width of a part of a bar: inline styles have no hash."""
    words = {word for part in body.iter("span") for word in (part.get("class") or "").split()}
    counts = sorted(int(word[5:]) for word in words if word.startswith("grow-"))
    return "".join(f".grow-{count} {{ flex-grow: {count}; }}\n" for count in counts)


def _main(scene: FleetScene) -> Element:
    main = el("main", _contents(scene))
    main.extend(the_map(scene))
    main.extend(nodes_of(scene))
    for each in scene.sections:
        main.extend(section(each, scene))
    main.extend(skew(scene))
    main.extend(coverage(scene))
    return main


def _contents(scene: FleetScene) -> Element:
    """Where the parts are, with how much is in each."""
    links = [("Map", "map", ""), ("Nodes", "nodes", "")]
    links += [(each.title, each.anchor, f" {len(each.said)}" if each.said else "") for each in scene.sections]
    links += [("Versions", "versions", "")] if scene.skew else []
    links += [("Coverage", "coverage", "")] if scene.coverage else []
    return el("nav", *_joined([el("a", title + count, href=f"#{anchor}") for title, anchor, count in links]))


def _joined(parts: list[Element]) -> Iterator[Element | str]:
    for at, each in enumerate(parts):
        if at:
            yield " · "
        yield each


def _footer(scene: FleetScene) -> Element:
    made = f"fabricscope {scene.version}, made {scene.made}"
    return el("footer", el("p", made), el("p", "Every rule in words: fabricscope explain RULE"))


def _raw(tag: str, text: str) -> Element:
    """Our own style or script: what `method="html"` writes as it is."""
    made = Element(tag)
    made.text = text
    return made


def _own(name: str) -> str:
    return (get_data(__package__ or "", name) or b"").decode()


def _house(name: str) -> str:
    """Style that this page shares with the page of one node."""
    return (get_data("agent.outputs.html", name) or b"").decode()


SUFFIX = ".html"
MOST = 1_000_000  # entries of the folder


def pages(folder: str, output: str | None) -> dict[str, str]:
    """Node -> address, as seen from the page that is written (else from the current folder). Raises OSError."""
    start = os.path.dirname(os.path.abspath(output)) if output else os.getcwd()
    before = os.path.relpath(os.path.abspath(folder), start)
    found: dict[str, str] = {}
    clusters = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= MOST:
                break
            if entry.name.endswith(SUFFIX) and entry.is_file():
                found[entry.name.removesuffix(SUFFIX)] = _address(before, entry.name)
            elif entry.is_dir():
                clusters.append(entry.name)
    for cluster in clusters:
        try:
            names = os.listdir(os.path.join(folder, cluster))
        except OSError:
            continue  # a folder of somebody else's
        for name in names[:MOST]:
            if name.endswith(SUFFIX):
                found[f"{cluster}/{name.removesuffix(SUFFIX)}"] = _address(before, cluster, name)
    return found


def _address(before: str, *names: str) -> str:
    """Relative, and never anything else: the dot keeps a name with a colon from being read as a scheme."""
    path = "/".join(names if before == "." else (before, *names))
    return ("" if path.startswith("../") else "./") + quote(path.encode("utf-8", "surrogateescape"), safe="/")
