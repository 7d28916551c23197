"""Leaves that hang on the same spines, spines on the same cores: how many cables each pair of them has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from agent.fleet.cluster.clear import AGREE, Most, most
from agent.fleet.cluster.graph import Switch, SwitchPort, natural, shape
from agent.fleet.cluster.grouping import Cohort, groups
from agent.fleet.cluster.parts import FabricPart

_DESIGN = 4  # switches above: that one cable to each of so many is out at once is no fault


class SwitchBlock(NamedTuple):
    """`lower` and `upper` switches; `cables` of each pair; `usual`: how many a pair has, by the upper switch.

    `ends`: port of a switch -> port at the far end, of the cables between them. `peers`: those of `lower` that can be
    compared: named alike, or with at least half of the usual cables. `places`: those of `upper` that are theirs.
    """

    tier: int
    lower: tuple[str, ...]
    upper: tuple[str, ...]
    cables: Mapping[tuple[str, str], int]
    usual: Mapping[str, tuple[int, Most]]
    ends: Mapping[SwitchPort, SwitchPort]
    peers: tuple[str, ...]
    places: frozenset[str] = frozenset()


def blocks(part: FabricPart, tiers: Mapping[str, int], switches: Mapping[str, Switch]) -> list[SwitchBlock]:
    """The blocks between each row and the next."""
    above: defaultdict[int, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    ends: defaultdict[str, list[tuple[SwitchPort, SwitchPort]]] = defaultdict(
        list
    )  # of the cables up, by the lower switch
    for link in part.switch_links:
        one, other = tiers.get(link.a.switch), tiers.get(link.b.switch)
        if one is None or other is None or abs(one - other) != 1:
            continue
        low, high = (link.a, link.b) if one < other else (link.b, link.a)
        tier = min(one, other)
        above[tier][low.switch][high.switch] += 1
        ends[low.switch].append((low, high))
    found = []
    for tier in sorted(above):
        reached = Counter(high for counts in above[tier].values() for high in counts)
        aside = frozenset(high for high, count in reached.items() if count == 1)  # a gateway of one leaf, not a spine
        made, loose = groups(above[tier])
        stray = _strays(made, above[tier])
        found += [
            _block(tier, each.members, each.places - stray[n], above[tier], ends, switches, aside)
            for n, each in enumerate(made)
        ]
        found += [_block(tier, (each,), frozenset(above[tier][each]), above[tier], ends, switches) for each in loose]
    return found


def _block(
    tier: int, members: tuple[str, ...], places: frozenset[str], above: Mapping[str, Counter[str]],
    ends: Mapping[str, list[tuple[SwitchPort, SwitchPort]]], switches: Mapping[str, Switch],
    aside: frozenset[str] = frozenset(),
) -> SwitchBlock:  # fmt: skip
    def key(each: str) -> object:
        return natural(switches[each].name), each

    lower = tuple(sorted(members, key=key))  # type: ignore[arg-type]  # tuples, which do compare
    aside = aside if len(lower) > 1 else frozenset()
    places -= aside
    told = all(switches[each].whole for each in places)
    peers = _peers(tuple(each for each in lower if told or switches[each].whole), places, above, switches)
    upper = tuple(sorted({far for each in peers for far in above[each]} - aside | places, key=key))  # type: ignore[arg-type]
    cables = {(low, high): count for low in lower for high, count in above[low].items()}
    every = most(Counter(cables.get((low, high), 0) for low in peers for high in places))
    usual = {}
    for high in upper:
        counts = Counter(cables.get((low, high), 0) for low in peers)
        clear = most(counts)
        if clear and clear[0] > 0:
            usual[high] = clear
        elif every and every[0] > 0 and high in places and (len(peers) < AGREE or 2 * counts[every[0]] > len(peers)):
            usual[high] = every  # few leaves, or several odd ones: held against each other over all their spines
    far = set(upper)
    own: dict[SwitchPort, SwitchPort] = {}
    for one, other in (pair for each in lower for pair in ends[each]):
        if other.switch in far:
            own[one], own[other] = other, one
    return SwitchBlock(tier, lower, upper, cables, usual, own, peers, places)


def _strays(made: list[Cohort], above: Mapping[str, Counter[str]]) -> list[set[str]]:
    """Of each group: places that one of its members has alone, while several of another group have them."""
    reached = [Counter(place for member in group.members for place in above[member]) for group in made]
    often = {place for counts in reached for place, count in counts.items() if count > 1}
    return [
        {place for place, count in counts.items() if count == 1 and place in often} if len(group.members) > 1 else set()
        for group, counts in zip(made, reached, strict=True)
    ]


def _peers(
    lower: tuple[str, ...], places: frozenset[str], above: Mapping[str, Counter[str]], switches: Mapping[str, Switch]
) -> tuple[str, ...]:
    """A service switch with two cables to one of ten spines is not a leaf that lost nine of them."""
    if not lower:
        return ()
    shapes = Counter(shape(switches[each].name) for each in lower)
    usual, count = shapes.most_common(1)[0]
    told = count * 2 > len(lower) and usual not in {shape(switches[each].name) for each in places}
    middle = sorted(above[each].total() for each in lower)[len(lower) // 2]

    def peer(each: str) -> bool:
        counts = [above[each][far] for far in places]
        if len(counts) >= _DESIGN and 0 < min(counts) == max(counts) and 4 * sum(counts) <= 3 * middle:
            return False  # fewer, and the same to every one of them: so it was meant
        if told and shape(switches[each].name) == usual:
            return True
        reached = len(places & above[each].keys())
        return 2 * above[each].total() >= middle and (not told or reached >= 0.75 * len(places))

    return tuple(each for each in lower if peer(each))
