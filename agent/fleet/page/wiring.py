"""What the cluster's topology tells of nodes: their scalable unit, and the leaf switch of each rail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from agent.fleet.cluster.answer import TopologyAnswer, topology
from agent.fleet.cluster.build import build
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.cluster.view import views
from agent.fleet.cluster_rows import telling
from agent.fleet.engines.engine import Tables

_RAIL = re.compile(r"rail ([0-9]{1,4})(?: .*)?")


class Wiring(NamedTuple):
    """`units`: node -> unit; `leaves`: node -> rail -> switch. None: no answer, nothing is known of any switch."""

    units: Mapping[str, str] = {}
    leaves: Mapping[str, Mapping[int, str]] = {}
    answer: TopologyAnswer | None = None


def of_reports(source: Tables) -> FabricGraph:
    """The graph where there is no fabric file: what reports tell alone. Raises EngineRefused."""
    return build([], telling(source, beside_files=False))


def wiring(cluster: FabricGraph) -> Wiring:
    """From the graph of the cluster."""
    seen = views(cluster)
    units = {host: unit.name for view in seen for host, unit in view.unit_of.items()}
    leaves: dict[str, dict[int, str]] = {}
    for link in cluster.host_links:
        matched = _RAIL.fullmatch(link.rail)
        switch = cluster.switches.get(link.at.switch)
        if matched and switch:
            leaves.setdefault(link.host, {})[int(matched[1])] = switch.name
    return Wiring(units, leaves, topology(cluster, seen))
