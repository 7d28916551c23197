"""Racks of nodes, and nodes in another NVLink domain than most of their rack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, query
from agent.fleet.questions.baseline import find_baseline
from agent.fleet.questions.deviations import Deviation, PeerGroup
from agent.fleet.questions.options import Options
from agent.fleet.racks import find_racks

DOMAINS = query("outliers", "domain_nodes")
RACK_NODES = query("outliers", "rack_nodes")


class Racks:
    """The rack of each node; all are taken when the first one is asked for."""

    def __init__(self, tables: Tables) -> None:
        self._begun = tables.submit(RACK_NODES)

    @cached_property
    def _rows(self) -> list[Row]:
        return self._begun()

    @cached_property
    def _found(self) -> list[str | None]:
        return find_racks([row[0] for row in self._rows], [row[2] for row in self._rows])

    @cached_property
    def of(self) -> dict[str, str]:
        """By node, those that are known."""
        return {row[0]: rack for row, rack in zip(self._rows, self._found, strict=True) if rack is not None}

    def count_nodes(self, racks: Collection[str]) -> Mapping[tuple[str, str], int]:
        """Nodes of each class in each of these racks."""
        placed = zip(self._rows, self._found, strict=True) if racks else ()
        return Counter((row[1], rack) for row, rack in placed if rack is not None and rack in racks)


def find_shifted_domains(rows: Pending, racks: Racks, of: Mapping[str, str], options: Options) -> Iterator[Deviation]:
    """Nodes with GPUs in another NVLink domain than most nodes of their rack. `rows`: of DOMAINS."""
    placed: dict[tuple[str, str], dict[str, list[str]]] = {}
    for node, name, domain in rows():
        rack = racks.of.get(node)
        if name is not None and name in of and rack is not None:
            placed.setdefault((name, rack), {}).setdefault(domain, []).append(node)
    for (name, rack), domains in placed.items():
        normal = find_baseline({domain: len(nodes) for domain, nodes in domains.items()}, options)
        if normal is None:
            continue
        group = PeerGroup("gpu-cluster-uuid", "NVLink domain", of[name], f"rack {rack}", "node")
        for domain, nodes in domains.items():
            if domain != normal.value:
                yield from (Deviation(group, normal, domain, normal.value, node, None) for node in nodes)
