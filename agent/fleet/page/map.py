"""The map: a cell a node. The script draws it; its table says the same in numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.fleet.page.data import spans
from agent.fleet.page.glance import bar, number
from agent.fleet.page.heat import PlaceCounts, default_place, rows
from agent.fleet.page.scene import LOOKS, Coded, FleetScene, Nodes
from agent.fleet.page.signs import SHAPES, sign
from agent.outputs.html.elements import el

LISTED = 400  # places in the table: the worst are kept


def the_map(scene: FleetScene) -> Iterator[Element]:
    """Its controls, the place where it is drawn, and its table."""
    nodes = scene.nodes
    if not nodes.names:
        return
    yield el("h2", "Map", id="map")
    by = default_place(nodes)
    yield _controls(nodes, by)
    drawn = el("div", id="drawn", tabindex=0, role="application", aria_label=_how(), aria_describedby="told",
               class_="scripted block", data_signs=json.dumps(SHAPES))  # fmt: skip
    yield el("div", drawn, el("div", id="tip", hidden="hidden"), class_="stage")
    yield el("p", "", id="told", aria_live="polite", class_="dim scripted block")
    yield el("div", id="legend", class_="key scripted block")
    yield _table(nodes, by)
    if by is not nodes.classes:
        yield _table(nodes, nodes.classes)


def _how() -> str:
    return "map of nodes: arrow keys move, Enter opens a node; the table below has the same in numbers"


def _controls(nodes: Nodes, by: Coded) -> Element:
    arranged = [(each.key, f"by {each.title}") for each in (*nodes.places, nodes.classes)]
    arranged += [("name", "by name")]
    if any(nodes.rails.sets):
        arranged += [("rails", f"rails, by {by.title}")]
        arranged += [("leaves", "rails, by leaf switch")] if nodes.rails.leaves else []
    place = [el("option", text, value=key, selected="selected" if key == by.key else None) for key, text in arranged]
    return el(
        "div",
        el("label", "Find ", el("input", id="find", type="search", autocomplete="off", spellcheck="false",
                                 placeholder="host, gpu[001-032], class, rule, verdict", aria_describedby="how"),
           class_="wide"),
        el("label", "Arranged ", el("select", *place, id="arranged")),
        el("label", "Coloured ", el("select", id="coloured")),
        el("label", el("input", id="only", type="checkbox"), " hide non-matching"),
        el("button", "Show all", id="all", type="button", hidden="hidden"),
        el("span", "All words must match: host names, host lists, classes, rules, verdicts; !word excludes.",
           id="how", class_="dim how"),
        el("span", "", id="hits", role="status"),
        el("span", el("button", "Copy hosts", id="hosts", type="button"),
           el("button", "Copy drain command", id="drain", type="button", hidden="hidden"),
           el("button", "Download CSV", id="csv", type="button"), class_="actions"),
        class_="controls scripted block",
    )  # fmt: skip


def _table(nodes: Nodes, by: Coded) -> Element:
    found = rows(nodes, by)
    kept = found
    if len(found) > LISTED:
        worst = sorted(range(len(found)), key=lambda at: ([-each for each in found[at].counts[:-2]], at))[:LISTED]
        kept = [found[at] for at in sorted(worst)]
    heads = [el("th", sign(look), f" {look.replace('_', ' ')}", scope="col") for look in LOOKS]
    head = el("tr", el("th", by.title, scope="col"), el("th", "nodes", scope="col"), *heads, el("th", ""))
    body = [_row(each) for each in kept]
    about = f"As a table, by {by.title}" + (f": the worst {LISTED} of {number(len(found))}" if kept != found else "")
    table = el("table", el("thead", head), el("tbody", *body), class_="numbers")
    scroll = el("div", table, class_="scroll", tabindex=0, role="region", aria_label=about)
    return el("details", el("summary", about), scroll)


def _row(row: PlaceCounts) -> Element:
    return el(
        "tr",
        el("th", row.label, scope="row"),
        el("td", number(len(row.nodes))),
        *[el("td", number(count) if count else "", class_=None if count else "dim") for count in row.counts],
        el("td", bar(list(zip(LOOKS, row.counts, strict=True)))),
        data_nodes=spans(row.nodes),
    )
