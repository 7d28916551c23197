"""What every question may be told besides the tables."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The same values give the same answers: no question looks at a clock."""

    stale_after_seconds: float = 86_400.0  # a node whose last report arrived longer ago is stale
    now: datetime | None = None  # UTC without a zone; None: when the newest report arrived
    fewest: int = 5  # nodes that a group needs before it has a usual value
    majority: float = 0.8  # share of a group from which on a value is the usual one


ORDINARY = Options()
