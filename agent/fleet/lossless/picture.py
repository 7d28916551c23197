"""The hops as a picture: rows of switches, hosts below them, bundles of cables in the colour of their worst verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from agent.fleet.cluster.cabling_faults import CablingFault
from agent.fleet.cluster.fabric_view import View, build_views
from agent.fleet.cluster.graph import FabricGraph, HostLink, Switch, SwitchLink, SwitchPort
from agent.fleet.cluster.picture import draw_element, draw_picture
from agent.fleet.cluster.picture_content import LinkStates
from agent.fleet.lossless.answer import LosslessAnswer
from agent.fleet.lossless.known_ends import looks_like_switch_port
from agent.fleet.lossless.rows import HopEnd, HopRow
from agent.fleet.lossless.verdict import VERDICTS
from agent.fleet.text.parts import count

_CLASSES = {"proved": "good", "set": "good", "trimmed": "doubtful", "unknown": "doubtful", "lossy": "bad"}


def draw_hops(answer: LosslessAnswer) -> str:
    """One SVG file."""
    return draw_picture(*_prepare(answer))


def draw_hop_element(answer: LosslessAnswer) -> Element:
    """The picture for a page."""
    return draw_element(*_prepare(answer))


def _prepare(answer: LosslessAnswer) -> tuple[FabricGraph, list[View], list[CablingFault], LinkStates]:
    graph = _build_graph(answer.hops)
    states = {SwitchPort(end.node, end.port): hop.verdict for hop in answer.hops for end in (hop.a, hop.b) if end.node}
    lossy = [_name_fault(hop) for hop in answer.hops if hop.verdict == "lossy"]
    counts = ", ".join(f"{number:,} {verdict}" for verdict, number in answer.counts.items() if number)
    title = f"RoCE with DSCP {answer.dscp}: {count(len(answer.hops), 'hop')}, {counts or 'none is known'}"
    return graph, build_views(graph), lossy, LinkStates(states, tuple(VERDICTS), _CLASSES, title)


def _build_graph(hops: Sequence[HopRow]) -> FabricGraph:
    switches: dict[str, Switch] = {}
    hosts: list[HostLink] = []
    trunks: list[SwitchLink] = []
    for hop in hops:
        ends = [end for end in (hop.a, hop.b) if _is_switch(end)]
        for end in ends:
            switches.setdefault(end.node, Switch(end.node, end.node))
        if len(ends) == 2 and hop.a.node != hop.b.node:
            trunks.append(SwitchLink(SwitchPort(hop.a.node, hop.a.port), SwitchPort(hop.b.node, hop.b.port)))
        elif len(ends) == 1:
            other = hop.b if ends[0] is hop.a else hop.a
            name = other.node or f"not known, at {ends[0].node}"
            rail = f"rail {other.rail}" if other.rail is not None else other.port or ends[0].port
            hosts.append(HostLink(name, rail, other.port, SwitchPort(ends[0].node, ends[0].port)))
    return FabricGraph(switches, tuple(hosts), tuple(trunks))


def _is_switch(end: HopEnd) -> bool:
    return end.kind == "switch" or (end.kind == "unknown" and looks_like_switch_port(end.port) and bool(end.node))


def _name_fault(hop: HopRow) -> CablingFault:
    """A lossy hop as what is wrong between two boxes."""
    return CablingFault(
        kind="lossy",
        text=f"{hop.label}: {hop.reason}",
        hosts=tuple(_list_hosts(hop)),
        ports=tuple(f"{end.node}/{end.port}" for end in (hop.a, hop.b) if _is_switch(end)),
    )


def _list_hosts(hop: HopRow) -> Iterator[str]:
    for end, far in ((hop.a, hop.b), (hop.b, hop.a)):
        if not _is_switch(end):
            yield end.node or f"not known, at {far.node}"
