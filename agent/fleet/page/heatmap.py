"""The heatmap: one cell per node, an icon per state, and the table that states the same in numbers.

Icons are relative paths in a square of 1 x 1, so that colour is never all that separates states; the script draws the
same ones, scaled. The table is what is read where there is no script or no picture.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from agent.fleet.page.data import encode_spans
from agent.fleet.page.icons import SHAPES, sign
from agent.fleet.page.overview import number, render_bar
from agent.fleet.page.scene import LOOKS, CodedColumn, FleetScene, Nodes, list_looks
from agent.outputs.html.elements import el


class PlaceCounts(NamedTuple):
    """One place. `counts`: a number for each of `LOOKS`."""

    label: str
    nodes: list[int]
    counts: tuple[int, ...]


def choose_default_place(nodes: Nodes) -> CodedColumn:
    """How the map is arranged at first: by the first way that places most nodes, else by class."""
    for place in nodes.places:
        if sum(code >= 0 for code in place.codes) * 2 > len(place.codes):
            return place
    return nodes.classes


def place_rows(nodes: Nodes, by: CodedColumn) -> list[PlaceCounts]:
    """One row per place in the order of its labels, nodes without one at the end."""
    look_codes = [LOOKS.index(look) for look in list_looks(nodes)]
    members: dict[int, list[int]] = {}
    for at, code in enumerate(by.codes):
        members.setdefault(code, []).append(at)
    order = sorted(members, key=lambda code: (code < 0, code))
    return [_count_place(by.labels[code] if code >= 0 else "not known", members[code], look_codes) for code in order]


def _count_place(label: str, members: list[int], look_codes: list[int]) -> PlaceCounts:
    counts = [0] * len(LOOKS)
    for at in members:
        counts[look_codes[at]] += 1
    return PlaceCounts(label, members, tuple(counts))


LISTED = 400  # places in the table: the worst are kept


def render_map(scene: FleetScene) -> Iterator[Element]:
    """Its controls, the place where it is drawn, and its table."""
    nodes = scene.nodes
    if not nodes.names:
        return
    yield el("h2", "Map", id="map")
    by = choose_default_place(nodes)
    yield _render_controls(nodes, by)
    drawn = el("div", id="drawn", tabindex=0, role="application", aria_label=_format_how(), aria_describedby="told",
               class_="scripted block", data_signs=json.dumps(SHAPES))  # fmt: skip
    yield el("div", drawn, el("div", id="tip", hidden="hidden"), class_="stage")
    yield el("p", "", id="told", aria_live="polite", class_="dim scripted block")
    yield el("div", id="legend", class_="key scripted block")
    yield _render_table(nodes, by)
    if by is not nodes.classes:
        yield _render_table(nodes, nodes.classes)


def _format_how() -> str:
    return "map of nodes: arrow keys move, Enter opens a node; the table below has the same in numbers"


def _render_controls(nodes: Nodes, by: CodedColumn) -> Element:
    arranged = [(coded.key, f"by {coded.title}") for coded in (*nodes.places, nodes.classes)]
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
           el("button", "Download CSV", id="csv", type="button"),
           el("button", "Copy link", id="link", type="button", title="A link to this view"), class_="actions"),
        class_="controls scripted block",
    )  # fmt: skip


def _render_table(nodes: Nodes, by: CodedColumn) -> Element:
    all_places = place_rows(nodes, by)
    places = all_places
    if len(all_places) > LISTED:
        worst = sorted(range(len(all_places)), key=lambda at: ([-count for count in all_places[at].counts[:-2]], at))[
            :LISTED
        ]
        places = [all_places[at] for at in sorted(worst)]
    heads = [el("th", sign(look), f" {look.replace('_', ' ')}", scope="col") for look in LOOKS]
    head = el("tr", el("th", by.title, scope="col"), el("th", "nodes", scope="col"), *heads, el("th", ""))
    body = [_render_row(place_counts) for place_counts in places]
    about = f"As a table, by {by.title}" + (
        f": the worst {LISTED} of {number(len(all_places))}" if places != all_places else ""
    )
    table = el("table", el("thead", head), el("tbody", *body), class_="numbers")
    scroll = el("div", table, class_="scroll", tabindex=0, role="region", aria_label=about)
    return el("details", el("summary", about), scroll)


def _render_row(row: PlaceCounts) -> Element:
    return el(
        "tr",
        el("th", row.label, scope="row"),
        el("td", number(len(row.nodes))),
        *[el("td", number(count) if count else "", class_=None if count else "dim") for count in row.counts],
        el("td", render_bar(list(zip(LOOKS, row.counts, strict=True)))),
        data_nodes=encode_spans(row.nodes),
    )
