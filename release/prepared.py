"""SQL of the fleet's named queries, compiled by Ibis: DuckDB then answers without it.

`python -m release.prepared agent/fleet/engines/prepared.json` writes it anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
from ibis.expr import types as ir

from agent.fleet.engines import shapes
from agent.fleet.engines.embedded import TYPES, compiled
from agent.fleet.engines.query import Choice, Dated, Query, asked_moment, joined
from agent.fleet.questions import (
    amounts,
    bags,
    classes,
    drift,
    findings,
    identities,
    lids,
    newest,
    parts,
    summary,
    then_and_now,
)

_OF_IBIS = {shapes.KINDS[ours]: theirs for ours, theirs in TYPES.items()}


class Noting:
    """Tables of which is kept what is asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def latest(self, name: str) -> ir.Table:
        """Noted."""
        self.asked.add(name)
        return shapes.table(name)

    def history(self, name: str) -> ir.Table:
        """Noted."""
        self.asked.add(shapes.HISTORY + name)
        return shapes.table(shapes.HISTORY + name)


def queries() -> Iterator[Query | Choice | Dated]:
    """All that questions ask by name."""
    yield from (classes.SIZES, classes.CLUSTERS, amounts.MEMORY, amounts.PROBES, amounts.NODES, amounts.ENDS)
    yield from (summary.HOURS, summary.BAD, summary.STATES, summary.OLD, summary.OLD_STATES)
    yield from (
        findings.COUNTS,
        findings.NODES,
        findings.WITHOUT,
        identities.NODES,
        identities.ADDRESSES,
        identities.ON_NODES,
    )
    yield from (identities.NUMBERS, identities.NUMBERED)
    yield from (newest.NEWEST, drift.SILENT, then_and_now.RECENT, then_and_now.MOMENTS, then_and_now.MOMENTS_OF)
    yield from then_and_now.ROWS_OF
    yield from then_and_now.PAIRS
    yield from bags.COUNTS
    yield from bags.NODES
    for part in parts.PARTS:
        yield from (part.counts, part.things)
        yield from part.nodes.values()
    for asked in identities.ASKED:
        yield from (asked.counts, asked.rows, asked.shared, asked.of_nodes)
    for level in lids.ASKED:
        yield from (level.sums, level.exact, level.ports)


def prepared(query: Query | Choice | Dated) -> dict[str, Any]:
    """What the file has of a query."""
    noting = Noting()
    if isinstance(query, Query):
        return {"sql": compiled(query.make(noting)), "tables": sorted(noting.asked)}
    types: list[str] = []
    if isinstance(query, Dated):
        sql = compiled(query.make(noting, asked_moment(types)))
    else:
        sql = compiled(query.make(noting, joined(query.keys, types)))
    return {"asked": [_OF_IBIS[each] for each in types], "sql": sql, "tables": sorted(noting.asked)}


def text() -> str:
    """The file."""
    made = {query.name: prepared(query) for query in queries()}
    return (
        json.dumps({"compiled_by": f"ibis {ibis.__version__}", "queries": dict(sorted(made.items()))}, indent=1) + "\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
