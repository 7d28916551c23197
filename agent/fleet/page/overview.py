"""The top of the page: how many nodes, their state, how much of that is known; and the list of nodes, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.fleet.page.icons import WORDS, sign
from agent.fleet.page.scene import LOOKS, FleetScene, Nodes, counted, looks, worst_first
from agent.outputs.html.elements import el

LOUD = ("critical", "error", "warning")


def glance(scene: FleetScene) -> Element:
    """Title, one sentence, a bar and its counts, what the dataset could not tell."""
    theme = el("button", "Theme: auto", id="theme", type="button", class_="scripted")
    shown = counted(looks(scene.nodes))
    title = el("div", el("h1", scene.title), el("p", _when(scene), class_="dim"))
    header = el("header", el("div", title, theme, class_="top"), el("p", verdict(scene, shown), class_="first"))
    if scene.nodes.names:
        header.extend([_bar(shown, len(scene.nodes.names)), _counts(shown, len(scene.nodes.names))])
    header.extend(el("p", note, class_="note") for note in scene.notes)
    return header


def verdict(scene: FleetScene, shown: dict[str, int]) -> str:
    """The fleet in a sentence or two."""
    total = len(scene.nodes.names)
    if not total:
        return "The dataset holds no node."
    bad = {word: shown[word] for word in LOUD if shown.get(word)}
    attention, ok = sum(bad.values()), shown.get("ok", 0)
    counts = ", ".join(f"{number(count)} {word}" for word, count in bad.items())
    told = (
        "No node needs attention."
        if not bad
        else (f"{nodes(attention)} {'needs' if attention == 1 else 'need'} attention: {counts}.")
    )
    told += f" {number(ok)} of {nodes(total)} {'is' if ok == 1 else 'are'} ok."
    if idle := shown.get("nothing_to_check", 0):
        told += f" {number(idle)} {'has' if idle == 1 else 'have'} nothing to check."
    unknown, stale = shown.get("unknown", 0), sum(scene.nodes.stale)
    unsure = [f"{number(unknown)} could not be checked"] if unknown else []
    unsure += [f"{number(stale)} {_is(stale)} stale (no report for {scene.stale_after_hours:g} h)"] if stale else []
    above = stale - shown.get("stale", 0)
    told += f" {' and '.join(unsure)}: not counted as ok." if unsure else ""
    told += f" {number(above)} of the stale {_is(above)} among those that need attention." if above else ""
    if scene.quarantined:
        told += f" {number(scene.quarantined)} {'report' if scene.quarantined == 1 else 'reports'} could not be read."
    elif scene.quarantined is None:
        told += " How many reports could not be read is not known."
    return told


def number(count: int) -> str:
    """With a comma at thousands."""
    return f"{count:,}"


def nodes(count: int) -> str:
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


def bar(counts: list[tuple[str, int]]) -> Element:
    """Parts of a whole, as wide as they are many; none that is there is too thin to be seen."""
    parts = [el("span", class_=f"part {look} grow-{count}") for look, count in counts if count]
    return el("span", *parts, class_="bar", aria_hidden="true")


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _when(scene: FleetScene) -> str:
    newest = f", latest report {scene.newest}" if scene.newest else ""
    return f"{nodes(len(scene.nodes.names))} in {_classes(scene.nodes)}; made {scene.made}{newest}"


def _classes(known: Nodes) -> str:
    count = len(known.classes.labels)
    return f"{number(count)} hardware class{'' if count == 1 else 'es'}"


def _bar(shown: dict[str, int], total: int) -> Element:
    made = bar([(look, shown.get(look, 0)) for look in LOOKS])
    made.set("class", "bar whole")
    return made


def _counts(shown: dict[str, int], total: int) -> Element:
    items = [
        el(
            "li",
            sign(look),
            el("b", number(shown[look])),
            f" {WORDS[look]} ",
            el("i", share(shown[look], total)),
            data_look=look,
        )
        for look in LOOKS
        if shown.get(look)
    ]
    return el("ul", *items, class_="counts")


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
        more = el("p", f"and {nodes(rest)} more", class_="dim") if rest > 0 else None
        yield el("div", el("div", table, class_="scroll"), more, class_="unscripted")


def why(nodes: Nodes, at: int, shown: str) -> str:
    """A node's state in a few words."""
    code = nodes.found_codes[at] if nodes.found_codes else -1
    found = [nodes.found[each] for each in nodes.found_sets[code]] if code >= 0 else []
    loud = [finding for finding in found if finding.severity != "info" and finding.silenced is None]
    told = [f"{finding.label}: {finding.rule}" for finding in loud[:NAMED]]
    told += [f"and {number(len(loud) - NAMED)} more"] if len(loud) > NAMED else []
    told += ["stale"] if nodes.stale[at] else []
    told += ["could not be checked"] if shown == "unknown" else []
    return ", ".join(told)


def _row(nodes: Nodes, at: int, shown: str) -> Element:
    seen = next((fact for fact in nodes.facts if fact.key == "seen"), None)
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
