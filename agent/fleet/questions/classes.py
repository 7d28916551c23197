"""Hardware classes: nodes that should be alike; and the clusters that nodes are in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.fleet.engines.engine import Asked
from agent.fleet.engines.query import Query, Source

if TYPE_CHECKING:
    from ibis.expr import types as ir

CLASS = "hardware_class"


def sizes(begun: Asked) -> dict[str, int]:
    """Nodes of every class."""
    return {name: count for name, count in sorted(begun(), key=str) if name is not None}


def _sizes(tables: Source) -> ir.Table:
    """Nodes of every class, also of none."""
    host = tables.latest("host")
    return host.group_by(CLASS).agg(nodes=host.count())


def _clusters(tables: Source) -> ir.Table:
    host = tables.latest("host")
    return host.filter(host.cluster.notnull()).select("node", "cluster")


CLUSTERS = Query("clusters", _clusters)  # of nodes that are in one
SIZES = Query("classes", _sizes)
