"""Faults that only many hops show: a class that changes on the way, uneven or late ECN, which port pauses which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.fleet.cluster.peers import find_most
from agent.fleet.lossless.fault import HopContext, HopFault, HopSide, counter_source
from agent.model.labels import group_by_key
from probes.switches.facts import EcnProfile, SwitchFacts

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
    sides = [side for side in _list_lossless(contexts) if not side.context.by_design]
    if len({side.traffic.priority for side in sides}) < 2:
        return
    usual = contexts[0].usual
    for side in sides:
        priority, far, dscp = side.traffic.priority, side.at_far, side.context.dscp
        if priority == usual or (far.lossless and far.priority != priority):
            continue
        text = f"DSCP {dscp} has priority {priority} here and {usual} on most ports of the fabric"
        evidence = (f"priority of DSCP {dscp}", str(priority))
        yield side.fault("sw-path-class-changes", text, evidence, cause=f"priority {priority}")


def _list_lossless(contexts: Sequence[HopContext]) -> Iterator[HopSide]:
    return (side for context in contexts for side in context.switch_sides() if side.traffic.lossless)


def _judge_ecn(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Ports of one speed and kind of link, where nearly all of them agree."""
    groups = group_by_key(
        ((side.end.speed, side.context.hop.is_trunk), (profile.min_bytes, side))
        for side, profile, _ in _list_marking(contexts)
        if profile.min_bytes
    )
    for rows in groups.values():
        most = find_most(Counter(low for low, _ in rows))
        if most is None:
            continue
        usual, majority = most
        for low, side in rows:
            if low > FACTOR * usual or low * FACTOR < usual:
                text = f"ECN marks from {low:,} bytes on; {usual:,} on {majority.agree:,} of its peers"
                yield side.fault("sw-ecn-uneven", text, ("ECN from", f"{low:,} bytes"), cause=f"min {low}")


def _list_marking(contexts: Sequence[HopContext]) -> Iterator[tuple[HopSide, EcnProfile, int]]:
    """Ports with ECN on their lossless queue, and the queue."""
    for side in _list_lossless(contexts):
        queue = side.traffic.queue
        profile = (side.port.ecn or {}).get(queue) if queue is not None else None
        if queue is not None and profile is not None and profile.marks:
            yield side, profile, queue


class _Marking(NamedTuple):
    """A port with ECN on its lossless queue, and by how much its counters grew. None: not known."""

    side: HopSide
    profile: EcnProfile
    queue: int
    pauses: int
    marks: int | None
    counts: bool  # the counter of marks is not zero


def _judge_marks(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Switches that paused and marked nothing. Marks count only where a switch of the same model has counted some."""
    by_switch: defaultdict[str, list[_Marking]] = defaultdict(list)
    for side, profile, queue in _list_marking(contexts):
        if not side.context.by_design:
            name = f"ecn_marked_{queue}"
            pauses = side.end.delta(f"pfc_tx_{side.traffic.priority}") or 0
            counts = side.port.counters.get(name, 0) > 0
            marking = _Marking(side, profile, queue, pauses, side.end.delta(name), counts)
            by_switch[side.end.node].append(marking)
    working = {_model(row.side.end.switch) for rows in by_switch.values() for row in rows if row.counts}
    for node, rows in by_switch.items():
        first = max(rows, key=lambda row: row.pauses)
        pauses, low, end = sum(row.pauses for row in rows), first.profile.min_bytes, first.side.end
        if (
            pauses < LEAST_PAUSES
            or any(row.marks != 0 for row in rows)
            or _model(rows[0].side.end.switch) not in working
        ):
            continue
        yield first.side.fault(
            "sw-ecn-order",
            f"{node} sent {pauses:,} pauses between the two collections and marked no packet",
            ("pauses sent", f"{pauses:,}", counter_source(end, _COMMAND)),
            ("packets marked", "0", counter_source(end, "show queue wredcounters")),
            (f"ECN of queue {first.queue}, from", "unknown" if low is None else f"{low:,} bytes"),
            cause="pauses and no marks",
            values={"queue": str(first.queue)},
        )


def _model(switch: SwitchFacts | None) -> tuple[str | None, str | None]:
    return (switch.nos, switch.model) if switch is not None else (None, None)


_Edges = defaultdict[str, dict[str, tuple[int, HopSide]]]  # pauses of a node to another, and the switch's end of it


def _find_pause_faults(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """An edge A -> B: A sends pauses to B, so B waits for A."""
    edges: _Edges = defaultdict(dict)
    for side in (side for context in contexts for side in context.switch_sides()):
        end, far = side.end, side.far
        priority = side.traffic.priority if side.traffic.priority is not None else side.at_far.priority
        if priority is None:
            continue
        sent, received = end.delta(f"pfc_tx_{priority}"), end.delta(f"pfc_rx_{priority}")
        if sent is not None and sent >= LEAST_PAUSES and far.switch is not None:
            edges[end.node][far.node] = sent, side
        by_host = far.switch is None and bool(far.node) and (sent or 0) < LEAST_PAUSES
        if by_host and received is not None and received >= LEAST_PAUSES:
            edges[far.node][end.node] = received, side
    yield from _find_sources(edges)
    yield from _find_cycles(edges)


def _find_sources(edges: _Edges) -> Iterator[HopFault]:
    """Hosts that pause their switch while it does not pause them: they do not take what the link brings."""
    for node, targets in edges.items():
        for count, side in targets.values():
            here, far = side.end.node, side.far
            if far.node != node or far.switch is not None:
                continue
            spread = f"; {here} pauses {', '.join(sorted(edges[here]))} for it" if here in edges else ""
            evidence = (f"pauses received from {far.label}", f"{count:,}", counter_source(side.end, _COMMAND))
            text = f"{far.label} sent {count:,} pauses between the two collections{spread}"
            yield side.fault("sw-storm-source", text, evidence, severity=None if spread else "warning")


def _find_cycles(edges: _Edges) -> Iterator[HopFault]:
    """Of switches, and longer than one link both ways: two that pause each other over one cable are no cycle."""
    switches = {node: [far for far in targets if far in edges] for node, targets in edges.items()}
    for cycle in _list_cycles(switches):
        count, side = edges[cycle[0]][cycle[1]]
        text = f"switches pause each other in a cycle: {' > '.join([*cycle, cycle[0]])}"
        yield side.fault("sw-pause-loop", text, ("pauses sent", f"{count:,}", counter_source(side.end, _COMMAND)))


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
