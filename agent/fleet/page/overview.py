"""The top of the page: how many nodes, their state, how much of that is known; and the list of nodes, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.fleet.page.icons import WORDS, sign
from agent.fleet.page.scene import LOOKS, FleetScene, Nodes, count_values, list_looks, sort_worst_first
from agent.outputs.html.elements import el

LOUD = ("critical", "error", "warning")


def render_overview(scene: FleetScene) -> Element:
    """Title, one sentence, a bar and its counts, what the dataset could not show."""
    theme = el("button", "Theme: auto", id="theme", type="button", class_="scripted")
    look_counts = count_values(list_looks(scene.nodes))
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
        else (f"{format_nodes(attention)} {'needs' if attention == 1 else 'need'} attention: {counts}.")
    )
    sentence += f" {number(ok)} of {format_nodes(total)} {'is' if ok == 1 else 'are'} ok."
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


def number(count: int) -> str:
    """With a comma at thousands."""
    return f"{count:,}"


def format_nodes(count: int) -> str:
    """A count of nodes in words."""
    return f"{number(count)} node{'' if count == 1 else 's'}"


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
    return f"{format_nodes(len(scene.nodes.names))} in {_format_classes(scene.nodes)}; made {scene.made}{newest}"


def _format_classes(known: Nodes) -> str:
    count = len(known.classes.labels)
    return f"{number(count)} hardware class{'' if count == 1 else 'es'}"


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


WORST = 25
NAMED = 3  # findings that a row names


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
        body = [_render_row(scene.nodes, at, node_looks[at]) for at in worst[:WORST]]
        head = el("tr", *[el("th", heading, scope="col") for heading in ("", "node", "why", "class", "last seen")])
        table = el("table", el("thead", head), el("tbody", *body), class_="who")
        rest = len(worst) - WORST
        more = el("p", f"and {format_nodes(rest)} more", class_="dim") if rest > 0 else None
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


def _render_row(nodes: Nodes, at: int, look: str) -> Element:
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
