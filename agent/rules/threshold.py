"""A limit of a rule that an operator may change."""

from __future__ import annotations

from typing import NamedTuple


class Threshold(NamedTuple):
    """A limit that an operator may change: `[thresholds]` of the configuration names it."""

    name: str  # "ib-symbol-errors.per_hour"
    value: float
    what: str  # what is limited, with its unit
