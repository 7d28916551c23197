"""Hardware classes: nodes that should be alike."""

from __future__ import annotations

from agent.fleet.engines.engine import Tables

CLASS = "hardware_class"


def sizes(tables: Tables) -> dict[str, int]:
    """Nodes of every class."""
    host = tables.latest("host")
    rows = tables.rows(host.group_by(CLASS).agg(nodes=host.count()))
    return {name: count for name, count in sorted(rows, key=str) if name is not None}
