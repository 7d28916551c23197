"""When a majority is clear enough to call the rest wrong: a healthy fabric must give no false alarm."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeVar

AGREE = 3  # so many at least, and
SHARE = 0.75  # this part of all: one of four may be wrong

T = TypeVar("T")


class Most(NamedTuple):
    """How many of how many have it."""

    agree: int
    of: int

    @property
    def words(self) -> str:
        """ "19 of 20"."""
        return f"{self.agree:,} of {self.of:,}"


def most(counts: Counter[T]) -> tuple[T, Most] | None:
    """What most have, or none where no majority is clear.

    >>> most(Counter(a=3, b=1)), most(Counter(a=2)), most(Counter(a=5, b=3))
    (('a', Most(agree=3, of=4)), None, None)
    """
    if not counts:
        return None
    value, agree = counts.most_common(1)[0]
    of = counts.total()
    return (value, Most(agree, of)) if agree >= AGREE and agree >= SHARE * of else None
