"""What is said of nodes together: findings, outliers, drift, duplicates, the cluster; versions; coverage."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.fleet.hostlist import fold
from agent.fleet.page.data import spans
from agent.fleet.page.glance import bar, nodes, number, share
from agent.fleet.page.scene import Coverage, Said, Scene, Section, Skew
from agent.fleet.page.signs import sign
from agent.outputs.html.elements import el

LISTED = 60  # of a section; the rest is counted
OPEN = 12  # that are read without opening anything
HOSTS = 400  # letters of a folded host list
REASONS = 4
CLASSES = 40  # whose versions are listed


def section(told: Section, scene: Scene) -> Iterator[Element]:
    """A heading and an article each."""
    yield el("h2", told.title, id=told.anchor)
    if told.note:
        yield el("p", told.note, class_="dim")
    if not told.said:
        yield el("p", told.empty)
    articles = [_said(each, scene) for each in told.said[:LISTED]]
    yield from articles[:OPEN]
    rest = articles[OPEN:]
    if rest:
        left = len(told.said) - LISTED
        more = f" (and {number(left)} that are not on this page)" if left > 0 else ""
        yield el("details", el("summary", f"{number(len(rest))} more{more}"), *rest)


def skew(scene: Scene) -> Iterator[Element]:
    """Versions of drivers, firmware and the like that are not the same on all nodes of a class."""
    if not scene.skew:
        return
    yield el("h2", "Versions", id="versions")
    yield el("p", "What is not the same on all nodes of a hardware class.", class_="dim")
    by_class: dict[str, list[Skew]] = {}
    for each in scene.skew:
        by_class.setdefault(each.hardware_class, []).append(each)
    for name, found in list(by_class.items())[:CLASSES]:
        rows = [row for each in found for row in _versions(each, scene)]
        table = el("table", el("tbody", *rows), class_="versions")
        yield el("h3", f"{name}, {nodes(found[0].of)}")
        yield el("div", table, class_="scroll", tabindex=0, role="region", aria_label=f"versions of {name}")
    if len(by_class) > CLASSES:
        yield el("p", f"and {number(len(by_class) - CLASSES)} smaller classes", class_="dim")


def coverage(scene: Scene) -> Iterator[Element]:
    """How many nodes each rule was judged on, the least judged first."""
    if not scene.coverage:
        return
    yield el("h2", "Coverage", id="coverage")
    open_: list[Coverage] = []
    whole: list[Coverage] = []
    for each in scene.coverage:
        (open_ if each.unknown or each.stale else whole).append(each)
    said = f"{number(len(whole))} of {number(len(scene.coverage))} rules were judged on every node that they are about."
    yield el("p", said)
    if open_:
        heads = ("rule", "pass", "fail", "unknown", "stale", "not applicable", "", "why unknown")
        order = sorted(open_, key=lambda each: (-each.unknown, -each.stale, each.rule))
        head = el("tr", *[el("th", each, scope="col") for each in heads])
        table = el("table", el("thead", head), el("tbody", *map(_covered, order)), class_="numbers")
        scroll = el("div", table, class_="scroll", tabindex=0, role="region", aria_label="coverage")
        about = f"{number(len(open_))} rules that were not judged everywhere"
        yield el("details", el("summary", about), scroll, open="open" if len(open_) <= OPEN else None)


def hosts(told: list[int], scene: Scene) -> str:
    """Node numbers as a folded host list, cut where it is long."""
    text = fold(scene.nodes.names[at] for at in told)
    return text if len(text) <= HOSTS else f"{text[: HOSTS - 1]}…"


def _said(told: Said, scene: Scene) -> Element:
    head = el(
        "header",
        el("span", told.severity, class_=f"badge {told.severity}") if told.severity else None,
        el("code", told.about) if told.about else None,
        el("span", nodes(len(told.nodes))) if told.nodes else None,
        el("span", "a matter of the class", class_="dim") if told.whole_class else None,
        _shows(told.nodes, told.words) if told.nodes else None,
    )
    terms = []
    if told.nodes:
        terms.append(el("div", el("dt", "nodes"), el("dd", el("span", hosts(told.nodes, scene), class_="mono"))))
    terms += [el("div", el("dt", name), el("dd", text)) for name, text in told.more]
    tone = told.severity or "plain"
    return el("article", head, el("p", told.words, class_="what"), el("dl", *terms), class_=f"finding said {tone}")


def _shows(told: list[int], about: str) -> Element:
    """The button that shows these nodes on the map."""
    return el("button", "Show on the map", type="button", class_="scripted shows", data_nodes=spans(told),
              data_about=about)  # fmt: skip


def _versions(told: Skew, scene: Scene) -> Iterator[Element]:
    for at, (value, members) in enumerate(told.values):
        yield el(
            "tr",
            el("th", told.what if not at else "", scope="row"),
            el("td", value, class_="mono"),
            el("td", f"{nodes(len(members))}, {share(len(members), told.of)}"),
            el("td", bar([("level", len(members)), ("rest", told.of - len(members))])),
            el("td", el("span", hosts(members, scene), class_="mono dim") if at else None,
               _shows(members, f"{told.what} {value}") if at else None),
        )  # fmt: skip


def _covered(told: Coverage) -> Element:
    why = "; ".join(f"{reason} ({number(count)})" for reason, count in told.reasons[:REASONS])
    counts = (told.passed, told.failed, told.unknown, told.stale, told.not_applicable)
    parts = [("ok", told.passed), ("error", told.failed), ("unknown", told.unknown), ("stale", told.stale)]
    return el(
        "tr",
        el("th", sign("unknown") if told.unknown else None, el("code", told.rule), scope="row"),
        *[el("td", number(each) if each else "") for each in counts],
        el("td", bar(parts)),
        el("td", why),
    )
