"""Paths from rail to rail, counted by their weakest hop: all equal paths of a pair, as good as the worst of them.

Pairs are not listed: hops are judged once. Leaves with the same links up are looked at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agent.fleet.lossless.rows import HopRow
from agent.fleet.lossless.verdict import VERDICTS

_RANK = {verdict: rank for rank, verdict in enumerate(VERDICTS)}
_NAMES = list(VERDICTS)
_WEAK = _RANK["trimmed"]  # from here a path is not lossless, or not known to be
_STEPS = 50_000_000  # of the walk over links: with more, paths through switches are not counted
_LISTED = 100


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
    own: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for leaf, these in rails.items():
        for host, rank in these:
            own[host].append((leaf, rank))
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
