"""Which of several parts are the odd ones out, and whether their values follow an order that someone chose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from agent.rules.peers.parts import PeerPart


class Vote(msgspec.Struct, frozen=True):
    """The usual value of a group of parts, and the parts that differ from it."""

    odd: tuple[int, ...]  # numbers of the parts; of halves the second half
    usual: tuple[int, ...]
    pattern: str = ""  # what the values follow: a choice
    halves: bool = False  # as many have the one as the other


def vote(values: Sequence[Hashable], parts: Sequence[PeerPart]) -> Vote | None:
    """Of parts with at least two values; None where each has its own, or where no value is the usual one."""
    counts = Counter(values)
    most = max(counts.values())
    usual = tuple(n for n, value in enumerate(values) if counts[value] == most)
    odd = tuple(n for n, value in enumerate(values) if counts[value] < most)
    if most == 1:
        return Vote(usual[1:], usual[:1], halves=True) if len(values) == 2 else None
    if not odd:
        first = values[usual[0]]
        second = tuple(n for n in usual if values[n] != first)
        return Vote(second, tuple(n for n in usual if values[n] == first), find_pattern(values, parts, True), True)
    if 2 * len(odd) > len(values):
        return None
    halves = 2 * len(odd) == len(values)
    return Vote(odd, usual, find_pattern(values, parts, halves), halves)


def is_irregular(verdict: Vote) -> bool:
    """Whether halves follow no order, in a group where an order could be seen: of four and more."""
    return verdict.halves and not verdict.pattern and len(verdict.odd) > 1


def find_pattern(values: Sequence[Hashable], parts: Sequence[PeerPart], halves: bool) -> str:
    """What the values follow: position, board, socket or the order on the bus; "" where nothing is seen."""
    followed: dict[str, list[Any]] = {
        "position on the card": [part.position for part in parts],
        "board": [part.product for part in parts],
        "socket": [part.socket for part in parts],
    }
    for name, attributes in followed.items():
        if _follows(values, attributes):
            return name
    order = sorted(range(len(parts)), key=lambda n: (len(parts[n].order), parts[n].order))
    ordered = [values[n] for n in order]
    if any(ordered[step:] == ordered[:-step] for step in _steps(len(ordered))):
        return "order on the bus"
    contiguous = halves and sum(a != b for a, b in pairwise(ordered)) == len(set(values)) - 1  # one block of each
    return "order on the bus" if contiguous else ""


def _follows(values: Sequence[Hashable], attributes: Sequence[Any]) -> bool:
    """Whether parts with one attribute have one value, each attribute on two parts at least."""
    by_attribute: dict[Any, set[Hashable]] = {}
    for attribute, value in zip(attributes, values, strict=True):
        by_attribute.setdefault(attribute, set()).add(value)
    counts = Counter(attributes)
    one_each = all(len(some) == 1 for some in by_attribute.values())
    return one_each and min(counts.values()) > 1


def _steps(count: int) -> Iterator[int]:
    """How far a value may be from the next one like it, where all repeat."""
    return (step for step in range(2, count // 2 + 1) if count % step == 0)
