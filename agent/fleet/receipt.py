"""When a report arrived, and what its node's clock is worth."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

TOLERANCE = timedelta(minutes=5)  # of clocks that NTP keeps, with room
_NO_ARRIVAL = timedelta(days=1)  # a file's time this long before its report is not when it arrived


class Receipt(NamedTuple):
    """Times of a report. `observed_at` is corrected where the node's clock is certainly ahead.

    `skew_seconds`: the node's clock minus the time of arrival; null: the time of arrival is not known. Negative: its
    clock is behind, or the report was sent late.
    """

    observed_at: datetime
    received_at: datetime
    skew_seconds: float | None


def receive(observed: datetime, modified: float, now: datetime) -> Receipt:
    """`modified`: of the report's file or archive member, seconds since 1970; 0: lines of a stream have none.

    A report from the future counts from its arrival, so that the reports that follow it are newer.
    """
    arrived = _arrival(observed, modified, now)
    if observed - now > TOLERANCE:
        received = arrived or now
        return Receipt(received, received, (observed - received).total_seconds())
    if arrived is None:
        return Receipt(observed, min(observed, now), None)
    return Receipt(observed, arrived, (observed - arrived).total_seconds())


def _arrival(observed: datetime, modified: float, now: datetime) -> datetime | None:
    try:
        arrived = datetime.fromtimestamp(modified, timezone.utc) if modified > 0 else None
    except (OverflowError, ValueError, OSError):
        return None
    if arrived is None or arrived > now or (observed <= now and observed - arrived > _NO_ARRIVAL):
        return None
    return arrived
