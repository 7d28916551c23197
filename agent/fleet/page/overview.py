"""The top of the page: how many nodes, their state, how much of that is known; the list of nodes, worst first; the
heatmap, one cell per node.

An icon for every state is a shape, so that colour is never all that separates states. Shapes are relative paths in a
square of 1 x 1; the script draws the same ones, scaled, from the same texts. The table of the heatmap states the same
in numbers, and is what is read where there is no script or no picture.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from agent.fleet.page.scene import (
    LOOKS,
    CodedColumn,
    FleetScene,
    Nodes,
    encode_spans,
    list_looks,
    sort_worst_first,
)
from agent.fleet.text.parts import count, number
from agent.model.labels import group_by_key
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
LOUD = ("critical", "error", "warning")
WORST = 25
NAMED = 3  # findings that a row names
LISTED = 400  # places in the table: the worst are kept


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


def render_overview(scene: FleetScene) -> Element:
    """Title, one sentence, a bar and its counts, what the dataset could not show."""
    theme = el("button", "Theme: auto", id="theme", type="button", class_="scripted")
    look_counts = Counter(list_looks(scene.nodes))
    title = el("div", el("h1", scene.title), el("p", _describe_times(scene), class_="dim"))
    header = el(
        "header", el("div", title, theme, class_="top"), el("p", render_verdict(scene, look_counts), class_="first")
    )
    if scene.nodes.names:
        header.extend(
            [
                _render_verdict_bar(look_counts),
                _render_counts(look_counts, len(scene.nodes.names)),
            ]
        )
    header.extend(el("p", note, class_="note") for note in scene.notes)
    return header


def render_verdict(scene: FleetScene, look_counts: dict[str, int]) -> str:
    """The fleet in a sentence or two."""
    total = len(scene.nodes.names)
    if not total:
        return "The dataset holds no node."
    bad = {word: look_counts[word] for word in LOUD if look_counts.get(word)}
    attention, ok = sum(bad.values()), look_counts.get("ok", 0)
    counts = ", ".join(f"{number(count)} {word}" for word, count in bad.items())
    sentence = (
        "No node needs attention."
        if not bad
        else (f"{count(attention, 'node')} {'needs' if attention == 1 else 'need'} attention: {counts}.")
    )
    sentence += f" {number(ok)} of {count(total, 'node')} {'is' if ok == 1 else 'are'} ok."
    if idle := look_counts.get("nothing_to_check", 0):
        sentence += f" {number(idle)} {'has' if idle == 1 else 'have'} nothing to check."
    unknown, stale = look_counts.get("unknown", 0), sum(scene.nodes.stale)
    unsure = [f"{number(unknown)} could not be checked"] if unknown else []
    unsure += [f"{number(stale)} {_is(stale)} stale (no report for {scene.stale_after_hours:g} h)"] if stale else []
    above = stale - look_counts.get("stale", 0)
    sentence += f" {' and '.join(unsure)}: not counted as ok." if unsure else ""
    sentence += f" {number(above)} of the stale {_is(above)} among those that need attention." if above else ""
    if scene.quarantined:
        sentence += (
            f" {number(scene.quarantined)} {'report' if scene.quarantined == 1 else 'reports'} could not be read."
        )
    elif scene.quarantined is None:
        sentence += " How many reports could not be read is not known."
    return sentence


def share(part: int, of: int) -> str:
    """In percent; never 0% or 100% where it is not that.

    >>> share(1, 3), share(1, 9999), share(9999, 10000), share(5, 5)
    ('33%', '< 1%', '> 99%', '100%')
    """
    percent = 100 * part / of if of else 0.0
    if 0 < percent < 1:
        return "< 1%"
    return "> 99%" if 99 < percent < 100 else f"{percent:.0f}%"


def render_bar(counts: list[tuple[str, int]]) -> Element:
    """Parts of a whole, as wide as they are many; none that is there is too thin to be seen."""
    parts = [el("span", class_=f"part {look} grow-{count}") for look, count in counts if count]
    return el("span", *parts, class_="bar", aria_hidden="true")


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _describe_times(scene: FleetScene) -> str:
    newest = f", latest report {scene.newest}" if scene.newest else ""
    nodes, classes = count(len(scene.nodes.names), "node"), count(len(scene.nodes.classes.labels), "hardware class")
    return f"{nodes} in {classes}; made {scene.made}{newest}"


def _render_verdict_bar(look_counts: dict[str, int]) -> Element:
    element = render_bar([(look, look_counts.get(look, 0)) for look in LOOKS])
    element.set("class", "bar whole")
    return element


def _render_counts(look_counts: dict[str, int], total: int) -> Element:
    items = [
        el(
            "li",
            sign(look),
            el("b", number(look_counts[look])),
            f" {WORDS[look]} ",
            el("i", share(look_counts[look], total)),
            data_look=look,
        )
        for look in LOOKS
        if look_counts.get(look)
    ]
    return el("ul", *items, class_="counts")


def render_nodes(scene: FleetScene) -> Iterator[Element]:
    """Heading, the script's place, the worst nodes in text."""
    yield el("h2", "Nodes, worst first", id="nodes")
    worst = sort_worst_first(scene.nodes)
    if not worst:
        empty_text = "No node has a finding." if scene.nodes.names else "None."
        yield el("p", empty_text, class_="unscripted")
    yield el("div", id="list", class_="scripted block")
    if worst:
        node_looks = list_looks(scene.nodes)
        body = [_render_node(scene.nodes, at, node_looks[at]) for at in worst[:WORST]]
        head = el("tr", *[el("th", heading, scope="col") for heading in ("", "node", "why", "class", "last seen")])
        table = el("table", el("thead", head), el("tbody", *body), class_="who")
        rest = len(worst) - WORST
        more = el("p", f"and {count(rest, 'node')} more", class_="dim") if rest > 0 else None
        yield el("div", el("div", table, class_="scroll"), more, class_="unscripted")


