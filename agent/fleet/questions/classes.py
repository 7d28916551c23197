"""Hardware classes: nodes that should be alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.fleet.engines.engine import Asked, Tables

if TYPE_CHECKING:
    from ibis.expr import types as ir

CLASS = "hardware_class"


def sizes_begun(tables: Tables) -> Asked:
    """Nodes of every class, also of none."""
    return tables.prepared("classes", _sizes)


def sizes(begun: Asked) -> dict[str, int]:
    """Nodes of every class."""
    return {name: count for name, count in sorted(begun(), key=str) if name is not None}


def _sizes(tables: Tables) -> ir.Table:
    host = tables.latest("host")
    return host.group_by(CLASS).agg(nodes=host.count())
