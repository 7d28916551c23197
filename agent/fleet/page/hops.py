"""RoCE hop by hop: the picture of the hops, what is wrong with them, and each switch with its ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from agent.fleet.lossless.answer import LosslessAnswer
from agent.fleet.lossless.picture import draw_hop_element
from agent.fleet.lossless.rows import HopEnd, HopRow
from agent.fleet.lossless.verdict import VERDICTS
from agent.fleet.page.answers import NodeIndex
from agent.fleet.page.overview import render_bar, sign
from agent.fleet.page.scene import FabricHops, HopLine, PageItem, Section, SwitchCard
from agent.fleet.text.parts import count, number
from agent.model.finding import Finding
from agent.model.labels import group_by_key
from agent.outputs.html.elements import el
from agent.outputs.names import begin_sentence

ANCHOR = "roce"
LISTED = 120  # switches, those with lossy hops first; the rest is counted
PORTS = 40  # of a switch
_LOOKS = {"proved": "ok", "set": "ok", "trimmed": "warning", "unknown": "unknown", "lossy": "error"}
_WORST = list(VERDICTS)[::-1]


def build_hops(answer: LosslessAnswer, numbers: NodeIndex) -> FabricHops:
    """The answer of `fleet lossless` in the page's form."""
    hosts = _list_hosts(answer.hops)
    counts = ", ".join(f"{number(value)} {verdict}" for verdict, value in answer.counts.items() if value)
    loud = [finding for finding in answer.findings if finding.severity != "info"]
    note = f"DSCP {answer.dscp}: {answer.dscp_source}. {count(len(answer.hops), 'hop')}: {counts or 'none is known'}."
    return FabricHops(
        section=Section(
            title="Lossless RoCE",
            anchor=ANCHOR,
            said=[_make_item(finding, hosts, numbers) for finding in loud],
            note=note,
            empty="No hop has a finding above info.",
        ),
        switches=_list_cards(answer),
        picture=draw_hop_element(answer),
        notes=[*answer.notes, *answer.not_read[:20]],
    )


def _list_hosts(hops: Sequence[HopRow]) -> Mapping[str, list[str]]:
    """The hosts at each switch port, and behind each switch."""
    return group_by_key(
        (subject, far.node)
        for _, end, far in _list_ends(hops)
        if far.kind == "host"
        for subject in (f"swport:{end.node}/{end.port}", f"switch:{end.node}", f"host:{far.node}/{far.port}")
    )


def _list_ends(hops: Sequence[HopRow]) -> Iterator[tuple[HopRow, HopEnd, HopEnd]]:
    """Each end that is a switch's, with its hop and the far end."""
    for hop in hops:
        yield from ((hop, end, far) for end, far in ((hop.a, hop.b), (hop.b, hop.a)) if end.kind == "switch")


def _make_item(finding: Finding, hosts: Mapping[str, Sequence[str]], numbers: NodeIndex) -> PageItem:
    subjects = finding.devices or [finding.subject]
    names = {host for subject in subjects for host in hosts.get(subject, ())}
    more = [("where", finding.label), ("impact", finding.impact), ("fix", finding.remedy)]
    more += [(row.what, f"{row.value} ({row.source})") for row in finding.evidence[:4]]
    return PageItem(
        words=begin_sentence(finding.summary),
        about=finding.rule,
        severity=finding.severity,
        nodes=numbers.of(names) or numbers.of_hosts(names),
        more=[(name, text) for name, text in more if text],
    )


def _list_cards(answer: LosslessAnswer) -> list[SwitchCard]:
    """Worst first."""
    lines = group_by_key((end.node, _make_line(hop, end, far)) for hop, end, far in _list_ends(answer.hops))
    cards = [
        SwitchCard(
            name=switch.name,
            system=" ".join(filter(None, (switch.nos, switch.model, switch.version))),
            ports=switch.ports,
            lines=sorted(lines.get(switch.name, ()), key=lambda line: _WORST.index(line.verdict)),
        )
        for switch in answer.switches
    ]
    return sorted(cards, key=lambda card: [-sum(line.verdict == verdict for line in card.lines) for verdict in _WORST])


def _make_line(hop: HopRow, end: HopEnd, far: HopEnd) -> HopLine:
    pfc = "" if end.pfc is None else " ".join(map(str, end.pfc)) or "none"
    return HopLine(
        port=end.port,
        far=f"{far.node} {far.port}".strip() or "not known",
        verdict=hop.verdict,
        pfc=pfc,
        priority="" if end.priority is None else str(end.priority),
        reason=hop.reason,
    )


def render_picture(hops: FabricHops) -> Element:
    """Of all hops."""
    label = hops.picture.get("aria-label") or ""
    return el("div", hops.picture, class_="scroll", tabindex=0, role="region", aria_label=label)


def render_switches(hops: FabricHops) -> Iterator[Element]:
    """A row for each switch that opens."""
    yield el("h3", "Switches")
    for card in hops.switches[:LISTED]:
        yield _render_card(card)
    if len(hops.switches) > LISTED:
        yield el("p", f"and {number(len(hops.switches) - LISTED)} more switches", class_="dim")
    yield from (el("p", note, class_="dim") for note in hops.notes)


def _render_card(card: SwitchCard) -> Element:
    """Ports of a switch, the worst hop first."""
    counts = Counter(line.verdict for line in card.lines)
    words = ", ".join(f"{number(counts[verdict])} {verdict}" for verdict in _WORST if counts[verdict])
    head = el(
        "summary",
        el("strong", card.name),
        f" {card.system}, {count(card.ports, 'port')} ",
        render_bar([(_LOOKS[verdict], counts[verdict]) for verdict in VERDICTS]),
        f" {words or 'no hop'}",
    )
    names = ("port", "far end", "verdict", "priority", "PFC", "reason")
    rows = [_render_line(line) for line in card.lines[:PORTS]]
    if len(card.lines) > PORTS:
        more = f"and {number(len(card.lines) - PORTS)} more: fabricscope fleet lossless --all"
        rows.append(el("tr", el("td", more, colspan=len(names), class_="dim")))
    table = el("table", el("thead", el("tr", *[el("th", name, scope="col") for name in names])), el("tbody", *rows))
    about = f"ports of {card.name}"
    return el("details", head, el("div", table, class_="scroll", tabindex=0, role="region", aria_label=about))


def _render_line(line: HopLine) -> Element:
    return el(
        "tr",
        el("th", line.port, scope="row", class_="mono"),
        el("td", line.far, class_="mono"),
        el("td", sign(_LOOKS[line.verdict]), f" {line.verdict}"),
        el("td", line.priority),
        el("td", line.pfc),
        el("td", line.reason),
    )
