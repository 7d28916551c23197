"""What is said of nodes together: findings, outliers, drift, duplicates, the cluster; versions; coverage."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.fleet.hostlist import fold
from agent.fleet.page.data import spans
from agent.fleet.page.icons import sign
from agent.fleet.page.overview import bar, nodes, number, share
from agent.fleet.page.scene import Coverage, FleetScene, Said, Section, Skew
from agent.fleet.text.parts import split_steps
from agent.outputs.html.elements import el

LISTED = 60  # of a section; the rest is counted
OPEN = 12  # that are read without opening anything
HOSTS = 400  # letters of a folded host list
REASONS = 4
LINKS = 6  # of a card to others; more are no help
CLASSES = 40  # whose versions are listed


def section(told: Section, scene: FleetScene) -> Iterator[Element]:
    """A heading and an article each."""
    yield el("h2", told.title, id=told.anchor)
    if told.note:
        yield el("p", told.note, class_="dim")
    if not told.said:
        yield el("p", told.empty)
    shown = told.said[:LISTED]
    articles = [
        part
        for before, said in zip([None, *shown], shown, strict=False)
        for part in _in_group(before, said, told.anchor, scene)
    ]
    first = next((at for at, part in enumerate(articles) if part.tag == "article" and at >= OPEN), len(articles))
    yield from articles[:first]
    rest = articles[first:]
    if rest:
        left = len(told.said) - LISTED
        more = f" (and {number(left)} that are not on this page)" if left > 0 else ""
        count = sum(part.tag == "article" for part in rest)
        yield el("details", el("summary", f"{number(count)} more{more}"), *rest)


def skew(scene: FleetScene) -> Iterator[Element]:
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


def coverage(scene: FleetScene) -> Iterator[Element]:
    """How many nodes each rule was judged on, the least judged first."""
    if not scene.coverage:
        return
    yield el("h2", "Coverage", id="coverage")
    open_ = [each for each in scene.coverage if each.unknown or each.missing]
    said = scene.coverage_words
    yield el("p", f"{said[:1].upper()}{said[1:]}." if said else None)
    if open_:
        heads = ("rule", "pass", "fail", "unknown", "not in report", "stale", "not applicable", "", "why unknown")
        order = sorted(open_, key=lambda each: (-each.unknown - each.missing, each.rule))
        head = el("tr", *[el("th", head, scope="col") for head in heads])
        table = el("table", el("thead", head), el("tbody", *map(_covered, order)), class_="numbers")
        scroll = el("div", table, class_="scroll", tabindex=0, role="region", aria_label="coverage")
        about = f"{number(len(open_))} rules that were not judged everywhere"
        yield el("details", el("summary", about), scroll, open="open" if len(open_) <= OPEN else None)


def hosts(told: list[int], scene: FleetScene) -> str:
    """Node numbers as a folded host list, cut where it is long."""
    text = fold(scene.nodes.names[at] for at in told)
    return text if len(text) <= HOSTS else f"{text[: HOSTS - 1]}…"


def _in_group(before: Said | None, told: Said, anchor: str, scene: FleetScene) -> Iterator[Element]:
    """The card, after the name of its hardware class where a new one begins."""
    if told.group and (before is None or before.group != told.group):
        labels, codes = scene.nodes.classes.labels, scene.nodes.classes.codes
        size = codes.count(labels.index(told.group)) if told.group in labels else 0
        yield el("h3", told.group, el("span", f" {nodes(size)}", class_="dim") if size else None)
    yield _said(told, anchor, scene)


def _said(told: Said, anchor: str, scene: FleetScene) -> Element:
    head = el(
        "header",
        el("span", told.severity, class_=f"badge {told.severity}") if told.severity else None,
        el("code", told.about) if told.about else None,
        el("span", nodes(len(told.nodes))) if told.nodes else None,
        el("span", "affects the whole class", class_="dim") if told.whole_class else None,
        _actions(told.nodes, told.words, told.about) if told.nodes and not told.quiet else None,
    )
    terms = []
    if told.nodes:
        terms.append(el("div", el("dt", "nodes"), el("dd", el("span", hosts(told.nodes, scene), class_="mono"))))
    terms += [_term(name, text) for name, text in told.more]
    links = _same_nodes(told, scene)
    terms += [el("div", el("dt", "also on these nodes"), el("dd", *links))] if links else []
    tone, words = (told.severity or "plain") + (" quiet" if told.quiet else ""), el("p", told.words, class_="what")
    return el("article", head, words, el("dl", *terms), class_=f"finding said {tone}", id=_card_id(anchor, told, scene))


def _term(name: str, text: str) -> Element:
    """A fix of several steps is a list."""
    steps = split_steps(text) if name == "fix" else [text]
    if len(steps) == 1:
        return el("div", el("dt", name), el("dd", text))
    return el("div", el("dt", name), el("dd", el("ol", *[el("li", step) for step in steps])), class_="steps")


def _same_nodes(told: Said, scene: FleetScene) -> list[Element | str]:
    """Links to what the other sections have about exactly these nodes."""
    links: list[Element | str] = []
    for other in scene.sections:
        for said in other.said[:LISTED] if told.nodes else ():
            if said.nodes == told.nodes and said is not told and not said.quiet:
                text = f"{said.about}: {said.words}" if said.about else said.words
                links += ["; " if links else "", el("a", text, href=f"#{_card_id(other.anchor, said, scene)}")]
    return links if len(links) <= 2 * LINKS else []


def _card_id(anchor: str, told: Said, scene: FleetScene) -> str:
    said = next((each.said for each in scene.sections if each.anchor == anchor), [])
    return f"{anchor}-{next((at for at, each in enumerate(said) if each is told), 0)}"


def _actions(told: list[int], words: str, about: str) -> Element:
    """Buttons for these nodes: show them on the map, copy their names, copy the command that drains them."""
    return el(
        "span",
        _shows(told, words),
        el("button", "Copy hosts", type="button", class_="copies", data_nodes=spans(told)),
        el("button", "Copy drain command", type="button", class_="drains", data_nodes=spans(told), data_about=about),
        class_="scripted actions",
    )


def _shows(told: list[int], about: str) -> Element:
    """The button that shows these nodes on the map."""
    return el("button", "Show on the map", type="button", class_="scripted shows", data_nodes=spans(told),
              data_about=about)  # fmt: skip


def _versions(told: Skew, scene: FleetScene) -> Iterator[Element]:
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
    counts = (told.passed, told.failed, told.unknown, told.missing, told.stale, told.not_applicable)
    parts = [
        ("ok", told.passed),
        ("error", told.failed),
        ("unknown", told.unknown + told.missing),
        ("stale", told.stale),
    ]
    return el(
        "tr",
        el("th", sign("unknown") if told.unknown else None, el("code", told.rule), scope="row"),
        *[el("td", number(count) if count else "") for count in counts],
        el("td", bar(parts)),
        el("td", why),
    )
