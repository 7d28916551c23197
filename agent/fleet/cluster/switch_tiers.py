"""Rows of switches by their distance from hosts (1 is a leaf), and blocks: leaves below the same spines, with cables.

A spine with a few service hosts on it is no leaf, and a leaf whose hosts are all off is no core.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.fleet.cluster.fabrics import FabricPart
from agent.fleet.cluster.graph import Switch, SwitchPort, UnknownAdapter, count_neighbors, shape
from agent.fleet.cluster.peers import AGREE, Cohort, Majority, find_most, group_peers
from agent.model.labels import natural

MANY = 8  # cables of a switch, of which one may be at a wrong place


def find_tiers(
    part: FabricPart, switches: Mapping[str, Switch], nameless: Iterable[UnknownAdapter] = ()
) -> dict[str, int]:
    """Every switch's row; those that no host reaches are left out. `nameless`: hosts too, whichever they are."""
    hosts = Counter(link.at.switch for link in part.host_links)
    hosts.update(adapter.at.switch for adapter in nameless)
    beside = count_neighbors(part.switch_links)
    leaves = _find_leaves(hosts, beside)
    tier_of = _measure_distances(leaves, beside)
    bare = _find_bare(tier_of, leaves, switches)
    tier_of = _measure_distances(leaves | bare, beside) if bare else tier_of
    return {switch: tier_of[switch] for switch in part.switches if switch in tier_of}  # a set has no order of its own


def direct(part: FabricPart, leaves: set[str]) -> float:
    """The part of the leaves' cables to switches that go to leaves; 0 where there are none."""
    ends = [(link.a.switch in leaves) + (link.b.switch in leaves) for link in part.switch_links]
    touching = sum(end > 0 for end in ends)
    return sum(end == 2 for end in ends) / touching if touching else 0.0


def _find_leaves(hosts: Mapping[str, int], beside: Mapping[str, Counter[str]]) -> set[str]:
    """Switches with hosts, but not those which join switches that have many more."""
    strong = _find_strong(hosts)
    ends = sum(count for switch in strong for count in beside.get(switch, Counter()).values())
    among = sum(count for switch in strong for far, count in beside.get(switch, Counter()).items() if far in strong)
    if ends and among > 0.5 * ends:  # routers with hosts, joined to each other
        return set(hosts)
    leaves = set()
    rows = _measure_distances(strong, beside)
    for switch in hosts:
        near = beside.get(switch, Counter())
        to_strong = sum(count for far, count in near.items() if far in strong)
        above = rows.get(switch, 1) % 2 == 0 and len(near) > 0  # a manager's switch on a core: leaves are at odd ones
        if switch in strong or (to_strong < 0.5 * near.total() and not above) or not near:
            leaves.add(switch)
    return leaves


def _find_strong(hosts: Mapping[str, int]) -> set[str]:
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


def _measure_distances(leaves: set[str], beside: Mapping[str, Counter[str]]) -> dict[str, int]:
    """Row by row. A single cable at a wrong place draws no switch down to the row that its neighbours are in."""
    distance_of = dict.fromkeys(leaves, 1)
    row, last = 1, leaves
    while last:
        reached: Counter[str] = Counter()
        for near in last:
            for far, count in beside.get(near, {}).items():
                if far not in distance_of:
                    reached[far] += count
        firm = {far for far, count in reached.items() if count > 1 or beside[far].total() < MANY}
        strays = {
            far
            for far in reached.keys() - firm
            if 2 * sum(count for near, count in beside[far].items() if near in firm) > beside[far].total()
        }
        row, last = row + 1, reached.keys() - strays
        distance_of.update(dict.fromkeys(last, row))
    return distance_of


def _find_bare(tier_of: Mapping[str, int], leaves: set[str], switches: Mapping[str, Switch]) -> set[str]:
    """Switches above the second row that are named as only leaves are: leaves without a host that is up."""
    leaf_shapes = {shape(switches[leaf].name) for leaf in leaves}
    others = {shape(switches[switch].name) for switch, tier in tier_of.items() if tier == 2}
    named = leaf_shapes - others
    return {switch for switch, tier in tier_of.items() if tier > 2 and shape(switches[switch].name) in named}


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
    usual: Mapping[str, tuple[int, Majority]]
    ends: Mapping[SwitchPort, SwitchPort]
    peers: tuple[str, ...]
    places: frozenset[str] = frozenset()


