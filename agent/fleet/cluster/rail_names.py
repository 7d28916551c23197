"""One name a rail within a unit, whatever its nodes call their adapters: mlx5_0, ibp26s0 or HCA-1.

Where enough nodes share a way of naming, their cables state which name is which rail; else the order of the names does.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from agent.fleet.cluster.graph import HostLink
from agent.fleet.cluster.peers import find_most
from agent.model.labels import count_by_key, natural

Links = dict[str, list[HostLink]]
Names = tuple[str, ...]
SWAPPED = 2  # rails of a node that may be at another place before its names are thought to mean something else
_BY_PLACE = re.compile(r"[a-z]{2,6}?(?:P([0-9]{1,5}))?p([0-9]{1,5})s([0-9]{1,5})(?:f([0-9]{1,3}))?.*")


@lru_cache(maxsize=1 << 12)  # every node has the same few
def order(name: str) -> tuple[object, ...]:
    """Adapters as the bus has them, where the name states it; else by the numbers in their names.

    >>> sorted(["ibP2p1s0", "ibp1s0", "ibp26s0"], key=order), sorted(["mlx5_10", "mlx5_9"], key=order)
    (['ibp1s0', 'ibp26s0', 'ibP2p1s0'], ['mlx5_9', 'mlx5_10'])
    """
    match = _BY_PLACE.fullmatch(name)
    if match:
        return 0, tuple(int(group or 0) for group in match.groups()), natural(name)
    return 1, (), natural(name)


def unify_names(units: Sequence[Iterable[str]], links: Links) -> None:
    """Rename the rails of nodes that name them otherwise than most of their unit, in place."""
    usual_names: list[Names] = []
    others: list[dict[str, Names]] = []
    votes: defaultdict[Names, defaultdict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    for hosts in units:
        named = {host: _read_names(links[host]) for host in hosts}
        chosen = _find_usual_names(named.values())
        usual_names.append(chosen)
        others.append({host: names for host, names in named.items() if names and chosen and names != chosen})
        if not others[-1]:
            continue
        rail_of = _find_rail_of_leaf(chosen, [links[host] for host, names in named.items() if names == chosen])
        for host, names in others[-1].items():
            for link in links[host]:
                if link.at.switch in rail_of:
                    votes[names][link.rail][rail_of[link.at.switch]] += 1
    for chosen, these in zip(usual_names, others, strict=True):
        for host, names in these.items():
            rails = _match_by_leaf(names, votes, len(chosen)) or _match_by_order(names, chosen, votes, links[host])
            if rails and len(set(rails.values())) == len(rails):
                links[host] = [link._replace(rail=chosen[rails[link.rail]]) for link in links[host]]


def _read_names(links: Iterable[HostLink]) -> Names:
    """Of a node's rails in order; () where one has none, or two have the same."""
    names = tuple(sorted((link.rail for link in links), key=order))
    return names if all(names) and len(set(names)) == len(names) else ()


def _find_usual_names(named: Iterable[Names]) -> Names:
    """The names of most nodes, of those with the usual number of adapters."""
    counts = Counter(names for names in named if names)
    sizes: Counter[int] = Counter()
    for names, count in counts.items():
        sizes[len(names)] += count
    size = max(sizes, key=lambda size: (sizes[size], size), default=0)
    return next((names for names, _ in counts.most_common() if len(names) == size), ())


def _find_rail_of_leaf(chosen: Names, nodes: Iterable[list[HostLink]]) -> dict[str, int]:
    """Leaf -> place of its rail among the usual names, where a leaf has one rail."""
    at = count_by_key((link.rail, link.at.switch) for links in nodes for link in links)
    leaf_of = {rail: counts.most_common(1)[0][0] for rail, counts in at.items()}
    uses = Counter(leaf_of.values())
    return {leaf_of[rail]: place for place, rail in enumerate(chosen) if rail in leaf_of and uses[leaf_of[rail]] == 1}


def _match_by_leaf(names: Names, votes: Mapping[Names, Mapping[str, Counter[int]]], size: int) -> dict[str, int] | None:
    """What the nodes that name them so show by their cables."""
    meanings = {}
    for name in names:
        clear = find_most(votes.get(names, {}).get(name, Counter()))
        if clear is None or clear[0] >= size:
            return None
        meanings[name] = clear[0]
    return meanings


def _match_by_order(
    names: Names, chosen: Names, votes: Mapping[Names, Mapping[str, Counter[int]]], links: list[HostLink]
) -> dict[str, int] | None:
    """The first is the first. A node with fewer is read by one that has all and names them the same."""
    if set(names) < set(chosen):
        return None  # the same names, some of them missing
    whole = names
    if len(names) < len(chosen):
        whole = next((vote for vote in votes if len(vote) == len(chosen) and set(names) < set(vote)), ())
    if len(whole) != len(chosen):
        return None
    position_of = {name: place for place, name in enumerate(whole)}
    counts = votes.get(names, {})
    strange = sum(bool(counts.get(link.rail)) and position_of[link.rail] not in counts[link.rail] for link in links)
    if strange > SWAPPED:  # these names count in another order: where the cables are is what they mean
        own = {link.rail: counts[link.rail].most_common(1)[0][0] for link in links if counts.get(link.rail)}
        return own if len(own) == len(names) else None
    return {name: position_of[name] for name in names}
