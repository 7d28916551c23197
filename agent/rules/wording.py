"""Votes among devices that should be alike, and lists that people can read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from agent.model.labels import group_names, name_runs

T = TypeVar("T")

_PLAIN_NAME = r"(?a)[\w@%+=:,./-]+"
_PLURAL = r"\b\w+s\b(?: and (?:\w+ )?\w+s\b)?"
NAMED = 8  # how many devices a sentence names
_RANGE = 3  # labels from which on they become ranges
_PAIR = " - "  # in the label of two devices: no range of them can be read


def quote_name(name: str) -> str:
    """A name as a shell takes it: whoever names an interface or a saved output may put a command into its name.

    >>> quote_name("ens1f0np0"), quote_name("a;id")
    ('ens1f0np0', "'a;id'")
    """
    return name if re.fullmatch(_PLAIN_NAME, name) else "'" + name.replace("'", "'\"'\"'") + "'"


def find_median(values: Iterable[float]) -> float:
    """The middle of the values, of which there is at least one; the module `statistics` costs every scan its import.

    >>> find_median([3, 1, 2]), find_median([4.0, 1.0])
    (2, 2.5)
    """
    ranked = sorted(values)
    half = len(ranked) // 2
    return ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2


def find_majority(values: Iterable[T]) -> T | None:
    """The value of more than half; None where there is none, or only one value to vote.

    >>> find_majority([18, 18, 16]), find_majority([18, 16]), find_majority([18])
    (18, None, None)
    """
    counts = Counter(values)
    total = sum(counts.values())
    return next((value for value, count in counts.items() if total > 1 and 2 * count > total), None)


def join_labels(labels: Sequence[str]) -> str:
    """Labels for a sentence: three and more that differ in a number as a range, and cut where no one would read on.

    >>> join_labels(["GPU0", "GPU1"]), join_labels([f"GPU{n}" for n in range(10)]), join_labels(["GPU0 - GPU2"] * 3)
    ('GPU0, GPU1', 'GPU0-9', 'GPU0 - GPU2, GPU0 - GPU2, GPU0 - GPU2')
    >>> join_labels([f"mlx5_{n}/1 (eth{n})" for n in range(3)]), join_labels(["mlx5_0/1", "mlx5_0/2", "mlx5_1/1"])
    ('mlx5_0-2', 'mlx5_0/1,2, mlx5_1/1')
    >>> join_labels(list("abcdefghij")), join_labels(["lo", "eth1", "ib0"])
    ('a, b, c, d, e, f, g, h and 2 more', 'lo, eth1, ib0')
    """
    named = labels if len(labels) < _RANGE or any(_PAIR in label for label in labels) else _compress(labels)
    more = len(named) - NAMED
    return ", ".join(named[:NAMED]) + (f" and {more} more" if more > 0 else "")


def name_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """Between which devices, behind "no link ", where a label before it names the pair, or the one that all share.

    >>> name_pairs([("GPU0", "GPU1")]), name_pairs([("GPU0", "GPU1"), ("GPU1", "GPU2"), ("GPU1", "GPU3")])
    ('between them', 'to GPU0,2,3')
    >>> name_pairs([("GPU0", "GPU1"), ("GPU0", "GPU2"), ("GPU1", "GPU2")])
    'between any two of GPU0-2'
    >>> name_pairs([("GPU0", "GPU1"), ("GPU2", "GPU3")])
    'between GPU0 - GPU1, GPU2 - GPU3'
    """
    members = list(dict.fromkeys(name for pair in pairs for name in pair))
    shared = [name for name in members if all(name in pair for pair in pairs)]
    if len(pairs) == 1:
        return "between them"
    if shared:
        return f"to {join_labels([name for name in members if name not in shared])}"
    if len({frozenset(pair) for pair in pairs}) == len(members) * (len(members) - 1) // 2:
        return f"between any two of {join_labels(members)}"
    return f"between {join_labels([_PAIR.join(pair) for pair in pairs])}"


def _compress(labels: Sequence[str]) -> list[str]:
    """Ports without their interfaces, and without their number where all are first ports."""
    ports = [label.partition(" (")[0] for label in labels]
    if all(port.endswith("/1") for port in ports):
        ports = [port[:-2] for port in ports]
    named = group_names(ports)
    return named if len(named) < len(labels) else list(labels)


def count_of(number: int, things: str) -> str:
    """A number of things: of one thing the first noun, and one that "and" joins to it, without their plural.

    >>> count_of(2, "pause storms"), count_of(1, "pause storms that firmware ended"), count_of(1, "failed recoveries")
    ('2 pause storms', '1 pause storm that firmware ended', '1 failed recovery')
    >>> count_of(1, "link integrity errors and buffer overruns"), count_of(1, "recoveries of the PCIe link")
    ('1 link integrity error and buffer overrun', '1 recovery of the PCIe link')
    """
    return f"{number} {things}" if number != 1 else f"1 {re.sub(_PLURAL, _singular, things, count=1)}"


def _singular(match: re.Match[str]) -> str:
    return re.sub(r"(ie)?s\b", lambda end: "y" if end[1] else "", match[0])


def format_ranges(numbers: Iterable[int]) -> str:
    """Numbers as people write them.

    >>> format_ranges([0, 1, 2, 5]), format_ranges([7]), format_ranges([])
    ('0-2, 5', '7', 'none')
    """
    return ", ".join(name_runs(numbers)) or "none"


def format_share_lost(now: float, full: float) -> str:
    """How much of a bandwidth is gone, in words.

    >>> format_share_lost(15.754, 31.508), format_share_lost(3.938, 63.015)
    ('50%', '94%')
    """
    return f"{100 * (1 - now / full):.0f}%"