def describe_state(nodes: Nodes, at: int, look: str) -> str:
    """A node's state in a few words."""
    code = nodes.found_codes[at] if nodes.found_codes else -1
    node_findings = [nodes.found[finding] for finding in nodes.found_sets[code]] if code >= 0 else []
    loud = [finding for finding in node_findings if finding.severity != "info" and finding.silenced is None]
    reasons = [f"{finding.label}: {finding.rule}" for finding in loud[:NAMED]]
    reasons += [f"and {number(len(loud) - NAMED)} more"] if len(loud) > NAMED else []
    reasons += [nodes.lost_gpus[at][1]] if at in nodes.lost_gpus else []
    reasons += ["stale"] if nodes.stale[at] else []
    reasons += ["could not be checked"] if look == "unknown" else []
    return ", ".join(reasons)


def _render_node(nodes: Nodes, at: int, look: str) -> Element:
    seen = next((fact for fact in nodes.facts if fact.key == "seen"), None)
    place = nodes.classes.codes[at]
    name = nodes.names[at]
    address = nodes.pages.get(at)
    return el(
        "tr",
        el("td", sign(look), f" {look}"),
        el("td", el("a", name, href=address) if address else name, class_="mono"),
        el("td", describe_state(nodes, at, look)),
        el("td", nodes.classes.labels[place] if place >= 0 else "not known"),
        el("td", seen.labels[seen.codes[at]] if seen and seen.codes[at] >= 0 else ""),
    )


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
    node_looks = list_looks(nodes)
    members = group_by_key((code, at) for at, code in enumerate(by.codes))
    order = sorted(members, key=lambda code: (code < 0, code))
    return [_count_place(by.labels[code] if code >= 0 else "not known", members[code], node_looks) for code in order]


def _count_place(label: str, members: list[int], node_looks: list[str]) -> PlaceCounts:
    counts = Counter(node_looks[at] for at in members)
    return PlaceCounts(label, members, tuple(counts[look] for look in LOOKS))


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
    body = [_render_place(place_counts) for place_counts in places]
    about = f"As a table, by {by.title}" + (
        f": the worst {LISTED} of {number(len(all_places))}" if places != all_places else ""
    )
    table = el("table", el("thead", head), el("tbody", *body), class_="numbers")
    scroll = el("div", table, class_="scroll", tabindex=0, role="region", aria_label=about)
    return el("details", el("summary", about), scroll)


def _render_place(row: PlaceCounts) -> Element:
    return el(
        "tr",
        el("th", row.label, scope="row"),
        el("td", number(len(row.nodes))),
        *[el("td", number(count) if count else "", class_=None if count else "dim") for count in row.counts],
        el("td", render_bar(list(zip(LOOKS, row.counts, strict=True)))),
        data_nodes=encode_spans(row.nodes),
    )
