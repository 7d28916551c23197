"""What a fabric is: rail-optimized, fat tree and how far it is oversubscribed, dragonfly; each with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import LinkRate, SwitchLink, count_neighbors
from agent.fleet.cluster.peers import Joined
from agent.fleet.cluster.switch_tiers import direct

FEW_PAIRS = 4  # of a leaf and a switch above it: fewer show no kind
WORDS = {
    "rail-optimized": "rail-optimized",
    "fat-tree": "fat tree",
    "dragonfly": "dragonfly",
    "dragonfly+": "dragonfly+",
    "single-switch": "one switch",
    "mesh": "switches joined with each other",
    "unknown": "unknown",
}


class FabricKind(NamedTuple):
    """`kind`: a key of WORDS. `sure`: sure | likely | unsure. `oversubscription`: of leaves, to hosts : upwards."""

    kind: str
    sure: str
    evidence: tuple[str, ...]
    levels: int
    oversubscription: float | None


class Load(NamedTuple):
    """Of switches of one row: ports and Gbit/s towards hosts and away from them, on a full one."""

    down: int
    up: int
    down_gbit_s: float
    up_gbit_s: float

    def plus(self, up: bool, pace: LinkRate) -> Load:
        """With one more port."""
        gbit_s = pace.gbit_s or 0.0
        if up:
            return self._replace(up=self.up + 1, up_gbit_s=self.up_gbit_s + gbit_s)
        return self._replace(down=self.down + 1, down_gbit_s=self.down_gbit_s + gbit_s)

    @property
    def ratio(self) -> float | None:
        """Down to up; none where a pace is not known."""
        return self.down_gbit_s / self.up_gbit_s if self.up_gbit_s and self.down_gbit_s else None


def classify_fabric(view: View) -> FabricKind:
    """The kind of one fabric."""
    evidence = list(_describe_rows(view))
    loads = [load for load in (load_of(view, tier) for tier in range(1, view.levels)) if load]
    ratio = loads[0].ratio if loads else None
    kind, sure, why = _classify(view)
    evidence += why
    for tier, load in enumerate(loads, 1):
        evidence.append(_describe_load(tier, load))
    return FabricKind(kind, sure, tuple(evidence), view.levels, round(ratio, 3) if ratio else None)


def load_of(view: View, tier: int) -> Load | None:
    """What a full switch of a row carries: the most common count of cables up, and of those the most down."""
    rows = {switch: Load(0, 0, 0.0, 0.0) for switch, row in view.tiers.items() if row == tier}
    if tier == 1:
        for switch in rows:
            for end in view.down.get(switch, ()):
                rows[switch] = rows[switch].plus(False, end.pace)
    for link in view.part.switch_links:
        for near, far in ((link.a.switch, link.b.switch), (link.b.switch, link.a.switch)):
            step = view.tiers.get(far, 0) - view.tiers.get(near, 0)
            if near in rows and abs(step) == 1:
                rows[near] = rows[near].plus(step > 0, link.pace)
    busy = [row for row in rows.values() if row.up and row.down]
    if not busy:
        return None
    counts = Counter(load.up for load in busy)
    most_links = max(counts, key=lambda up: (counts[up], up))
    full = sorted((load for load in busy if load.up == most_links), key=lambda load: load.down)
    down = full[int(0.9 * (len(full) - 1))].down
    alike = [load for load in full if load.down == down]  # a slow cable, or one whose speed is not given, is no design
    return Load(down, most_links, max(load.down_gbit_s for load in alike), max(load.up_gbit_s for load in alike))


def _describe_load(tier: int, load: Load) -> str:
    row = "a full leaf" if tier == 1 else f"a full switch of row {tier}"
    ratio = load.ratio
    ratio_text = f": {ratio:.3g}:1" if ratio else ""
    return (
        f"{row} has {load.down} ports down ({load.down_gbit_s:,.0f} Gbit/s) "
        f"and {load.up} up ({load.up_gbit_s:,.0f} Gbit/s){ratio_text}"
    )


def _describe_rows(view: View) -> Iterator[str]:
    rows = Counter(view.tiers.values())
    hosts, ports, nameless = len(view.units.links), len(view.part.host_links), len(view.nameless)
    on = [f"{count:,} {_name_tier(row, count)}" for row, count in sorted(rows.items())]
    who = [f"{hosts:,} host{'s'[: hosts != 1]} with {ports:,} port{'s'[: ports != 1]}"] if hosts or not nameless else []
    if nameless:
        who.append(f"{nameless:,} adapter{'s'[: nameless != 1]} of no known node")
    yield f"{' and '.join(who)} on {', '.join(on) or 'no switch reported'}"


def _name_tier(row: int, count: int) -> str:
    if row == 1:
        return "leaf" if count == 1 else "leaves"
    return f"switch{'es'[: 2 * (count != 1)]} in row {row}"


def _classify(view: View) -> tuple[str, str, list[str]]:
    if len(view.part.switches) == 1:
        return "single-switch", "sure", []
    among = direct(view.part, view.leaves)
    if among > 0.5 and len(view.leaves) > 1:
        return _classify_mesh(view, among)
    rails, sure, why = _judge_rails(view)
    if rails:
        return "rail-optimized", sure, [*why, *_describe_tiers(view)]
    if not view.part.switch_links:
        return "unknown", "unsure", [*why, "what joins the leaves is not known"]
    plus = _describe_plus(view)
    if plus:
        return "dragonfly+", "likely", [*why, plus]
    full, pairs = _count_full(view)
    if pairs and full >= 0.75 * pairs:
        text = f"{full:,} of {pairs:,} pairs of a leaf and a switch above it have the usual cables"
        sure = "unsure" if pairs < FEW_PAIRS else "sure" if full >= 0.9 * pairs else "likely"
        unseen = _list_without_rails(view)
        return "fat-tree", "unsure" if unseen else sure, [*why, text, *unseen]
    even, leaves = _count_uneven(view)
    if leaves >= FEW_PAIRS and even >= 0.9 * leaves:
        return (
            "fat-tree",
            "likely",
            [*why, f"{even:,} of {leaves:,} leaves spread their cables evenly over those above"],
        )
    return (
        "unknown",
        "unsure",
        [*why, f"only {full:,} of {pairs:,} pairs of leaves and switches above are cabled alike"],
    )


def _judge_rails(view: View) -> tuple[bool, str, list[str]]:
    """Each rail of a unit's nodes on a leaf of its own."""
    agree = of = rails = leaves = units = 0
    for unit in view.units.units:
        if len(unit.rails) > 1:
            units += 1
            agree += sum(rail.most.agree for rail in unit.rails.values())
            of += sum(rail.most.of for rail in unit.rails.values())
            rails += len(unit.rails)
            leaves += len({rail.leaf for rail in unit.rails.values()})
    if not units or rails < 2 * units or leaves < 2 * units:
        several = sum(len(links) > 1 for links in view.units.links.values())
        if several and all(len(unit.leaves) == 1 for unit in view.units.units):
            return False, "", [f"{several:,} hosts have all their ports on one leaf"]
        return False, "", []
    text = f"{agree:,} of {of:,} rails are on the leaf of their unit's rail, in {units} unit{'s'[: units != 1]}"
    if leaves < 0.99 * rails:
        text += f"; {rails / units:.3g} rails of a unit share {leaves / units:.3g} leaves"
    return agree >= 0.9 * of, "sure" if agree >= 0.98 * of else "likely", [text]


