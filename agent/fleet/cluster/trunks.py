"""Cables between switches that are not as those of their peers: at each other's switch, at another one, or nowhere."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import SwitchPort, natural
from agent.fleet.cluster.peers import most
from agent.fleet.cluster.switch_tiers import SwitchBlock

Pair = tuple[str, str]  # a switch and one above it
FEW = 0.05  # of all cables between switches: more beside the rows, or over one, are the way it is wired


class Fault(NamedTuple):
    """A cable of `lower` that leads to `has`, where its peers have one to `wanted`. `near`: its port, if known."""

    lower: str
    wanted: str
    has: str
    near: SwitchPort | None


class TrunkFaults(NamedTuple):
    """`swapped`: two at each other's switch. `moved`: one cable each, of which one end or both are wrong. `less`: how
    many cables a pair lacks that are nowhere; `more`: how many it has that its peers have not."""

    swapped: list[tuple[Fault, Fault]]
    moved: list[tuple[Fault, ...]]
    less: dict[Pair, int]
    more: dict[Pair, int]


def odd(view: View) -> TrunkFaults:
    """Of all rows. Where no majority is clear nothing is odd."""
    less, more = dict[Pair, int](), dict[Pair, int]()
    for block in view.blocks:
        for upper in block.upper:
            if upper in block.places and upper not in block.usual:
                continue  # one of its own: how many are usual is not clear
            usual = block.usual[upper][0] if upper in block.usual else 0
            for lower in block.peers:
                has = block.cables.get((lower, upper), 0)
                if has < usual:
                    less[lower, upper] = usual - has
                elif has > usual:
                    more[lower, upper] = has - usual
    return _Sorting(view, TrunkFaults([], [], less, more)).sorted()


def far_switches(block: SwitchBlock, of: tuple[str, ...]) -> Mapping[str, tuple[str, int, int]]:
    """Port -> the switch that most of these have there, where that is clear; and how many of how many."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    own = set(of)
    for near, far in block.ends.items():
        if near.switch in own:
            seen[near.port][far.switch] += 1
    found = {}
    for port, switches in seen.items():
        clear = most(switches)
        if clear:
            found[port] = (clear[0], *clear[1])
    return found


class _Sorting:
    """What lacks at one place and is too much at another is one cable."""

    def __init__(self, view: View, found: TrunkFaults) -> None:
        self._view, self._found = view, found
        self._usual: dict[int, Mapping[str, tuple[str, int, int]]] = {}
        self._extra = dict(found.more)
        self._less_of: defaultdict[str, list[str]] = defaultdict(list)
        self._more_at: defaultdict[str, list[str]] = defaultdict(list)
        for lower, upper in sorted(found.less):
            self._less_of[lower].append(upper)
        for lower, upper in sorted(found.more):
            self._more_at[upper].append(lower)
        self._named: set[SwitchPort] = set()

    def sorted(self) -> TrunkFaults:
        found = self._found
        for one, x in sorted(found.more):
            while pair := self._partner(one, x):
                found.swapped.append(pair)
        found.moved.extend(self._beside_rows())
        for one, x in sorted(found.more):
            for y in self._lacking(one):
                while found.more[one, x] and found.less[one, y]:
                    found.moved.append((self._taken(one, x, y),))
        return found

    def _partner(self, one: str, x: str) -> tuple[Fault, Fault] | None:
        """a has a cable too many to x and too few to y, b the other way round: in any two blocks."""
        less, more = self._found.less, self._found.more
        for y in self._lacking(one) if more[one, x] else ():
            for other in self._more_at[y]:
                if other != one and more[other, y] and less.get((other, x), 0):
                    return self._taken(one, x, y), self._taken(other, y, x)
        return None

    def _lacking(self, lower: str) -> list[str]:
        return [upper for upper in self._less_of[lower] if self._found.less[lower, upper]]

    def _taken(self, lower: str, has: str, wanted: str) -> Fault:
        near = self._port(lower, has, wanted)
        if near is not None:
            self._named.add(near)
        self._found.more[lower, has] -= 1
        self._found.less[lower, wanted] -= 1
        return Fault(lower, wanted, has, near)

    def _port(self, lower: str, has: str, wanted: str) -> SwitchPort | None:
        """The port that goes to the one while its peers' goes to the other; or the only cables that there are."""
        block = self._view.block_of[lower]
        ends = [at for at, far in block.ends.items() if at.switch == lower and far.switch == has]
        free = sorted((at for at in ends if at not in self._named), key=lambda at: natural(at.port))
        usual = self._far(block)
        fits = [at for at in free if usual.get(at.port, ("",))[0] == wanted]
        if not fits and len(ends) == self._extra[lower, has]:
            fits = free
        return fits[0] if fits else None

    def _far(self, block: SwitchBlock) -> Mapping[str, tuple[str, int, int]]:
        if id(block) not in self._usual:
            self._usual[id(block)] = far_switches(block, block.peers)
        return self._usual[id(block)]

    def _beside_rows(self) -> Iterator[tuple[Fault, ...]]:
        """Cables between switches of one row, or over a row, each with an end that lacks one to the row above."""
        tiers, links = self._view.tiers, self._view.part.switch_links
        told = [link for link in links if link.a.switch in tiers and link.b.switch in tiers]
        strange = [link for link in told if abs(tiers[link.a.switch] - tiers[link.b.switch]) != 1]
        if len(strange) > FEW * len(links):
            return
        for link in strange:
            ends = ((link.a, link.b), (link.b, link.a))
            faults = [fault for near, far in ends for fault in self._wrong_end(near, far)]
            if faults:
                yield tuple(faults)

    def _wrong_end(self, near: SwitchPort, far: SwitchPort) -> Iterator[Fault]:
        lacking = self._lacking(near.switch)
        if not lacking:
            return
        usual = self._far(self._view.block_of[near.switch]).get(near.port, ("",))[0]
        if usual in lacking or len(lacking) == 1:
            wanted = usual if usual in lacking else lacking[0]
            self._found.less[near.switch, wanted] -= 1
            yield Fault(near.switch, wanted, far.switch, near)
