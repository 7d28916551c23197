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
    if context.hop.disagreement:
        end = context.hop.a if context.hop.a.switch is not None else context.hop.b
        yield context.fault(
            "sw-neighbor-disagrees",
            end if end.switch is not None else context.hop.a,
            f"the two sides of LLDP differ: {context.hop.disagreement}",
            (("LLDP", context.hop.disagreement, "show lldp table"),),
        )


def _judge_mtu(context: HopContext) -> Iterator[HopFault]:
    hosts = [end.host.mtu for end in context.hop.ends if end.host is not None and end.host.mtu]
    wanted = hosts[0] if hosts else context.host_mtu
    for end in context.hop.ends:
        if end.facts is None or end.mtu is None or wanted is None or end.mtu >= wanted:
            continue
        yield context.fault(
            "sw-mtu-small",
            end,
            f"MTU {end.mtu:,} here, and hosts send packets of up to {wanted:,} bytes",
            (("MTU", str(end.mtu), config_source(end)), ("MTU of hosts", str(wanted), "reports")),
            cause=f"MTU {end.mtu}",
            lossy=True,
            values={"mtu": "9100" if wanted <= 9100 else "9216"},
        )
    if wanted is None and context.hop.is_trunk:
        a, b = context.hop.ends
        if a.mtu is not None and b.mtu is not None and a.mtu != b.mtu and min(a.mtu, b.mtu) < LARGEST_HOST_MTU:
            small, large = (a, b) if a.mtu < b.mtu else (b, a)
            yield context.fault(
                "sw-mtu-small",
                small,
                f"MTU {small.mtu:,} here and {large.mtu:,} at the other end",
                (("MTU", str(small.mtu), config_source(small)), ("far MTU", str(large.mtu), config_source(large))),
                severity="warning",
                cause=f"MTU {small.mtu}",
                values={"mtu": str(large.mtu)},
            )


def _judge_speed(context: HopContext) -> Iterator[HopFault]:
    a, b = context.hop.ends
    if not a.speed or not b.speed or a.speed == b.speed:
        return
    slow, fast = (a, b) if a.speed < b.speed else (b, a)
    end = slow if slow.facts is not None else fast
    if end.facts is None:
        return
    yield context.fault(
        "sw-speed-differs",
        end,
        f"{a.label} has {a.speed:g} Gbit/s, {b.label} {b.speed:g} Gbit/s",
        (
            (f"speed of {a.label}", f"{a.speed:g} Gbit/s", config_source(a)),
            (f"speed of {b.label}", f"{b.speed:g} Gbit/s", config_source(b)),
        ),
    )


def _judge_fec(context: HopContext) -> Iterator[HopFault]:
    a, b = context.hop.ends
    if a.fec is None or b.fec is None or a.fec == b.fec:
        return
    wrong: CableEnd = a if a.fec != "rs" and a.facts is not None else b
    if wrong.facts is None:
        wrong = a if b is wrong else b
    if wrong.facts is None:
        return
    yield context.fault(
        "sw-fec-differs",
        wrong,
        f"FEC is {a.fec} at {a.label} and {b.fec} at {b.label}",
        ((f"FEC of {a.label}", a.fec, config_source(a)), (f"FEC of {b.label}", b.fec, config_source(b))),
        values={"fec": "rs"},
    )


def _judge_retry(context: HopContext) -> Iterator[HopFault]:
    retries = [end.facts.link_retry if end.facts is not None else None for end in context.hop.ends]
    states = [retry.enabled if retry is not None else None for retry in retries]
    if None not in states and states[0] != states[1]:
        end = context.hop.b if states[0] else context.hop.a
        yield context.fault(
            "sw-llr-one-end",
            end,
            "link layer retry is on at the other end only",
            (("link layer retry", "off", f"{end.node}: show llr interface"),),
            cause="retry",
        )
    real = context.hop.metres_plan or context.hop.metres_module
    for end, retry in zip(context.hop.ends, retries, strict=True):
        if retry is not None and retry.enabled and retry.metres is not None and real and retry.metres < real:
            yield context.fault(
                "sw-llr-one-end",
                end,
                f"the link retry profile {retry.profile} is for {retry.metres} m, the cable has {real:g} m",
                (("profile", str(retry.profile), f"{end.node}: show llr interface"),),
                cause="retry length",
            )


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
