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
from agent.fleet.racks import FEWEST, MOST, drop_last_number, find_named_racks

DOMAINS = query("outliers", "domain_nodes")
RACK_NODES = query("outliers", "rack_nodes").bind(fewest=FEWEST, most=MOST)


class Racks:
    """The rack of each node; all are found when the first one is asked for."""

    def __init__(self, tables: Tables) -> None:
        self._begun = tables.submit(RACK_NODES)

    @cached_property
    def _rows(self) -> list[Row]:
        return self._begun()

    @cached_property
    def _chassis(self) -> dict[str, str]:
        return {name: chassis for _, chassis, name, _ in self._rows if chassis is not None}

    @cached_property
    def _named(self) -> dict[str, str]:
        names: Counter[str] = Counter()
        for _, chassis, name, nodes in self._rows:
            if chassis is None:
                names[name] += nodes
        return find_named_racks(names)

    def find(self, node: str) -> str | None:
        """None: not known."""
        return self._chassis.get(node) or self._named.get(drop_last_number(node))

    def count_nodes(self, racks: Collection[str]) -> Mapping[tuple[str, str], int]:
        """Nodes of each class in each of these racks."""
        counts: Counter[tuple[str, str]] = Counter()
        for hardware_class, chassis, name, nodes in self._rows if racks else ():
            rack = chassis or self._named.get(name)
            if rack is not None and rack in racks:
                counts[hardware_class, rack] += nodes
        return counts


def find_shifted_domains(rows: Pending, racks: Racks, of: Mapping[str, str], options: Options) -> Iterator[Deviation]:
    """Nodes with GPUs in another NVLink domain than most nodes of their rack. `rows`: of DOMAINS."""
    placed: dict[tuple[str, str], dict[str, list[str]]] = {}
    for node, name, domain in rows():
        rack = racks.find(node)
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
