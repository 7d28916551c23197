"""Labels of several devices in one list: `GPU0-7` for eight of a kind; the order of names by their numbers; and things
by a key that several of them share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

_NUMBERED = r"(.*?)(\d{1,9})"
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def group_by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, all in their order.

    >>> group_by_key([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def count_by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, Counter[V]]:
    """How often each key has each value.

    >>> count_by_key([("a", 1), ("b", 2), ("a", 1)])
    {'a': Counter({1: 2}), 'b': Counter({2: 1})}
    """
    return {key: Counter(values) for key, values in group_by_key(pairs).items()}


def compress_names(labels: Iterable[str]) -> str:
    """Combine names that differ in their last number, in the order of the first member.

    >>> compress_names(["GPU0", "GPU1", "GPU2", "GPU5", "mlx5_0", "4c:00.0", "4c:00.1"])
    'GPU0-2,5, mlx5_0, 4c:00.0,1'
    """
    return ", ".join(group_names(labels))


def group_names(labels: Iterable[str]) -> list[str]:
    """The same, one text for each group.

    >>> group_names(["GPU0", "GPU1", "GPU2", "lo"])
    ['GPU0-2', 'lo']
    """
    families: dict[str, list[int]] = {}
    alone: dict[str, None] = {}
    for label in labels:
        match = re.fullmatch(_NUMBERED, label)
        if match and str(int(match[2])) == match[2]:
            families.setdefault(match[1], []).append(int(match[2]))
        else:
            alone[label] = None
    return [*(prefix + _format_runs(set(numbers)) for prefix, numbers in families.items()), *alone]


def name_first(names: Sequence[str], most: int, spare: int = 0) -> str:
    """The first `most` names, and how many more there are; up to `spare` more of them are named, too.

    >>> name_first(["a", "b", "c"], 2), name_first(["a", "b", "c"], 2, spare=1)
    ('a, b and 1 more', 'a, b, c')
    """
    more = len(names) - most
    return ", ".join(names) if more <= spare else f"{', '.join(names[:most])} and {more} more"


def list_runs(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers that follow on each other, together.

    >>> list_runs([5, 0, 1, 2])
    [[0, 1, 2], [5]]
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def name_runs(numbers: Iterable[int]) -> list[str]:
    """The same, each run as people write it.

    >>> name_runs([0, 1, 2, 5])
    ['0-2', '5']
    """
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in list_runs(numbers)]


def _format_runs(numbers: set[int]) -> str:
    runs = list_runs(numbers)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(str(number) for number in run) for run in runs)


@lru_cache(maxsize=1 << 17)  # names of a fleet's hosts come once for each of their ports
def natural(text: str) -> str:
    """A key that orders names by their numbers: leaf2 before leaf10.

    >>> sorted(["leaf10", "leaf2", "7", "x"], key=natural)
    ['7', 'leaf2', 'leaf10', 'x']
    """
    return _NUMBER.sub(_pad, text)


_NUMBER = re.compile(r"[0-9]{1,18}")


def _pad(number: re.Match[str]) -> str:
    """Of one width, between what comes before every letter: a text that ends there is less than one that goes on."""
    return f"\0{number[0]:0>18}\1"
