"""Several machines that report under one node name: each report seems to be of another machine."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, lookup, matching, query
from agent.fleet.innocent import placeholder
from agent.fleet.questions.newest import NEWEST, earlier
from agent.fleet.questions.options import Options
from agent.fleet.table import TEXT

CHANGING = query("duplicates", "changing_names")
MACHINES = lookup({"node": TEXT}, "duplicates", "machines_of_names", matching=matching(("node",), null_safe=False))


def shared_names(tables: Tables, changing: Pending, options: Options) -> dict[str, list[str]]:
    """Node names -> serial numbers (else machine ids) of the machines that take turns under each.

    A machine that took the place of another is no such case: it stays. Neither is one that was given a name of its own
    since: the last turn is then older than what makes a report stale. `changing`: of the query CHANGING.
    """
    names = changing()
    if not names:
        return {}
    ((_, newest),) = tables.whole.rows(NEWEST)
    since = earlier(newest, timedelta(seconds=options.stale_after_seconds))
    states: dict[str, list[tuple[datetime, str]]] = {}
    for node, observed_at, serial, machine_id in tables.fetch_by_keys(MACHINES, names):
        machine = machine_id if serial is None else serial
        if machine is not None and not placeholder(machine):
            states.setdefault(node, []).append((observed_at, machine))
    return {node: sorted({each for _, each in turns}) for node, turns in states.items() if _take_turns(turns, since)}


def _take_turns(states: list[tuple[datetime, str]], since: datetime) -> bool:
    """Whether a machine is back after another had its name, and the last change of machines is recent."""
    states = sorted(states)
    changes = [(at, machine) for (_, before), (at, machine) in pairwise(states) if machine != before]
    returned = len(changes) + 1 > len({machine for _, machine in states})
    return returned and changes[-1][0] > since
