"""Rows of switches by their distance from hosts (1 is a leaf), and blocks: leaves below the same spines, with cables.

A spine with a few service hosts on it is no leaf, and a leaf whose hosts are all off is no core.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.fleet.cluster.fabrics import FabricPart
from agent.fleet.cluster.graph import Nameless, Switch, SwitchPort, natural, shape
from agent.fleet.cluster.peers import AGREE, Cohort, Most, groups, most

MANY = 8  # cables of a switch, of which one may be at a wrong place


def tiers(part: FabricPart, switches: Mapping[str, Switch], nameless: Iterable[Nameless] = ()) -> dict[str, int]:
    """Every switch's row; those that no host reaches are left out. `nameless`: hosts too, whoever they are."""
    hosts = Counter(link.at.switch for link in part.host_links)
    hosts.update(each.at.switch for each in nameless)
    beside: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for link in part.switch_links:
        beside[link.a.switch][link.b.switch] += 1
        beside[link.b.switch][link.a.switch] += 1
    leaves = _leaves(hosts, beside)
    found = _distances(leaves, beside)
    bare = _bare(found, leaves, switches)
    found = _distances(leaves | bare, beside) if bare else found
    return {switch: found[switch] for switch in part.switches if switch in found}  # a set has no order of its own


def direct(part: FabricPart, leaves: set[str]) -> float:
    """The part of the leaves' cables to switches that go to leaves; 0 where there are none."""
    ends = [(link.a.switch in leaves) + (link.b.switch in leaves) for link in part.switch_links]
    touching = sum(each > 0 for each in ends)
    return sum(each == 2 for each in ends) / touching if touching else 0.0


def _leaves(hosts: Mapping[str, int], beside: Mapping[str, Counter[str]]) -> set[str]:
    """Switches with hosts, but not those which join switches that have many more."""
    strong = _strong(hosts)
    ends = sum(count for switch in strong for count in beside.get(switch, Counter()).values())
    among = sum(count for switch in strong for far, count in beside.get(switch, Counter()).items() if far in strong)
    if ends and among > 0.5 * ends:  # routers with hosts, joined to each other
        return set(hosts)
    found = set()
    rows = _distances(strong, beside)
    for switch in hosts:
        near = beside.get(switch, Counter())
        to_strong = sum(count for far, count in near.items() if far in strong)
        above = rows.get(switch, 1) % 2 == 0 and len(near) > 0  # a manager's switch on a core: leaves are at odd ones
        if switch in strong or (to_strong < 0.5 * near.total() and not above) or not near:
            found.add(switch)
    return found


def _strong(hosts: Mapping[str, int]) -> set[str]:
    """Switches with at least half the hosts of the switch on which the middle one of all hosts is."""
    if not hosts:
        return set()
    order = sorted(hosts.values())
    total = sum(order)
    middle, seen = order[-1], 0
    for count in order:
        seen += count
        if seen * 2 >= total:
            middle = count
            break
    return {switch for switch, count in hosts.items() if count * 2 >= middle}


def _distances(leaves: set[str], beside: Mapping[str, Counter[str]]) -> dict[str, int]:
    """Row by row. A single cable at a wrong place draws no switch down to the row that its neighbours are in."""
    found = dict.fromkeys(leaves, 1)
    row, last = 1, leaves
    while last:
        reached: Counter[str] = Counter()
        for near in last:
            for far, count in beside.get(near, {}).items():
                if far not in found:
                    reached[far] += count
        firm = {far for far, count in reached.items() if count > 1 or beside[far].total() < MANY}
        strays = {
            far
            for far in reached.keys() - firm
            if 2 * sum(count for near, count in beside[far].items() if near in firm) > beside[far].total()
        }
        row, last = row + 1, reached.keys() - strays
        found.update(dict.fromkeys(last, row))
    return found


def _bare(found: Mapping[str, int], leaves: set[str], switches: Mapping[str, Switch]) -> set[str]:
    """Switches above the second row that are named as only leaves are: leaves without a host that is up."""
    leaf_shapes = {shape(switches[each].name) for each in leaves}
    others = {shape(switches[each].name) for each, tier in found.items() if tier == 2}
    named = leaf_shapes - others
    return {each for each, tier in found.items() if tier > 2 and shape(switches[each].name) in named}


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
