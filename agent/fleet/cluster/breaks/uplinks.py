"""Cables between switches: what a leaf has less than its peers, and two that are at each other's place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from agent.fleet.cluster.blocks import Block
from agent.fleet.cluster.breaks.found import Break
from agent.fleet.cluster.clear import most
from agent.fleet.cluster.graph import Place, natural
from agent.fleet.cluster.view import View

Pair = tuple[str, str]  # a switch and one above it


class _Odd(NamedTuple):
    """How many cables each pair has less, or more, than usual."""

    less: dict[Pair, int]
    more: dict[Pair, int]


def uplinks(view: View) -> list[Break]:
    """What is wrong above the leaves."""
    found: list[Break] = []
    for block in view.blocks:
        odd = _odd(block)
        found += _swaps(view, block, odd)
        found += _missing(view, block, odd)
    return found


def far_switches(block: Block, of: tuple[str, ...]) -> Mapping[str, tuple[str, int, int]]:
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


def _odd(block: Block) -> _Odd:
    less, more = {}, {}
    for lower in block.peers:
        for upper in block.upper:
            usual = block.usual[upper][0] if upper in block.usual else 0
            has = block.cables.get((lower, upper), 0)
            if has < usual:
                less[lower, upper] = usual - has
            elif has > usual:
                more[lower, upper] = has - usual
    return _Odd(less, more)


def _swaps(view: View, block: Block, odd: _Odd) -> list[Break]:
    """Leaf a has a cable too many on spine x and too few on y, leaf b the other way round."""
    found = []
    for (one, x), extra in sorted(odd.more.items()):
        if not extra:
            continue
        for (lacking, y), _ in sorted(odd.less.items()):
            if lacking != one or odd.more.get((one, x), 0) < 1 or odd.less.get((one, y), 0) < 1:
                continue
            others = [low for (low, far) in odd.more if far == y and odd.more[low, far] and odd.less.get((low, x), 0)]
            for other in others[:1]:
                for pair in ((one, x), (other, y)):
                    odd.more[pair] -= 1
                for pair in ((one, y), (other, x)):
                    odd.less[pair] -= 1
                found.append(_swap(view, block, (one, x), (other, y)))
    return found


def _swap(view: View, block: Block, one: Pair, other: Pair) -> Break:
    (a, x), (b, y) = one, other
    name, place = view.name, view.cluster.place
    first, second = _wrong_port(block, a, x, y), _wrong_port(block, b, y, x)
    told = [place(each) if each else name(switch) for each, switch in ((first, a), (second, b))]
    return Break(
        kind="swapped-uplinks",
        text=(
            f"{told[0]} goes to {name(x)} and {told[1]} to {name(y)}: "
            f"by their peers {name(a)} has that cable to {name(y)}, {name(b)} to {name(x)}"
        ),
        ports=tuple(told),
        compared=_compared(view, block, y) + "; " + _compared(view, block, x),
        fix="exchange the two cables at one end",
        should={told[0]: name(y), told[1]: name(x)},
    )


def _wrong_port(block: Block, lower: str, has: str, wanted: str) -> Place | None:
    """The port that goes to the one while its peers' goes to the other."""
    usual = far_switches(block, block.peers)
    for near in sorted(block.ends, key=lambda each: natural(each.port)):
        if near.switch == lower and block.ends[near].switch == has and usual.get(near.port, ("",))[0] == wanted:
            return near
    return None


def _missing(view: View, block: Block, odd: _Odd) -> list[Break]:
    gone: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for (lower, upper), count in odd.less.items():
        if count:
            gone[lower].append((upper, count))
    extra = {lower for (lower, _), count in odd.more.items() if count}
    found = []
    for lower in sorted(gone, key=lambda each: natural(view.name(each))):
        wanted = sum(usual for usual, _ in block.usual.values())
        has = wanted - sum(count for _, count in gone[lower])
        words: list[str] = []
        should: dict[str, str] = {}
        for upper, count in gone[lower]:
            near, far = _free_ports(view, block, lower, upper, count)
            kept = block.cables.get((lower, upper), 0)
            where = f" (by its peers port{'s'[: len(near) != 1]} {_listed(near)})" if len(near) == count else ""
            words.append(f"{kept} of {kept + count} to {view.name(upper)}{where}")
            ports = near if len(near) == count else [f"?{len(should) + n}" for n in range(1, count + 1)]
            for at in ports:
                should[view.cluster.place(Place(lower, at))] = (
                    view.cluster.place(Place(upper, far[0])) if len(far) == count == 1 else view.name(upper)
                )
        also = "; it has others that its peers do not have" if lower in extra else ""
        found.append(
            Break(
                kind="missing-uplink",
                text=f"{view.name(lower)} has {has} of {wanted} cables up: {', '.join(words)}{also}",
                ports=tuple(should),
                compared="; ".join(dict.fromkeys(_compared(view, block, upper) for upper, _ in gone[lower][:3])),
                fix="look for a cable that is out, or a port that is down, at both ends",
                should=should,
            )
        )
    return found


def _listed(ports: list[str]) -> str:
    return " and ".join(ports) if len(ports) < 3 else ", ".join(ports)


def _free_ports(view: View, block: Block, lower: str, upper: str, count: int) -> tuple[list[str], list[str]]:
    """Ports with nothing on them whose peers' lead to the other switch: below, above. Of a switch of which not all
    is told none is known to be free."""
    switches = view.cluster.switches
    near = [
        port
        for port, (far, _, _) in far_switches(block, block.peers).items()
        if far == upper and switches[lower].whole and Place(lower, port) not in view.used
    ]
    far = [
        port
        for port, (low, _, _) in far_switches(block, block.upper).items()
        if low == lower and switches[upper].whole and Place(upper, port) not in view.used
    ]
    return sorted(near, key=natural)[: count + 1], sorted(far, key=natural)[: count + 1]


def _compared(view: View, block: Block, upper: str) -> str:
    usual, clear = block.usual.get(upper, (0, None))
    if clear is None:
        return f"none of its peers has one to {view.name(upper)}"
    what = "leaves" if block.tier == 1 else "switches"
    of = f"{clear.words} {what}" if clear.of <= len(block.peers) else f"{clear.words} pairs"
    return f"{of} have {usual} to {view.name(upper)}" if clear.of <= len(block.peers) else f"{of} have {usual}"
