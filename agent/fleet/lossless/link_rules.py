"""Faults of a link: where its cable leads, and what both ends' settings show: MTU, speed, FEC, cable length and
headroom, link retry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agent.fleet.cluster.cabling_faults import CablingFault, find_cabling_faults
from agent.fleet.cluster.cabling_plan import BadPlan, Cable, Planned, judge_by_plan
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.lossless.cluster_links import add_hops
from agent.fleet.lossless.fault import HopContext, HopFault, config_source
from agent.fleet.lossless.headroom import find_full_pools, find_short_headroom
from agent.fleet.lossless.hop import CableEnd, Hop, HostPort
from probes.switches.facts import SwitchFacts

LARGEST_HOST_MTU = 9000  # in use: systems have 9100, 9214 and 9216 as their defaults, and each is enough


def find_link_faults(context: HopContext) -> Iterator[HopFault]:
    """Of one hop, whatever its classes are."""
    yield from _judge_mtu(context)
    yield from _judge_speed(context)
    yield from _judge_fec(context)
    yield from find_short_headroom(context)
    yield from find_full_pools(context)
    yield from _judge_retry(context)
    if text := context.hop.disagreement:
        a, b = context.sides()
        side = b if a.end.switch is None and b.end.switch is not None else a
        summary = f"the two sides of LLDP differ: {text}"
        yield side.fault("sw-neighbor-disagrees", summary, ("LLDP", text, "show lldp table"))


def _judge_mtu(context: HopContext) -> Iterator[HopFault]:
    hosts = [end.host.mtu for end in context.hop.ends if end.host is not None and end.host.mtu]
    wanted = hosts[0] if hosts else context.host_mtu
    for side in context.switch_sides():
        mtu = side.end.mtu
        if mtu is not None and wanted is not None and mtu < wanted:
            yield side.fault(
                "sw-mtu-small",
                f"MTU {mtu:,} here, and hosts send packets of up to {wanted:,} bytes",
                ("MTU", str(mtu)),
                ("MTU of hosts", str(wanted), "reports"),
                cause=f"MTU {mtu}",
                lossy=True,
                values={"mtu": "9100" if wanted <= 9100 else "9216"},
            )
    for side in context.sides() if wanted is None and context.hop.is_trunk else ():
        small, large = side.end.mtu, side.far.mtu
        if small is not None and large is not None and small < min(large, LARGEST_HOST_MTU):
            yield side.fault(
                "sw-mtu-small",
                f"MTU {small:,} here and {large:,} at the other end",
                ("MTU", str(small)),
                ("far MTU", str(large), config_source(side.far)),
                severity="warning",
                cause=f"MTU {small}",
                values={"mtu": str(large)},
            )


def _judge_speed(context: HopContext) -> Iterator[HopFault]:
    a, b = context.hop.ends
    if not a.speed or not b.speed or a.speed == b.speed:
        return
    for side in sorted(context.switch_sides(), key=lambda side: side.end.speed or 0.0)[:1]:
        yield side.fault(
            "sw-speed-differs",
            f"{a.label} has {a.speed:g} Gbit/s, {b.label} {b.speed:g} Gbit/s",
            *((f"speed of {end.label}", f"{end.speed:g} Gbit/s", config_source(end)) for end in (a, b)),
        )


def _judge_fec(context: HopContext) -> Iterator[HopFault]:
    a, b = context.hop.ends
    if a.fec is None or b.fec is None or a.fec == b.fec:
        return
    for side in sorted(context.switch_sides(), key=lambda side: side.end is a and a.fec == "rs")[:1]:
        yield side.fault(
            "sw-fec-differs",
            f"FEC is {a.fec} at {a.label} and {b.fec} at {b.label}",
            (f"FEC of {a.label}", a.fec, config_source(a)),
            (f"FEC of {b.label}", b.fec, config_source(b)),
            values={"fec": "rs"},
        )


def _judge_retry(context: HopContext) -> Iterator[HopFault]:
    sides = [(side, side.end.facts.link_retry if side.end.facts is not None else None) for side in context.sides()]
    states = [retry.enabled if retry is not None else None for _, retry in sides]
    if None not in states and states[0] != states[1]:
        side, _ = sides[1 if states[0] else 0]
        evidence = ("link layer retry", "off", f"{side.end.node}: show llr interface")
        yield side.fault("sw-llr-one-end", "link layer retry is on at the other end only", evidence, cause="retry")
    real = context.hop.metres_plan or context.hop.metres_module
    for side, retry in sides:
        if retry is not None and retry.enabled and retry.metres is not None and real and retry.metres < real:
            text = f"the link retry profile {retry.profile} is for {retry.metres} m, the cable has {real:g} m"
            evidence = ("profile", str(retry.profile), f"{side.end.node}: show llr interface")
            yield side.fault("sw-llr-one-end", text, evidence, cause="retry length")


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
