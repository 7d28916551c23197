"""How long a port was held, or held others: shares of the window by priority."""

from __future__ import annotations

from typing import NamedTuple

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched
from agent.rules.rule import Answer, Unknown
from agent.rules.runtime import Moved, moved, of, rate

# Microseconds of pause: mlx5 by priority and of the whole port, bnxt by priority
_NAMES = ("{way}_prio{p}_pause_duration", "pfc_pri{p}_{way}_duration_us")
_GLOBAL = "{way}_global_pause_duration"


class Paused(NamedTuple):
    """The longest pause of one priority, or of the whole port."""

    share: float  # of the window, 0 to 1
    counter: str
    evidence: tuple[Evidence, ...]


def paused(case: Case, each: Watched, way: str) -> Paused | Answer:
    """For how long one port was paused in the window, or why that is not known.

    `way`: "rx" it was held by the switch, "tx" it held the switch.
    """
    names = [_GLOBAL.format(way=way), *(name.format(way=way, p=p) for p in range(8) for name in _NAMES)]
    count = moved(case, each.eth, names)
    if not isinstance(count, Moved):
        return of(each.place, count)
    if not count.parts:
        return Paused(0.0, "", ()) if count.gap is None else Unknown(each.place.subject, count.gap)
    name = max(count.parts, key=lambda part: count.parts[part])
    rows = tuple(row for row in count.evidence if row.what == name)
    return Paused(min(rate(case, count.parts[name] / 1e6, 1.0), 1.0), name, rows)
