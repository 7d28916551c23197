"""Faults that only many hops show: a class that changes on the way, uneven or late ECN, who pauses whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.fleet.lossless.fault import HopContext, HopFault, config_source, counter_source
from agent.fleet.lossless.hop import CableEnd
from agent.fleet.lossless.pauses import LEAST_PAUSES, find_pause_faults
from probes.switches.facts import EcnProfile, SwitchFacts

AGREE, SHARE = 3, 0.75  # of peers: three, and three of four
FACTOR = 2.0  # of ECN thresholds


def find_fabric_faults(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Over all hops."""
    yield from _judge_paths(contexts)
    yield from _judge_ecn(contexts)
    yield from _judge_marks(contexts)
    yield from find_pause_faults(contexts)


def _judge_paths(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Switches whose lossless ports have the DSCP in a priority that most of the fabric's ports do not."""
    places = [
        (traffic.priority, end, context)
        for context in contexts
        for end, traffic in zip(context.hop.ends, context.traffic, strict=True)
        if end.facts is not None and traffic.lossless and not context.by_design
    ]
    counts = Counter(priority for priority, _, _ in places)
    if len(counts) < 2:
        return
    usual = contexts[0].usual
    for priority, end, context in places:
        at_a, at_b = context.traffic
        if priority == usual or (at_a.lossless and at_b.lossless and at_a.priority != at_b.priority):
            continue
        yield HopFault(
            "sw-path-class-changes",
            end,
            context.hop,
            f"DSCP {context.dscp} has priority {priority} here and {usual} on most ports of the fabric",
            ((f"priority of DSCP {context.dscp}", str(priority), config_source(end)),),
            cause=f"priority {priority}",
        )


def _judge_ecn(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Ports of one speed and kind of link, where nearly all of them agree."""
    groups: defaultdict[tuple[float | None, bool], list[tuple[int, HopFault]]] = defaultdict(list)
    for context in contexts:
        for end, traffic in zip(context.hop.ends, context.traffic, strict=True):
            if end.facts is None or not traffic.lossless or traffic.queue is None:
                continue
            profile = (end.facts.ecn or {}).get(traffic.queue)
            if profile is None or not profile.marks or not profile.min_bytes:
                continue
            fault = HopFault(
                "sw-ecn-uneven",
                end,
                context.hop,
                "",
                (("ECN from", f"{profile.min_bytes:,} bytes", config_source(end)),),
                cause=f"min {profile.min_bytes}",
            )
            groups[end.speed, context.hop.is_trunk].append((profile.min_bytes, fault))
    for rows in groups.values():
        counts = Counter(low for low, _ in rows)
        usual, count = counts.most_common(1)[0]
        if count < AGREE or count < SHARE * len(rows):
            continue
        for low, fault in rows:
            if low > FACTOR * usual or low * FACTOR < usual:
                yield fault._replace(summary=f"ECN marks from {low:,} bytes on; {usual:,} on {count:,} of its peers")


class _Marking(NamedTuple):
    """A port with ECN on its lossless queue, and by how much its counters grew. None: not known."""

    end: CableEnd
    context: HopContext
    profile: EcnProfile
    queue: int
    pauses: int
    marks: int | None
    counts: bool  # the counter of marks is not zero


def _judge_marks(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Switches that paused and marked nothing. Marks count only where a switch of the same model has counted some."""
    by_switch: defaultdict[str, list[_Marking]] = defaultdict(list)
    for marking in _list_markings(contexts):
        by_switch[marking.end.node].append(marking)
    working = {_model(row.end.switch) for rows in by_switch.values() for row in rows if row.counts}
    for rows in by_switch.values():
        pauses = sum(row.pauses for row in rows)
        if pauses < LEAST_PAUSES or any(row.marks != 0 for row in rows) or _model(rows[0].end.switch) not in working:
            continue
        first = max(rows, key=lambda row: row.pauses)
        low, source = first.profile.min_bytes, config_source(first.end)
        yield HopFault(
            "sw-ecn-order",
            first.end,
            first.context.hop,
            f"{first.end.node} sent {pauses:,} pauses between the two collections and marked no packet",
            (
                ("pauses sent", f"{pauses:,}", counter_source(first.end, "show pfc counters")),
                ("packets marked", "0", counter_source(first.end, "show queue wredcounters")),
                (f"ECN of queue {first.queue}, from", "unknown" if low is None else f"{low:,} bytes", source),
            ),
            cause="pauses and no marks",
            values={"queue": str(first.queue)},
        )


def _list_markings(contexts: Sequence[HopContext]) -> Iterator[_Marking]:
    for context in contexts:
        for end, traffic in zip(context.hop.ends, context.traffic, strict=True):
            if end.facts is None or not traffic.lossless or traffic.queue is None or context.by_design:
                continue
            profile = (end.facts.ecn or {}).get(traffic.queue)
            if profile is None or not profile.marks:
                continue
            name = f"ecn_marked_{traffic.queue}"
            pauses = end.delta(f"pfc_tx_{traffic.priority}") or 0
            counts = end.facts.counters.get(name, 0) > 0
            yield _Marking(end, context, profile, traffic.queue, pauses, end.delta(name), counts)


def _model(switch: SwitchFacts | None) -> tuple[str | None, str | None]:
    return (switch.nos, switch.model) if switch is not None else (None, None)
