"""The top of the page: how many nodes, how they are, and how much of that is known."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from agent.fleet.page.scene import LOOKS, FleetScene, Nodes, counted, looks
from agent.fleet.page.signs import WORDS, sign
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
    made = bar([(each, shown.get(each, 0)) for each in LOOKS])
    made.set("class", "bar whole")
    return made


def _counts(shown: dict[str, int], total: int) -> Element:
    items = [
        el(
            "li",
            sign(each),
            el("b", number(shown[each])),
            f" {WORDS[each]} ",
            el("i", share(shown[each], total)),
            data_look=each,
        )
        for each in LOOKS
        if shown.get(each)
    ]
    return el("ul", *items, class_="counts")
