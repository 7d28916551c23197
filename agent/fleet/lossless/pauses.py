"""Who pauses whom: pauses as edges of a graph over two collections, where they begin, and whether they go round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from agent.fleet.lossless.fault import HopContext, HopFault, counter_source
from agent.fleet.lossless.hop import CableEnd

LEAST_PAUSES = 10_000  # between two collections: fewer are everyday
_COMMAND = "show pfc counters"


def find_pause_faults(contexts: Sequence[HopContext]) -> Iterator[HopFault]:
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
            yield HopFault(
                "sw-storm-source",
                end,
                context.hop,
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
        yield HopFault(
            "sw-pause-loop",
            end,
            context.hop,
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
