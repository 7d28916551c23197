"""Faults that only many hops tell: a class that changes on the way, uneven ECN, who pauses whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from agent.fleet.lossless.fault import HopCase, HopFault, config_source
from agent.fleet.lossless.pauses import find_pause_faults

AGREE, SHARE = 3, 0.75  # of peers: three, and three of four
FACTOR = 2.0  # of ECN thresholds


def find_fabric_faults(cases: Sequence[HopCase]) -> Iterator[HopFault]:
    """Over all hops."""
    yield from _judge_paths(cases)
    yield from _judge_ecn(cases)
    yield from find_pause_faults(cases)


def _judge_paths(cases: Sequence[HopCase]) -> Iterator[HopFault]:
    """Switches whose lossless ports have the DSCP in a priority that most of the fabric's ports do not."""
    places = [
        (traffic.priority, end, case)
        for case in cases
        for end, traffic in zip(case.hop.ends, case.traffic, strict=True)
        if end.facts is not None and traffic.lossless and not case.by_design
    ]
    counts = Counter(priority for priority, _, _ in places)
    if len(counts) < 2:
        return
    usual = cases[0].usual
    for priority, end, case in places:
        at_a, at_b = case.traffic
        if priority == usual or (at_a.lossless and at_b.lossless and at_a.priority != at_b.priority):
            continue
        yield HopFault(
            "sw-path-class-changes",
            end,
            case.hop,
            f"DSCP {case.dscp} has priority {priority} here and {usual} on most ports of the fabric",
            ((f"priority of DSCP {case.dscp}", str(priority), config_source(end)),),
            cause=f"priority {priority}",
        )


def _judge_ecn(cases: Sequence[HopCase]) -> Iterator[HopFault]:
    """Ports of one speed and kind of link, where nearly all of them agree."""
    groups: defaultdict[tuple[float | None, bool], list[tuple[int, HopFault]]] = defaultdict(list)
    for case in cases:
        for end, traffic in zip(case.hop.ends, case.traffic, strict=True):
            if end.facts is None or not traffic.lossless or traffic.queue is None:
                continue
            profile = (end.facts.ecn or {}).get(traffic.queue)
            if profile is None or not profile.marks or not profile.min_bytes:
                continue
            fault = HopFault(
                "sw-ecn-uneven",
                end,
                case.hop,
                "",
                (("ECN from", f"{profile.min_bytes:,} bytes", config_source(end)),),
                cause=f"min {profile.min_bytes}",
            )
            groups[end.speed, case.hop.is_trunk].append((profile.min_bytes, fault))
    for rows in groups.values():
        counts = Counter(low for low, _ in rows)
        usual, count = counts.most_common(1)[0]
        if count < AGREE or count < SHARE * len(rows):
            continue
        for low, fault in rows:
            if low > FACTOR * usual or low * FACTOR < usual:
                yield fault._replace(summary=f"ECN marks from {low:,} bytes on; {usual:,} on {count:,} of its peers")
