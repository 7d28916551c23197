"""Puts oddities into a fleet, each on nodes of its own, and writes down what was put where."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.fleet.groups import Group
from bench.fleet.platforms import TWINS

ODD_SHARE = 3  # of a group's nodes at most one in so many is odd
LEAST = 8  # nodes that a group has, so that most of them can be said to be alike

RESTARTS = 97  # one node in so many restarts between two sweeps

Suits = Callable[[Group], bool]


def has_restarted(index: int, sweep: int) -> bool:
    """Whether a node was restarted between a sweep and the one before."""
    return (index * 2_654_435_761 + sweep * 40_503) % RESTARTS == 0


class Effect(NamedTuple):
    """What is different about one node, from a sweep on."""

    overlay: Mapping[str, Any] = {}  # on its description
    over: Mapping[tuple[str, int], str] = {}  # instead of its own texts
    sweep: int = 0
    stale_days: int = 0
    damage: str = ""  # truncated | not-json | other-schema | newer-minor
    gone: bool = False  # it sends no report
    flaps: bool = False  # it is so in every second sweep
    clock_seconds: int = 0  # its clock is ahead by that; negative: behind


@dataclass
class Planted:
    """What was planted: effects by node, and the truth about them."""

    effects: dict[int, Effect] = field(default_factory=dict)
    oddities: list[dict[str, Any]] = field(default_factory=list)
    noise: list[dict[str, Any]] = field(default_factory=list)


class Planter:
    """One fleet's planting."""

    def __init__(self, groups: list[Group], seed: int, sweeps: int) -> None:
        self.groups = groups
        self.seed = seed
        self.sweeps = sweeps
        self.done = Planted()
        self.platforms: dict[str, set[str]] = {}  # kind -> platforms that have it
        self.random = random.Random(seed)
        self._left = {group.first: group.nodes // ODD_SHARE for group in groups if group.nodes >= LEAST}

    def group(self, suits: Suits, nodes: int = 1) -> Group | None:
        """A group that suits and has room for so many odd nodes; large ones more often."""
        fit = [group for group in self.groups if self._left.get(group.first, 0) >= nodes and suits(group)]
        return self.random.choices(fit, [item.nodes for item in fit])[0] if fit else None

    def node(self, group: Group, unit: int | None = None, stays_up: bool = False) -> int | None:
        """A node of a group (of a unit of it) that is still as it should be; it counts as odd from now on. `stays_up`:
        it does not restart before the last sweep, which would leave no window there."""
        size, first, end = group.platform.unit, group.first, group.first + group.nodes
        if unit is not None:
            first, end = first + unit * size, min(first + unit * size + size, end)
        free = [n for n in range(first, end) if n not in self.done.effects and group.style(n) == "plain"]
        if stays_up:
            free = [n for n in free if not has_restarted(n, self.sweeps - 1)]
        if not free:
            return None
        chosen = self.random.choice(free)
        self._left[group.first] -= 1
        self.done.effects[chosen] = Effect()
        return chosen

    def one(self, suits: Suits, stays_up: bool = False) -> tuple[Group, int] | None:
        """A node of a group that suits."""
        group = self.group(suits)
        node = self.node(group, stays_up=stays_up) if group else None
        return (group, node) if group and node is not None else None

    def of_small_class(self) -> tuple[Group, int] | None:
        """A node of two that are a class of their own, with the devices of many others."""
        for group in self.groups:
            twins = range(group.first, group.first + group.nodes)
            free = [n for n in twins if group.platform in TWINS and n not in self.done.effects]
            if free:
                self.done.effects[free[0]] = Effect()
                return group, free[0]
        return None

    def later(self) -> int:
        """A sweep from which on something is so."""
        return self.random.randrange(1, self.sweeps)

    def effect(self, node: int, effect: Effect) -> None:
        """What is different about a node that was chosen."""
        self.done.effects[node] = effect

    def odd(self, kind: str, nodes: list[int], subject: str, detail: Mapping[str, Any], **more: Any) -> bool:
        """Write an oddity down."""
        row = {"kind": kind, "hosts": [self.hostname(n) for n in nodes], "subject": subject, "sweep": 0}
        self.done.oddities.append(row | {"detail": dict(detail), "findings": []} | more)
        return True

    def noise(self, kind: str, hosts: str, detail: Mapping[str, Any]) -> bool:
        """Write down what differs and is not odd."""
        self.done.noise.append({"kind": kind, "hosts": hosts, "detail": dict(detail)})
        return True

    def hostname(self, node: int) -> str:
        """Of any node."""
        return next(group.hostname(node) for group in self.groups if group.first <= node < group.first + group.nodes)