def build_blocks(part: FabricPart, tiers: Mapping[str, int], switches: Mapping[str, Switch]) -> list[SwitchBlock]:
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
    blocks = []
    for tier in sorted(above):
        reached = Counter(high for counts in above[tier].values() for high in counts)
        aside = frozenset(high for high, count in reached.items() if count == 1)  # a gateway of one leaf, not a spine
        cohorts, loose = group_peers(above[tier])
        stray = _list_strays(cohorts, above[tier])
        blocks += [
            _build_block(tier, cohort.members, cohort.places - stray[n], above[tier], ends, switches, aside)
            for n, cohort in enumerate(cohorts)
        ]
        blocks += [
            _build_block(tier, (switch,), frozenset(above[tier][switch]), above[tier], ends, switches)
            for switch in loose
        ]
    return blocks


def _build_block(
    tier: int, members: tuple[str, ...], places: frozenset[str], above: Mapping[str, Counter[str]],
    ends: Mapping[str, list[tuple[SwitchPort, SwitchPort]]], switches: Mapping[str, Switch],
    aside: frozenset[str] = frozenset(),
) -> SwitchBlock:  # fmt: skip
    def key(text: str) -> object:
        return natural(switches[text].name), text

    lower = tuple(sorted(members, key=key))  # type: ignore[arg-type]  # tuples, which do compare
    aside = aside if len(lower) > 1 else frozenset()
    places -= aside
    all_read = all(switches[place].whole for place in places)
    peers = _list_peers(
        tuple(switch for switch in lower if all_read or switches[switch].whole), places, above, switches
    )
    upper = tuple(sorted({far for peer in peers for far in above[peer]} - aside | places, key=key))  # type: ignore[arg-type]
    cables = {(low, high): count for low in lower for high, count in above[low].items()}
    every = find_most(Counter(cables.get((low, high), 0) for low in peers for high in places))
    usual_counts = {}
    for high in upper:
        counts = Counter(cables.get((low, high), 0) for low in peers)
        clear = find_most(counts)
        if clear and clear[0] > 0:
            usual_counts[high] = clear
        elif every and every[0] > 0 and high in places and (len(peers) < AGREE or 2 * counts[every[0]] > len(peers)):
            usual_counts[high] = every  # few leaves, or several odd ones: held against each other over all their spines
    far = set(upper)
    own: dict[SwitchPort, SwitchPort] = {}
    for one, other in (pair for switch in lower for pair in ends[switch]):
        if other.switch in far:
            own[one], own[other] = other, one
    return SwitchBlock(tier, lower, upper, cables, usual_counts, own, peers, places)


def _list_strays(cohorts: list[Cohort], above: Mapping[str, Counter[str]]) -> list[set[str]]:
    """Of each group: places that one of its members has alone, while several of another group have them."""
    reached = [Counter(place for member in group.members for place in above[member]) for group in cohorts]
    often = {place for counts in reached for place, count in counts.items() if count > 1}
    return [
        {place for place, count in counts.items() if count == 1 and place in often} if len(group.members) > 1 else set()
        for group, counts in zip(cohorts, reached, strict=True)
    ]


def _list_peers(
    lower: tuple[str, ...], places: frozenset[str], above: Mapping[str, Counter[str]], switches: Mapping[str, Switch]
) -> tuple[str, ...]:
    """A service switch with two cables to one of ten spines is not a leaf that lost nine of them."""
    if not lower:
        return ()
    shapes = Counter(shape(switches[switch].name) for switch in lower)
    usual_shape, count = shapes.most_common(1)[0]
    is_common = count * 2 > len(lower) and usual_shape not in {shape(switches[place].name) for place in places}
    middle = sorted(above[switch].total() for switch in lower)[len(lower) // 2]

    def peer(text: str) -> bool:
        counts = [above[text][far] for far in places]
        if len(counts) >= _DESIGN and 0 < min(counts) == max(counts) and 4 * sum(counts) <= 3 * middle:
            return False  # fewer, and the same to every one of them: so it was meant
        if is_common and shape(switches[text].name) == usual_shape:
            return True
        reached = len(places & above[text].keys())
        return 2 * above[text].total() >= middle and (not is_common or reached >= 0.75 * len(places))

    return tuple(switch for switch in lower if peer(switch))
