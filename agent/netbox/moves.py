"""In which order things change places where a place holds one: the free places first, and of a ring one steps aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Moves(NamedTuple):
    """Steps of (who, where to), one after the other; and who cannot move, as a place is held by one that stays."""

    steps: list[tuple[int, str]]
    stuck: list[int]


def ordered(places: Mapping[int, str], targets: Mapping[int, str], aside: str) -> Moves:
    """From where each is to where it belongs. `places`: of all, also of those that stay; `aside`: an empty place.

    >>> ordered({1: "a", 2: "b"}, {1: "b", 2: "a"}, "x")
    Moves(steps=[(1, 'x'), (2, 'a'), (1, 'b')], stuck=[])
    >>> ordered({1: "a", 2: "b", 3: "c"}, {1: "b", 2: "c"}, "x")
    Moves(steps=[], stuck=[2, 1])
    """
    where, held = dict(places), {place: who for who, place in places.items()}
    waiting = {who: to for who, to in targets.items() if where.get(who) != to}
    steps: list[tuple[int, str]] = []
    stuck: list[int] = []

    def move(who: int, to: str) -> None:
        held.pop(where.get(who, ""), None)
        where[who], held[to] = to, who
        steps.append((who, to))

    while waiting:
        free = [who for who, to in waiting.items() if to not in held]
        blocked = [who for who, to in waiting.items() if to in held and held[to] not in waiting]
        if free:
            move(free[0], waiting.pop(free[0]))
        elif blocked:
            stuck += blocked
            waiting = {who: to for who, to in waiting.items() if who not in blocked}
        else:
            move(_on_a_ring(waiting, held), aside)
    return Moves(steps, stuck)


def _on_a_ring(waiting: Mapping[int, str], held: Mapping[str, int]) -> int:
    """One that holds what another of its ring waits for: everybody's place is held by somebody who waits."""
    who, seen = next(iter(waiting)), set()
    while who not in seen:
        seen.add(who)
        who = held[waiting[who]]
    return who
