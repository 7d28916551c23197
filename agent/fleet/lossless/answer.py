"""The answer of `fleet lossless` as data: hops with their verdicts, paths by their weakest hop, findings."""

from __future__ import annotations

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
from agent.fleet.lossless.paths import Paths, count_paths
from agent.fleet.lossless.rows import HopEnd, HopRow, SwitchRow
from agent.fleet.lossless.traffic import TrafficClass
from agent.fleet.lossless.verdict import VERDICTS, judge_hop
from agent.model.finding import Finding
from probes.switches.facts import SwitchFacts

SCHEMA = "fabricscope.lossless/1"


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
    by_hop: dict[int, list[HopFault]] = {}
    for fault in faults:
        by_hop.setdefault(id(fault.hop), []).append(fault)
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
