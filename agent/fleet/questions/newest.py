"""The newest report of the dataset, whichever of its nodes are asked about: who is stale is told against it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Query, Source

if TYPE_CHECKING:
    from ibis.expr import types as ir


def _newest(tables: Source) -> ir.Table:
    host = tables.latest("host")
    return host.aggregate(nodes=host.count(), newest=host.observed_at.max())


NEWEST = Query("newest", _newest)


def of_dataset(tables: Tables, of_these: datetime | None) -> datetime | None:
    """Its time, UTC without a zone. `of_these`: the same of the nodes that are asked about, known already."""
    if tables.whole is tables:
        return of_these
    ((_, newest),) = tables.whole.begun(NEWEST)()
    found: datetime | None = newest
    return found


def earlier(moment: datetime, by: timedelta) -> datetime:
    """A moment before another; the first that there is, where there is none so early."""
    try:
        return moment - by
    except OverflowError:
        return datetime.min  # noqa: DTZ901  # times of a dataset have no zone
