"""Cables between switches that are not as those of their peers: at each other's switch, at another one, or nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import SwitchPort
from agent.fleet.cluster.peers import find_most_by_key
from agent.fleet.cluster.switch_tiers import SwitchBlock
from agent.model.labels import group_by_key, natural

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
    many cables a pair does not have that are nowhere; `more`: how many it has that its peers have not."""

    swapped: list[tuple[Fault, Fault]]
    moved: list[tuple[Fault, ...]]
    less: dict[Pair, int]
    more: dict[Pair, int]


def find_trunk_faults(view: View) -> TrunkFaults:
    """Of all rows. Where no majority is clear nothing is odd."""
    less, more = dict[Pair, int](), dict[Pair, int]()
    for block in view.blocks:
        for upper in block.upper:
            if upper in block.places and upper not in block.usual:
                continue  # one of its own: how many are usual is not clear
            expected = block.usual[upper][0] if upper in block.usual else 0
            for lower in block.peers:
                has = block.cables.get((lower, upper), 0)
                if has < expected:
                    less[lower, upper] = expected - has
                elif has > expected:
                    more[lower, upper] = has - expected
    return _Sorting(view, TrunkFaults([], [], less, more)).sorted()


def find_far_switches(block: SwitchBlock, of: tuple[str, ...]) -> Mapping[str, tuple[str, int, int]]:
    """Port -> the switch that most of these have there, where that is clear; and how many of how many."""
    own = set(of)
    clear = find_most_by_key((near.port, far.switch) for near, far in block.ends.items() if near.switch in own)
    return {port: (switch, *most) for port, (switch, most) in clear.items()}


class _Sorting:
    """What is missing at one place and too much at another is one cable."""

    def __init__(self, view: View, trunk_faults: TrunkFaults) -> None:
        self._view, self._found = view, trunk_faults
        self._usual: dict[int, Mapping[str, tuple[str, int, int]]] = {}
        self._extra = dict(trunk_faults.more)
        self._less_of = group_by_key(sorted(trunk_faults.less))
        self._more_at = group_by_key((upper, lower) for lower, upper in sorted(trunk_faults.more))
        self._named: set[SwitchPort] = set()

    def sorted(self) -> TrunkFaults:
        trunk_faults = self._found
        for one, x in sorted(trunk_faults.more):
            while pair := self._find_partner(one, x):
                trunk_faults.swapped.append(pair)
        trunk_faults.moved.extend(self._find_beside_rows())
        for one, x in sorted(trunk_faults.more):
            for y in self._list_lacking(one):
                while trunk_faults.more[one, x] and trunk_faults.less[one, y]:
                    trunk_faults.moved.append((self._report_taken(one, x, y),))
        return trunk_faults

    def _find_partner(self, one: str, x: str) -> tuple[Fault, Fault] | None:
        """a has a cable too many to x and too few to y, b the other way round: in any two blocks."""
        less, more = self._found.less, self._found.more
        for y in self._list_lacking(one) if more[one, x] else ():
            for other in self._more_at.get(y, ()):
                if other != one and more[other, y] and less.get((other, x), 0):
                    return self._report_taken(one, x, y), self._report_taken(other, y, x)
        return None

    def _list_lacking(self, lower: str) -> list[str]:
        return [upper for upper in self._less_of.get(lower, ()) if self._found.less[lower, upper]]

    def _report_taken(self, lower: str, has: str, wanted: str) -> Fault:
        near = self._find_port(lower, has, wanted)
        if near is not None:
            self._named.add(near)
        self._found.more[lower, has] -= 1
        self._found.less[lower, wanted] -= 1
        return Fault(lower, wanted, has, near)

    def _find_port(self, lower: str, has: str, wanted: str) -> SwitchPort | None:
        """The port that goes to the one while its peers' goes to the other; or the only cables that there are."""
        block = self._view.block_of[lower]
        ends = [at for at, far in block.ends.items() if at.switch == lower and far.switch == has]
        free = sorted((at for at in ends if at not in self._named), key=lambda at: natural(at.port))
        far_ends = self._find_far(block)
        fits = [at for at in free if far_ends.get(at.port, ("",))[0] == wanted]
        if not fits and len(ends) == self._extra[lower, has]:
            fits = free
        return fits[0] if fits else None

    def _find_far(self, block: SwitchBlock) -> Mapping[str, tuple[str, int, int]]:
        if id(block) not in self._usual:
            self._usual[id(block)] = find_far_switches(block, block.peers)
        return self._usual[id(block)]

    def _find_beside_rows(self) -> Iterator[tuple[Fault, ...]]:
        """Cables between switches of one row, or over a row, each with an end that has none to the row above."""
        tiers, links = self._view.tiers, self._view.part.switch_links
        beside = [link for link in links if link.a.switch in tiers and link.b.switch in tiers]
        strange = [link for link in beside if abs(tiers[link.a.switch] - tiers[link.b.switch]) != 1]
        if len(strange) > FEW * len(links):
            return
        for link in strange:
            ends = ((link.a, link.b), (link.b, link.a))
            faults = [fault for near, far in ends for fault in self._list_wrong_end(near, far)]
            if faults:
                yield tuple(faults)

    def _list_wrong_end(self, near: SwitchPort, far: SwitchPort) -> Iterator[Fault]:
        lacking = self._list_lacking(near.switch)
        if not lacking:
            return
        far_switch = self._find_far(self._view.block_of[near.switch]).get(near.port, ("",))[0]
        if far_switch in lacking or len(lacking) == 1:
            wanted = far_switch if far_switch in lacking else lacking[0]
            self._found.less[near.switch, wanted] -= 1
            yield Fault(near.switch, wanted, far.switch, near)
