"""The list of nodes, worst first. The script's list is of all nodes; without it the worst are read here."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.fleet.page.glance import nodes as in_words
from agent.fleet.page.glance import number
from agent.fleet.page.scene import FleetScene, Nodes, looks, worst_first
from agent.fleet.page.signs import sign
from agent.outputs.html.elements import el

WORST = 25
NAMED = 3  # findings that a row names


def nodes_of(scene: FleetScene) -> Iterator[Element]:
    """Heading, the script's place, the worst nodes in text."""
    yield el("h2", "Nodes, worst first", id="nodes")
    worst = worst_first(scene.nodes)
    if not worst:
        said = "No node has a finding." if scene.nodes.names else "None."
        yield el("p", said, class_="unscripted")
    yield el("div", id="list", class_="scripted block")
    if worst:
        shown = looks(scene.nodes)
        body = [_row(scene.nodes, at, shown[at]) for at in worst[:WORST]]
        head = el("tr", *[el("th", each, scope="col") for each in ("", "node", "why", "class", "last seen")])
        table = el("table", el("thead", head), el("tbody", *body), class_="who")
        rest = len(worst) - WORST
        more = el("p", f"and {in_words(rest)} more", class_="dim") if rest > 0 else None
        yield el("div", el("div", table, class_="scroll"), more, class_="unscripted")


def why(nodes: Nodes, at: int, shown: str) -> str:
    """A node's state in a few words."""
    code = nodes.found_codes[at] if nodes.found_codes else -1
    found = [nodes.found[each] for each in nodes.found_sets[code]] if code >= 0 else []
    loud = [each for each in found if each.severity != "info"]
    told = [f"{each.label}: {each.rule}" for each in loud[:NAMED]]
    told += [f"and {number(len(loud) - NAMED)} more"] if len(loud) > NAMED else []
    told += ["stale"] if nodes.stale[at] else []
    told += ["could not be checked"] if shown == "unknown" else []
    return ", ".join(told)


def _row(nodes: Nodes, at: int, shown: str) -> Element:
    seen = next((each for each in nodes.facts if each.key == "seen"), None)
    place = nodes.classes.codes[at]
    name = nodes.names[at]
    address = nodes.pages.get(at)
    return el(
        "tr",
        el("td", sign(shown), f" {shown}"),
        el("td", el("a", name, href=address) if address else name, class_="mono"),
        el("td", why(nodes, at, shown)),
        el("td", nodes.classes.labels[place] if place >= 0 else "not known"),
        el("td", seen.labels[seen.codes[at]] if seen and seen.codes[at] >= 0 else ""),
    )
