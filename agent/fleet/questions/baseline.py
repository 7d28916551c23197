"""The baseline of a group: hardware classes, and the one value that nearly all nodes of a group have, or none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from agent.fleet.engines.query import Pending, query
from agent.fleet.questions.options import Options
from agent.model.labels import group_by_key

K = TypeVar("K", bound=Hashable)
CLASS = "hardware_class"


def sizes(rows: Pending) -> dict[str, int]:
    """Nodes of every class."""
    return {name: count for name, count in sorted(rows(), key=str) if name is not None}


CLUSTERS = query("fleet", "clusters")  # of nodes that are in one
SIZES = query("fleet", "class_sizes")


_SHARED = 0.05  # of a group: a value that fewer have is no part of a roll-out
_VALUES = 6  # that a roll-out has at most
_TOGETHER = 0.9  # of a group: so many have one of them


class Baseline(NamedTuple):
    """The value of most, how many have it, and of how many it is known. `others`: as usual, in a roll-out."""

    value: Any
    has: int
    of: int
    others: tuple[Any, ...] = ()

    @property
    def values(self) -> tuple[Any, ...]:
        """All that no outliers with."""
        return (self.value, *self.others)

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.has / self.of


def find_baseline(counts: Mapping[Any, int], options: Options) -> Baseline | None:
    """The value that as many have as `options` require; None: it is mixed, or there are too few."""
    of = sum(counts.values())
    if of < options.fewest:
        return None
    value = max(counts, key=lambda count: (counts[count], str(count)))
    return Baseline(value, counts[value], of) if counts[value] >= options.majority * of else None


def find_planned(counts: Mapping[Any, int], options: Options) -> Baseline | None:
    """Of a group without a usual value: the few that many share, as in a roll-out under way; None: there are no such.

    Values of which nearly every node has its own are none.
    """
    of = sum(counts.values())
    shared = [count for count in counts if counts[count] >= max(2, options.fewest // 2, _SHARED * of)]
    has = sum(counts[value] for value in shared)
    if of < options.fewest or not 2 <= len(shared) <= _VALUES or has < _TOGETHER * of:
        return None
    value, *others = sorted(shared, key=lambda value: (-counts[value], str(value)))
    return Baseline(value, has, of, tuple(others))


def median(counts: Mapping[float, int]) -> float:
    """The lower median of values and how often each occurs.

    >>> median({1.0: 2, 5.0: 1, 9.0: 1})
    1.0
    """
    left = (sum(counts.values()) + 1) // 2
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    raise ValueError("no values, no median")


def spread(counts: Mapping[float, int], middle: float) -> float:
    """The median distance from the middle (MAD): half of all are nearer.

    >>> spread({1.0: 2, 2.0: 2, 100.0: 1}, 2.0)
    1.0
    """
    far: dict[float, int] = {}
    for value, count in counts.items():
        far[abs(value - middle)] = far.get(abs(value - middle), 0) + count
    return median(far)


def sum_by_value(rows: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """Sums by value; what is not known counts for nothing.

    >>> sum_by_value([("a", 1), (None, 5), ("a", 2)])
    {'a': 3}
    """
    counts_of: dict[Any, int] = {}
    for value, count in rows:
        if value is not None:
            counts_of[value] = counts_of.get(value, 0) + count
    return counts_of


def sum_by_key(rows: Iterable[tuple[K, Any, int]]) -> dict[K, dict[Any, int]]:
    """The same of each key, which comes first.

    >>> sum_by_key([("x", "a", 1), ("y", None, 5), ("x", "a", 2)])
    {'x': {'a': 3}, 'y': {}}
    """
    groups = group_by_key((key, (value, count)) for key, value, count in rows)
    return {key: sum_by_value(counts) for key, counts in groups.items()}
