"""Hardware classes: nodes that should be alike; and the clusters that nodes are in."""

from __future__ import annotations

from agent.fleet.engines.query import Pending, query

CLASS = "hardware_class"


def sizes(rows: Pending) -> dict[str, int]:
    """Nodes of every class."""
    return {name: count for name, count in sorted(rows(), key=str) if name is not None}


CLUSTERS = query("fleet", "clusters")  # of nodes that are in one
SIZES = query("fleet", "class_sizes")
