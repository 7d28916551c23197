"""Faults of cabling, as `fleet topology` and `fleet cables` find them: rails on another leaf, uneven trunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agent.fleet.cluster.cabling_faults import CablingFault, find_cabling_faults
from agent.fleet.cluster.cabling_plan import BadPlan, Planned, judge_by_plan
from agent.fleet.cluster.expected_cables import Cable
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.lossless.cluster_links import add_hops
from agent.fleet.lossless.fault import HopFault
from agent.fleet.lossless.hop import CableEnd, Hop, HostPort
from probes.switches.facts import SwitchFacts

_RAILS = ("swapped-cables", "rail-elsewhere", "exchanged-rails")
_TRUNKS = (
    "fewer-uplinks", "dark-spine", "missing-uplink", "swapped-uplinks", "uplink-elsewhere", "uneven-pace",
)  # fmt: skip


def find_cabling_hop_faults(
    hops: Sequence[Hop], switches: Mapping[str, SwitchFacts], hosts: Sequence[HostPort], plan: Sequence[Planned]
) -> Iterator[HopFault]:
    """By the plan where there is one that fits, else by what most cables do; trunks always by the latter."""
    rails = Counter(host.host for host in hosts)
    graph = add_hops(FabricGraph({}, rails=rails), switches, hops, only_reported=bool(hosts))
    views = build_views(graph)
    # switches' ends by "SWITCH/PORT"
    ends = {f"{end.node}/{end.port}": (end, hop) for hop in hops for end in hop.ends if end.facts is not None}
    names = {host.lower() for host in rails}
    planned = [row for row in plan if row.node.lower() in names]
    by_plan = False
    if planned:
        try:
            wrong = judge_by_plan(graph, views, planned).wrong
            by_plan = True
        except BadPlan:
            wrong = []
        yield from _name_planned(wrong, ends)
    for fault in find_cabling_faults(graph, views):
        if fault.kind in _RAILS and not by_plan:
            for place in fault.ports:
                hop_end = ends.get(place)
                if hop_end is not None and not hop_end[1].is_trunk:
                    yield _make_fault("sw-rail-elsewhere", *hop_end, fault.text, fault.compared)
        elif fault.kind in _TRUNKS:
            yield from _name_trunk(fault, ends, switches)


def _name_planned(wrong: Sequence[Cable], ends: Mapping[str, tuple[CableEnd, Hop]]) -> Iterator[HopFault]:
    """Rails at another place than the plan's; of two that are swapped the first, with both in its text."""
    named: set[str | None] = set()
    for cable in wrong:
        hop_end = ends.get(cable.found or "")
        if cable.state not in ("swapped", "elsewhere") or hop_end is None:
            continue
        swapped = cable.state == "swapped"
        if swapped and cable.should in named:
            continue
        named.add(cable.found)
        other = f", whose cable ({cable.there}) belongs here" if swapped else ""
        text = f"{cable.end} is here and belongs to {cable.should}{other} ({cable.why})"
        yield _make_fault("sw-rail-elsewhere", *hop_end, text, "plan")


def _name_trunk(
    fault: CablingFault, ends: Mapping[str, tuple[CableEnd, Hop]], switches: Mapping[str, SwitchFacts]
) -> Iterator[HopFault]:
    """At the first of its ports that has a cable; a cable that is missing has none, and is its switch's."""
    known = [ends[place] for place in fault.ports if place in ends]
    if any(not hop.is_trunk for _, hop in known):
        return
    if known and fault.kind not in ("missing-uplink", "fewer-uplinks", "dark-spine"):
        yield _make_fault("sw-trunk-uneven", *known[0], fault.text, fault.compared)
        return
    name = next((name for place in (*fault.ports, fault.text) if (name := _find_switch(place, switches))), "")
    if name:
        end = CableEnd(name, "", switches[name])
        yield _make_fault("sw-trunk-uneven", end, Hop(end, CableEnd("", "")), fault.text, fault.compared)


def _find_switch(text: str, switches: Mapping[str, SwitchFacts]) -> str:
    """The switch that a place "SWITCH/PORT" or a text that begins with its name is about."""
    words = text.partition("/")[0], text.partition(" ")[0]
    return next((word for word in words if word in switches), "")


def _make_fault(rule: str, end: CableEnd, hop: Hop, text: str, compared: str) -> HopFault:
    return HopFault(rule, end, hop, text, (("cabling", text, compared or "LLDP"),))
