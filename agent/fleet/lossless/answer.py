"""The answer of `fleet lossless` as data: hops with their verdicts, paths by their weakest hop, findings.

Paths are from rail to rail: all equal paths of a pair, as good as the worst of them. Pairs are not listed: hops are
judged once. Leaves with the same links up are looked at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from agent.fleet.cluster.cabling_plan import Planned
from agent.fleet.lossless.changes import SwitchChange, list_changes
from agent.fleet.lossless.class_rules import find_class_faults
from agent.fleet.lossless.counter_rules import absorb_lossy_drops, find_counter_faults
from agent.fleet.lossless.fabric_rules import find_fabric_faults
from agent.fleet.lossless.fault import HopContext, HopFault, fold_faults, severity_of
from agent.fleet.lossless.guard_rules import find_guard_faults, settle_watchdog
from agent.fleet.lossless.hop import CableEnd, HostPort
from agent.fleet.lossless.host_ports import DscpMarking, choose_marking, commonest
from agent.fleet.lossless.join import join
from agent.fleet.lossless.link_rules import find_cabling_hop_faults, find_link_faults
from agent.fleet.lossless.rows import HopEnd, HopRow, SwitchRow
from agent.fleet.lossless.traffic import TrafficClass
from agent.fleet.lossless.verdict import VERDICTS, judge_hop
from agent.model.finding import Finding
from agent.model.labels import group_by_key
from probes.switches.facts import SwitchFacts

_RANK = {verdict: rank for rank, verdict in enumerate(VERDICTS)}
_NAMES = list(VERDICTS)
_WEAK = _RANK["trimmed"]  # from here a path is not lossless, or not known to be
_STEPS = 50_000_000  # of the walk over links: with more, paths through switches are not counted
_LISTED = 100
SCHEMA = "fabricscope.lossless/1"


class WeakHop(msgspec.Struct, frozen=True, kw_only=True):
    """A hop that is not known to be lossless, and how many pairs of rails have it on a path as their weakest."""

    hop: str
    verdict: str
    hosts_behind: int
    pairs: int | None = None


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of rails of different hosts by the weakest hop between them. `unjoined`: no path between them is known."""

    rails: int = 0
    pairs: int = 0
    by_verdict: dict[str, int] = {}
    unjoined: int = 0
    weakest: list[WeakHop] = []
    note: str = ""


def count_paths(hops: Sequence[HopRow]) -> Paths:
    """From hops of hosts and trunks."""
    rails: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)  # leaf -> host, rank
    links: defaultdict[str, dict[str, int]] = defaultdict(dict)  # switch -> switch -> worst rank of the links
    for hop in hops:
        rank = _RANK[hop.verdict]
        if hop.a.kind == "switch" and hop.b.kind == "switch" and hop.a.node != hop.b.node:
            for here, there in ((hop.a.node, hop.b.node), (hop.b.node, hop.a.node)):
                links[here][there] = max(rank, links[here].get(there, 0))
        elif hop.b.kind == "switch" and hop.a.kind == "host":
            rails[hop.b.node].append((hop.a.node, rank))
    total = sum(map(len, rails.values()))
    if total < 2:
        return Paths(rails=total, weakest=_list_weakest(hops, rails))
    between = _Between(rails, links)
    note = "paths through several switches are not counted: the fabric is too large" if between.too_large else ""
    counts = _count_pairs(rails, between)
    unjoined = counts.pop(-1, 0)
    return Paths(
        rails=total,
        pairs=sum(counts.values()) + unjoined,
        by_verdict={_NAMES[rank]: count for rank, count in sorted(counts.items())},
        unjoined=unjoined,
        weakest=_list_weakest(hops, rails),
        note=note,
    )


