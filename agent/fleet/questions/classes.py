"""Hardware classes: nodes that should be alike."""

from __future__ import annotations

from ibis.expr import types as ir

from agent.fleet.engines.engine import Tables

CLASS = "hardware_class"


def sizes(tables: Tables) -> dict[str, int]:
    """Nodes of every class."""
    host = tables.latest("host")
    rows = tables.rows(host.group_by(CLASS).agg(nodes=host.count()))
    return {name: count for name, count in sorted(rows, key=str) if name is not None}


def with_class(tables: Tables, name: str) -> ir.Table:
    """A table of the latest reports, with the node's hardware class."""
    table = tables.latest(name)
    if name == "host":
        return table
    return table.inner_join(tables.latest("host").select("node", CLASS), "node")
