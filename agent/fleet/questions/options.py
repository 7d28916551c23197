"""What every question may be told besides the tables."""

from __future__ import annotations

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The same values give the same answers: no question looks at a clock."""

    stale_after_seconds: float = 86_400.0  # older than the newest report of the dataset by more is stale
    fewest: int = 5  # nodes that a group needs before it has a usual value
    majority: float = 0.8  # share of a group from which on a value is the usual one


ORDINARY = Options()