class _Between:
    """The worst rank on the shortest paths between two leaves. Leaves with the same links share a walk."""

    def __init__(self, leaves: Iterable[str], links: Mapping[str, Mapping[str, int]]) -> None:
        groups: defaultdict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for leaf in leaves:
            groups[tuple(sorted(links.get(leaf, {}).items()))].append(leaf)
        edges = sum(map(len, links.values()))
        self.too_large = len(groups) * edges > _STEPS
        self.walks: dict[str, tuple[str, Mapping[str, int]]] = {}
        for members in groups.values() if not self.too_large else ():
            walk = members[0], _walk(members[0], links)
            self.walks.update(dict.fromkeys(members, walk))

    def rank(self, leaf: str, other: str) -> int | None:
        """None: no path is known."""
        if leaf == other:
            return 0
        first, ranks = self.walks.get(leaf, ("", {}))
        return ranks.get(other if other != first else leaf)


def _walk(start: str, links: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Breadth first: for each switch the worst rank of all shortest paths to it."""
    ranks, level, seen = {start: 0}, [start], {start}
    while level:
        following: dict[str, int] = {}
        for here in level:
            for there, rank in links.get(here, {}).items():
                if there not in seen:
                    following[there] = max(following.get(there, 0), ranks[here], rank)
        ranks.update(following)
        seen.update(following)
        level = list(following)
    return ranks


def _count_pairs(rails: Mapping[str, Sequence[tuple[str, int]]], between: _Between) -> Counter[int]:
    """Pairs of rails by the rank of their weakest hop; -1: no path. Those of one host are no pairs."""
    by_leaf = {leaf: Counter(rank for _, rank in these) for leaf, these in rails.items()}
    counts: Counter[int] = Counter()
    leaves = sorted(rails)
    for number, leaf in enumerate(leaves):
        for other in leaves[number:]:
            middle = between.rank(leaf, other)
            for rank, count in by_leaf[leaf].items():
                for far_rank, far_count in by_leaf[other].items():
                    if leaf == other and far_rank < rank:
                        continue
                    pairs = count * (count - 1) // 2 if leaf == other and rank == far_rank else count * far_count
                    counts[-1 if middle is None else max(rank, far_rank, middle)] += pairs
    own = group_by_key((host, (leaf, rank)) for leaf, these in rails.items() for host, rank in these)
    for places in own.values():
        for number, (leaf, rank) in enumerate(places):
            for other, far_rank in places[number + 1 :]:
                middle = between.rank(min(leaf, other), max(leaf, other))
                counts[-1 if middle is None else max(rank, far_rank, middle)] -= 1
    return Counter({rank: count for rank, count in counts.items() if count})


def _list_weakest(hops: Sequence[HopRow], rails: Mapping[str, Sequence[tuple[str, int]]]) -> list[WeakHop]:
    """Worst first; then those with the most hosts behind them."""
    total = sum(map(len, rails.values()))
    weak = []
    for hop in hops:
        if _RANK[hop.verdict] < _WEAK:
            continue
        leaves = [end.node for end in (hop.a, hop.b) if end.node in rails and end.kind == "switch"]
        behind = {host for leaf in leaves for host, _ in rails[leaf]} if hop.a.kind == "switch" else {hop.a.node}
        own = len([1 for leaf in leaves for host, _ in rails[leaf] if host == hop.a.node])
        pairs = total - own if hop.a.kind == "host" and total else None
        weak.append(WeakHop(hop=hop.label, verdict=hop.verdict, hosts_behind=len(behind), pairs=pairs))
    weak.sort(key=lambda hop: (-_RANK[hop.verdict], -hop.hosts_behind, hop.hop))
    return weak[:_LISTED]


class LosslessAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    schema: str = SCHEMA
    dscp: int
    dscp_source: str
    switches: list[SwitchRow]
    hosts: int
    host_ports: int
    counts: dict[str, int]
    hops: list[HopRow]
    paths: Paths
    findings: list[Finding]
    changes: list[SwitchChange]  # between the two collections
    not_read: list[str]
    notes: list[str]


class Inputs(NamedTuple):
    """All that was given. `only_known_hosts`: hosts without a report are no part of the question."""

    switches: Mapping[str, SwitchFacts]
    before: Mapping[str, SwitchFacts]
    hosts: Sequence[HostPort]
    plan: Sequence[Planned]
    problems: Sequence[str]
    dscp: int | None = None
    only_known_hosts: bool = False


def judge(inputs: Inputs) -> LosslessAnswer:
    """The answer from what was read."""
    marking = choose_marking(inputs.dscp, inputs.hosts)
    joined = join(inputs.switches, inputs.before, inputs.hosts, inputs.plan, inputs.only_known_hosts)
    host_mtu = commonest(host.mtu for host in inputs.hosts)
    cnp = commonest(host.cnp_dscp for host in inputs.hosts)
    contexts = [HopContext(hop, marking.dscp, marking.by_hosts, host_mtu, cnp) for hop in joined.hops]
    lossless = (traffic for context in contexts for traffic in context.traffic if traffic.lossless)
    usual = commonest(traffic.priority for traffic in lossless)
    for context in contexts:
        context.usual = usual
    faults = [
        *_find_faults(contexts),
        *find_cabling_hop_faults([*joined.hops, *joined.others], inputs.switches, inputs.hosts, inputs.plan),
    ]
    by_hop = group_by_key((id(fault.hop), fault) for fault in faults)
    hops = [_make_row(context, by_hop.get(id(context.hop), [])) for context in contexts]
    return LosslessAnswer(
        dscp=marking.dscp,
        dscp_source=marking.why,
        switches=[_make_switch(switch) for switch in inputs.switches.values()],
        hosts=len({host.host for host in inputs.hosts}),
        host_ports=len(inputs.hosts),
        counts={verdict: sum(hop.verdict == verdict for hop in hops) for verdict in VERDICTS},
        hops=hops,
        paths=count_paths(hops),
        findings=fold_faults(faults, marking.dscp),
        changes=list_changes(inputs.switches, inputs.before, marking.dscp),
        not_read=list(inputs.problems),
        notes=[*joined.notes, *joined.unjudged, *_note_marking(marking, inputs)],
    )


def _find_faults(contexts: Sequence[HopContext]) -> Iterable[HopFault]:
    faults = [
        fault
        for context in contexts
        for find in (find_class_faults, find_guard_faults, find_link_faults, find_counter_faults)
        for fault in find(context)
    ]
    faults = list(absorb_lossy_drops(faults, any(context.by_hosts for context in contexts)))
    return [*settle_watchdog(faults, contexts), *find_fabric_faults(contexts)]


def _note_marking(marking: DscpMarking, inputs: Inputs) -> Iterable[str]:
    others = sorted({host.dscp for host in inputs.hosts if host.dscp is not None} - {marking.dscp})
    if others:
        yield f"hosts also mark DSCP {', '.join(map(str, others[:8]))}: ask about each with --dscp"


def _make_row(context: HopContext, faults: Sequence[HopFault]) -> HopRow:
    hop = context.hop
    verdict = judge_hop(context, faults, [severity_of(fault) for fault in faults])
    return HopRow(
        a=_make_end(hop.a, context.traffic[0]),
        b=_make_end(hop.b, context.traffic[1]),
        verdict=verdict.verdict,
        reason=verdict.reason,
        settle=verdict.settle,
        told_by=hop.told_by,
        metres_plan=hop.metres_plan,
        metres_module=hop.metres_module,
        findings=sorted({fault.rule for fault in faults}),
    )


def _make_end(end: CableEnd, traffic: TrafficClass) -> HopEnd:
    return HopEnd(
        node=end.node,
        port=end.port,
        kind="switch" if end.switch is not None else "host" if end.host is not None else "unknown",
        rail=end.host.rail if end.host is not None else None,
        alias=end.facts.alias if end.facts is not None else None,
        trust=end.facts.trust if end.facts is not None else end.host.trust if end.host is not None else None,
        priority=traffic.priority,
        pfc=sorted(traffic.pfc) if traffic.pfc is not None else None,
        queue=traffic.queue,
        speed_gbit_s=end.speed,
        mtu=end.mtu,
        fec=end.fec,
    )


def _make_switch(switch: SwitchFacts) -> SwitchRow:
    return SwitchRow(
        name=switch.name,
        nos=switch.nos,
        model=switch.model,
        version=switch.version,
        role=switch.role,
        ports=len(switch.ports),
        complete=switch.configuration,
        unknown_columns=switch.unknown_columns,
        sources=switch.sources,
        observed_at=switch.observed_at,
    )