def _describe_tiers(view: View) -> Iterator[str]:
    if not view.part.switch_links:
        yield "what joins the leaves is not known"
    elif len(view.part.planes) > 1:
        yield f"its {len(view.part.planes)} planes are not joined by any cable"
    else:
        full, pairs = _count_full(view)
        if pairs:
            yield f"{full:,} of {pairs:,} pairs of a switch and one above it have the usual cables"


def _count_full(view: View) -> tuple[int, int]:
    """Pairs of a switch and one above it that have as many cables as most such pairs, and all pairs."""
    pairs = full = 0
    for block in view.blocks:
        for upper in block.upper:
            counts = [block.cables.get((lower, upper), 0) for lower in block.peers]
            reached = sum(count > 0 for count in counts)
            if upper in block.usual:
                expected = block.usual[upper][0]
            elif reached < 2 < len(counts):
                continue  # a stray cable
            else:
                expected = Counter(count for count in counts if count).most_common(1)[0][0] if reached else 1
            pairs += len(counts)
            full += counts.count(expected)
    return full, pairs


def _list_without_rails(view: View) -> list[str]:
    """Why it cannot be seen whether each rail has a leaf of its own; nothing where it can."""
    units = view.units.units
    if len(view.nameless) > len(view.part.host_links):
        return ["most adapters name no host: whether each rail has a leaf of its own is not known"]
    if any(len(unit.leaves) > 1 for unit in units) and not any(unit.rails for unit in units):
        return ["too few nodes to see whether each rail has a leaf of its own"]
    return []


