"""Faults that only many hops show: a class that changes on the way, uneven or late ECN, which port pauses which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.fleet.lossless.fault import HopContext, HopFault, config_source, counter_source
from agent.fleet.lossless.hop import CableEnd
from probes.switches.facts import EcnProfile, SwitchFacts

AGREE, SHARE = 3, 0.75  # of peers: three, and three of four
FACTOR = 2.0  # of ECN thresholds
LEAST_PAUSES = 10_000  # between two collections: fewer are everyday
_COMMAND = "show pfc counters"


def find_fabric_faults(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Over all hops."""
    yield from _judge_paths(contexts)
    yield from _judge_ecn(contexts)
    yield from _judge_marks(contexts)
    yield from _find_pause_faults(contexts)


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
        yield context.fault(
            "sw-path-class-changes",
            end,
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
            fault = context.fault(
                "sw-ecn-uneven",
                end,
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


def _find_pause_faults(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """An edge A -> B: A sends pauses to B, so B waits for A."""
    edges: defaultdict[str, dict[str, tuple[int, HopContext, CableEnd]]] = defaultdict(dict)
    for context in contexts:
        for end, traffic, far, at_far in context.sides():
            priority = traffic.priority if traffic.priority is not None else at_far.priority
            if priority is None or end.facts is None:
                continue
            sent, received = end.delta(f"pfc_tx_{priority}"), end.delta(f"pfc_rx_{priority}")
            if sent is not None and sent >= LEAST_PAUSES and far.switch is not None:
                edges[end.node][far.node] = (sent, context, end)
            by_host = far.switch is None and bool(far.node) and (sent or 0) < LEAST_PAUSES
            if by_host and received is not None and received >= LEAST_PAUSES:
                edges[far.node][end.node] = (received, context, end)
    yield from _find_sources(edges)
    yield from _find_cycles(edges)


def _find_sources(edges: dict[str, dict[str, tuple[int, HopContext, CableEnd]]]) -> Iterator[HopFault]:
    """Hosts that pause their switch while it does not pause them: they do not take what the link brings."""
    for node, targets in edges.items():
        for count, context, end in targets.values():
            far = context.hop.a if end is context.hop.b else context.hop.b
            if far.node != node or far.switch is not None:
                continue
            spread = "" if end.node not in edges else f"; {end.node} pauses {', '.join(sorted(edges[end.node]))} for it"
            yield context.fault(
                "sw-storm-source",
                end,
                f"{far.label} sent {count:,} pauses between the two collections{spread}",
                ((f"pauses received from {far.label}", f"{count:,}", counter_source(end, _COMMAND)),),
                severity=None if spread else "warning",
            )


def _find_cycles(edges: dict[str, dict[str, tuple[int, HopContext, CableEnd]]]) -> Iterator[HopFault]:
    """Of switches, and longer than one link both ways: two that pause each other over one cable are no cycle."""
    switches = {node: [far for far in targets if far in edges] for node, targets in edges.items()}
    for cycle in _list_cycles(switches):
        count, context, end = edges[cycle[0]][cycle[1]]
        names = " > ".join([*cycle, cycle[0]])
        yield context.fault(
            "sw-pause-loop",
            end,
            f"switches pause each other in a cycle: {names}",
            (("pauses sent", f"{count:,}", counter_source(end, _COMMAND)),),
        )


def _list_cycles(graph: dict[str, list[str]]) -> Iterator[list[str]]:
    """One cycle of three nodes or more from each part of the graph that has one."""
    done: set[str] = set()
    for start in sorted(graph):
        if start in done:
            continue
        path, places = [start], {start: 0}
        stack = [iter(sorted(graph[start]))]
        done.add(start)
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                places.pop(path.pop())
            elif following in places:
                if len(path) - places[following] > 2:
                    yield path[places[following] :]
                    return
            elif following not in done:
                done.add(following)
                places[following] = len(path)
                path.append(following)
                stack.append(iter(sorted(graph[following])))
