"""Votes among devices that should be alike, and lists that people can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

NAMED = 8  # how many devices a sentence names


def find_majority(values: Iterable[T]) -> T | None:
    """The value of more than half; None where there is none, or only one value to vote.

    >>> find_majority([18, 18, 16]), find_majority([18, 16]), find_majority([18])
    (18, None, None)
    """
    counts = Counter(values)
    total = sum(counts.values())
    return next((value for value, count in counts.items() if total > 1 and 2 * count > total), None)


def join_labels(labels: Sequence[str]) -> str:
    """Labels for a sentence, cut where nobody would read on.

    >>> join_labels(["GPU0", "GPU1"]), join_labels([f"GPU{n}" for n in range(10)])
    ('GPU0, GPU1', 'GPU0, GPU1, GPU2, GPU3, GPU4, GPU5, GPU6, GPU7 and 2 more')
    """
    more = len(labels) - NAMED
    return ", ".join(labels[:NAMED]) + (f" and {more} more" if more > 0 else "")


def format_ranges(numbers: Iterable[int]) -> str:
    """Numbers as people write them.

    >>> format_ranges([0, 1, 2, 5]), format_ranges([7]), format_ranges([])
    ('0-2, 5', '7', 'none')
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs) or "none"


def format_share_lost(now: float, full: float) -> str:
    """How much of a bandwidth is gone, in words.

    >>> format_share_lost(15.754, 31.508), format_share_lost(3.938, 63.015)
    ('50%', '94%')
    """
    return f"{100 * (1 - now / full):.0f}%"
