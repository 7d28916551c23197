"""Rows of switches by their distance from hosts: 1 is a leaf.

A spine with a few service hosts on it is no leaf, and a leaf whose hosts are all off is no core.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from agent.fleet.cluster.graph import Nameless, Switch, shape
from agent.fleet.cluster.parts import FabricPart

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
