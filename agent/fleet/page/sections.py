"""What is reported of nodes together: findings, outliers, drift, duplicates, the cluster; versions; coverage."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from agent.fleet.hostlist import fold
from agent.fleet.page.overview import render_bar, share, sign
from agent.fleet.page.scene import FleetScene, PageItem, Section, Skew, encode_spans
from agent.fleet.questions.summary import RuleCoverage
from agent.fleet.text.parts import count, number, split_steps
from agent.fleet.text.summary import describe_reason
from agent.model.labels import group_by_key
from agent.outputs.html.elements import el, mark_code

LISTED = 60  # of a section; the rest is counted
OPEN = 12  # that are read without opening anything
HOSTS = 400  # letters of a folded host list
REASONS = 4
LINKS = 6  # of a card to others; more are no help
CLASSES = 40  # whose versions are listed


def render_section(content: Section, scene: FleetScene) -> Iterator[Element]:
    """A heading and an article each."""
    yield el("h2", content.title, id=content.anchor)
    if content.note:
        yield el("p", content.note, class_="dim")
    if not content.said:
        yield el("p", content.empty)
    items = content.said[:LISTED]
    articles = [
        part
        for before, item in zip([None, *items], items, strict=False)
        for part in _render_group(before, item, content.anchor, scene)
    ]
    first = next((at for at, part in enumerate(articles) if part.tag == "article" and at >= OPEN), len(articles))
    yield from articles[:first]
    rest = articles[first:]
    if rest:
        left = len(content.said) - LISTED
        more = f" (and {number(left)} that are not on this page)" if left > 0 else ""
        count = sum(part.tag == "article" for part in rest)
        yield el("details", el("summary", f"{number(count)} more{more}"), *rest)


def render_skew(scene: FleetScene) -> Iterator[Element]:
    """Versions of drivers, firmware and the like that are not the same on all nodes of a class."""
    if not scene.skew:
        return
    yield el("h2", "Versions", id="versions")
    yield el("p", "What is not the same on all nodes of a hardware class.", class_="dim")
    by_class = group_by_key((skew.hardware_class, skew) for skew in scene.skew)
    for name, skews in list(by_class.items())[:CLASSES]:
        rows = [row for one in skews for row in _render_versions(one, scene)]
        table = el("table", el("tbody", *rows), class_="versions")
        yield el("h3", f"{name}, {count(skews[0].of, 'node')}")
        yield el("div", table, class_="scroll", tabindex=0, role="region", aria_label=f"versions of {name}")
    if len(by_class) > CLASSES:
        yield el("p", f"and {number(len(by_class) - CLASSES)} smaller classes", class_="dim")


def render_coverage(scene: FleetScene) -> Iterator[Element]:
    """How many nodes each rule was judged on, the least judged first."""
    if not scene.coverage:
        return
    yield el("h2", "Coverage", id="coverage")
    open_ = [row for row in scene.coverage if row.unknown or row.missing]
    text = scene.coverage_words
    yield el("p", f"{text[:1].upper()}{text[1:]}." if text else None)
    if open_:
        heads = ("rule", "pass", "fail", "unknown", "not in report", "stale", "not applicable", "", "why unknown")
        order = sorted(open_, key=lambda row: (-row.unknown - row.missing, row.rule))
        head = el("tr", *[el("th", head, scope="col") for head in heads])
        table = el("table", el("thead", head), el("tbody", *map(_render_coverage, order)), class_="numbers")
        scroll = el("div", table, class_="scroll", tabindex=0, role="region", aria_label="coverage")
        about = f"{number(len(open_))} rules that were not judged everywhere"
        yield el("details", el("summary", about), scroll, open="open" if len(open_) <= OPEN else None)


def format_hosts(nodes: list[int], scene: FleetScene) -> str:
    """Node numbers as a folded host list, cut where it is long."""
    text = fold(scene.nodes.names[at] for at in nodes)
    return text if len(text) <= HOSTS else f"{text[: HOSTS - 1]}…"


def _render_group(before: PageItem | None, item: PageItem, anchor: str, scene: FleetScene) -> Iterator[Element]:
    """The card, after the name of its hardware class where a new one begins."""
    if item.group and (before is None or before.group != item.group):
        labels, codes = scene.nodes.classes.labels, scene.nodes.classes.codes
        size = codes.count(labels.index(item.group)) if item.group in labels else 0
        yield el("h3", item.group, el("span", f" {count(size, 'node')}", class_="dim") if size else None)
    yield _render_item(item, anchor, scene)


def _render_item(item: PageItem, anchor: str, scene: FleetScene) -> Element:
    head = el(
        "header",
        el("span", item.severity, class_=f"badge {item.severity}") if item.severity else None,
        el("code", item.about) if item.about else None,
        el("span", count(len(item.nodes), "node")) if item.nodes else None,
        el("span", "affects the whole class", class_="dim") if item.whole_class else None,
        _render_actions(item) if item.nodes and not item.quiet else None,
    )
    terms = []
    if item.nodes:
        terms.append(el("div", el("dt", "nodes"), el("dd", el("span", format_hosts(item.nodes, scene), class_="mono"))))
    terms += [_render_term(name, text) for name, text in item.more]
    links = _render_same_nodes(item, scene)
    terms += [el("div", el("dt", "also on these nodes"), el("dd", *links))] if links else []
    tone, words = (item.severity or "plain") + (" quiet" if item.quiet else ""), el("p", item.words, class_="what")
    return el(
        "article", head, words, el("dl", *terms), class_=f"finding said {tone}", id=_make_card_id(anchor, item, scene)
    )


def _render_term(name: str, text: str) -> Element:
    """A fix of several steps is a list; its commands are marked."""
    if name != "fix":
        return el("div", el("dt", name), el("dd", text))
    steps = [mark_code(step) for step in split_steps(text)]
    if len(steps) == 1:
        return el("div", el("dt", name), el("dd", *steps[0]))
    return el("div", el("dt", name), el("dd", el("ol", *[el("li", *step) for step in steps])), class_="steps")


def _render_same_nodes(item: PageItem, scene: FleetScene) -> list[Element | str]:
    """Links to what the other sections have about exactly these nodes."""
    links: list[Element | str] = []
    for other in scene.sections:
        for other_item in other.said[:LISTED] if item.nodes else ():
            if other_item.nodes == item.nodes and other_item is not item and not other_item.quiet:
                text = f"{other_item.about}: {other_item.words}" if other_item.about else other_item.words
                links += [
                    "; " if links else "",
                    el("a", text, href=f"#{_make_card_id(other.anchor, other_item, scene)}"),
                ]
    return links if len(links) <= 2 * LINKS else []


def _make_card_id(anchor: str, item: PageItem, scene: FleetScene) -> str:
    items = next((section.said for section in scene.sections if section.anchor == anchor), [])
    return f"{anchor}-{next((at for at, other in enumerate(items) if other is item), 0)}"


def _render_actions(item: PageItem) -> Element:
    """Buttons for these nodes: show them on the map, copy their names; the command that drains them if the fix does."""
    drains = any(name == "fix" and "drain" in text.lower() for name, text in item.more)
    nodes, about = encode_spans(item.nodes), item.about
    return el(
        "span",
        _render_shows(item.nodes, item.words),
        el("button", "Copy hosts", type="button", class_="copies", data_nodes=nodes),
        el("button", "Copy drain command", type="button", class_="drains", data_nodes=nodes, data_about=about)
        if drains
        else None,
        class_="scripted actions",
    )


def _render_shows(nodes: list[int], about: str) -> Element:
    """The button that shows these nodes on the map."""
    return el("button", "Show on the map", type="button", class_="scripted shows", data_nodes=encode_spans(nodes),
              data_about=about)  # fmt: skip


def _render_versions(skew: Skew, scene: FleetScene) -> Iterator[Element]:
    for at, (value, members) in enumerate(skew.values):
        yield el(
            "tr",
            el("th", skew.what if not at else "", scope="row"),
            el("td", value, class_="mono"),
            el("td", f"{count(len(members), 'node')}, {share(len(members), skew.of)}"),
            el("td", render_bar([("level", len(members)), ("rest", skew.of - len(members))])),
            el("td", el("span", format_hosts(members, scene), class_="mono dim") if at else None,
               _render_shows(members, f"{skew.what} {value}") if at else None),
        )  # fmt: skip


def _render_coverage(row: RuleCoverage) -> Element:
    why = "; ".join(f"{describe_reason(reason)} ({number(count)})" for reason, count in row.reasons[:REASONS])
    counts = (row.passed, row.failed, row.unknown, row.missing, row.stale, row.not_applicable + row.disabled)
    parts = [
        ("ok", row.passed),
        ("error", row.failed),
        ("unknown", row.unknown + row.missing),
        ("stale", row.stale),
    ]
    return el(
        "tr",
        el("th", sign("unknown") if row.unknown else None, el("code", row.rule), scope="row"),
        *[el("td", number(count) if count else "") for count in counts],
        el("td", render_bar(parts)),
        el("td", why),
    )