def _count_uneven(view: View) -> tuple[int, int]:
    """Switches of the first row whose counts of cables to those above differ by one at most, and all of them."""
    even = every = 0
    for block in view.blocks:
        for lower in block.lower if block.tier == 1 else ():
            counts = [block.cables.get((lower, upper), 0) for upper in block.upper]
            every += 1
            even += min(counts) > 0 and max(counts) - min(counts) <= 1
    return even, every


def _describe_plus(view: View) -> str | None:
    """Groups of leaves and spines, whose spines are joined with each other."""
    level = [
        link for link in view.part.switch_links if view.tiers.get(link.a.switch) == view.tiers.get(link.b.switch) == 2
    ]
    if view.levels != 2 or not level:
        return None
    joined = Joined()
    for link in view.part.switch_links:
        if view.tiers.get(link.a.switch) != view.tiers.get(link.b.switch):
            joined.join(link.a.switch, link.b.switch)
    return _describe_groups(level, joined, "groups of leaves and spines")


def _classify_mesh(view: View, among: float) -> tuple[str, str, list[str]]:
    share = f"{among:.0%} of the cables between switches join switches that have hosts"
    links = _list_links_among_leaves(view)
    text = _describe_groups(links, join_neighbourhoods(view), "groups of switches")
    if text and view.levels == 1:
        return "dragonfly", "likely", [share, text]
    every = len({frozenset((link.a.switch, link.b.switch)) for link in links if link.a.switch != link.b.switch})
    wanted = len(view.leaves) * (len(view.leaves) - 1) // 2
    return "mesh", "likely" if every == wanted else "unsure", [share, f"{every} of {wanted} pairs of them are joined"]


def _list_links_among_leaves(view: View) -> list[SwitchLink]:
    return [link for link in view.part.switch_links if {link.a.switch, link.b.switch} <= view.leaves]


def join_neighbourhoods(view: View) -> Joined:
    """Switches with hosts that have most of their neighbours in common."""
    links = _list_links_among_leaves(view)
    beside = {leaf: {leaf, *far} for leaf, far in count_neighbors(links).items()}
    joined = Joined()
    for link in links:
        one, other = beside[link.a.switch], beside[link.b.switch]
        if 2 * len(one & other) > min(len(one), len(other)):
            joined.join(link.a.switch, link.b.switch)
    return joined


def _describe_groups(links: list[SwitchLink], joined: Joined, called: str) -> str | None:
    """The words, where nearly every group of three and more has a cable to every other."""
    ends = {joined.find(switch) for link in links for switch in (link.a.switch, link.b.switch)}
    pairs = {frozenset((joined.find(link.a.switch), joined.find(link.b.switch))) for link in links}
    wanted = [frozenset(combination) for combination in combinations(ends, 2)] if len(ends) < 2000 else []
    met = sum(pair in pairs for pair in wanted)
    if len(ends) < 3 or met < 0.9 * len(wanted) or not wanted:
        return None
    return f"{len(ends)} {called}; {met:,} of {len(wanted):,} pairs of groups are joined directly"
