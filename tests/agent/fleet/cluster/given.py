"""Fabrics by hand: switches, hosts and cables that a test can move, cut or slow down."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.fleet.cluster import from_dataset
from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_faults import CablingFault, find_cabling_faults
from agent.fleet.cluster.fabric_view import View, build_views
from agent.fleet.cluster.from_reports import ROW_KINDS, ClusterTables
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.engines.engine import Engine
from agent.fleet.engines.query import table_query
from probes.fabric.topology import (
    Fabric,
    FabricEnd,
    FabricLink,
    FabricNode,
)

UP = 33  # the first port of a leaf that leads upwards


@dataclass
class Cable:
    """`a` and `b`: name of a node, and its port."""

    a: tuple[str, int]
    b: tuple[str, int]
    width: int = 4
    speed: str = "NDR"
    could: str | None = None
    state: str | None = None


@dataclass
class Plant:
    """Nodes by their description; each gets a GUID by its place."""

    nodes: dict[str, FabricNode] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)

    def add(self, name: str, kind: str = "ca", ports: int | None = 1, said: str | None = None) -> str:
        """A node, once; `said`: its NodeDescription, where that is not its name here."""
        number = len(self.nodes) + 1
        if name not in self.nodes:
            self.nodes[name] = FabricNode(f"{number:016x}", kind, name if said is None else said, ports)
        return name

    def switch(self, name: str) -> str:
        """A switch, once."""
        return self.add(name, "switch", 64)

    def cable(self, a: str, at: int, b: str, port: int, **more: object) -> Cable:
        """A cable; nodes that are not there yet are hosts' adapters."""
        self.add(a)
        self.add(b)
        result = Cable((a, at), (b, port), **more)  # type: ignore[arg-type]
        self.cables.append(result)
        return result

    def of(self, name: str, port: int = 1) -> Cable:
        """The cable in a port."""
        return next(cable for cable in self.cables if (name, port) in (cable.a, cable.b))

    def cut(self, name: str, port: int = 1) -> None:
        """Take a cable out."""
        self.cables.remove(self.of(name, port))

    def swap(self, one: str, other: str, port: int = 1, other_port: int = 1) -> None:
        """Exchange the far ends of two cables."""
        first, second = self.of(one, port), self.of(other, other_port)
        near, far = (one, port), (other, other_port)
        ends = first.b if first.a == near else first.a, second.b if second.a == far else second.a
        first.a, first.b = near, ends[1]
        second.a, second.b = far, ends[0]

    def fabric(self) -> Fabric:
        """As a parser gives it."""
        links = [
            FabricLink(
                self._end(cable.a), self._end(cable.b), cable.width, cable.speed, cable.state, could_speed=cable.could
            )
            for cable in self.cables
        ]
        nodes = {node.guid: node for node in self.nodes.values()}
        listed = tuple(node.guid for node in nodes.values() if node.ports is not None)
        return Fabric("ibnetdiscover", nodes, tuple(links), listed=listed)

    def cluster(self, tables: ClusterTables | None = None) -> FabricGraph:
        """The graph."""
        return build([FabricFile("fabric.txt", self.fabric(), "Thu Jan 15 08:00:00 2026")], tables)

    def views(self) -> list[View]:
        """The fabrics of the graph."""
        return build_views(self.cluster())

    def view(self) -> View:
        """The only fabric."""
        (only,) = self.views()
        return only

    def breaks(self, tables: ClusterTables | None = None) -> list[CablingFault]:
        """What is wrong with it."""
        cluster = self.cluster(tables)
        return find_cabling_faults(cluster, build_views(cluster))

    def guid(self, name: str) -> str:
        """Of a node."""
        return self.nodes[name].guid

    def _end(self, end: tuple[str, int]) -> FabricEnd:
        return FabricEnd(self.nodes[end[0]].guid, end[1])


def rails(units: int = 2, nodes: int = 4, per_node: int = 4, spines: int = 2, each: int = 2) -> Plant:
    """Rail-optimized: rail k of a unit's nodes on leaf k; `each`: cables from a leaf to a spine."""
    plant = Plant()
    for unit in range(units):
        for rail in range(per_node):
            leaf = plant.switch(f"su{unit + 1}-leaf{rail + 1}")
            for node in range(nodes):
                plant.cable(f"n{unit * nodes + node + 1:03d} mlx5_{rail}", 1, leaf, node + 1)
            for spine in range(spines):
                for number in range(each):
                    down = (unit * per_node + rail) * each + number + 1
                    plant.cable(leaf, UP + spine * each + number, plant.switch(f"spine{spine + 1}"), down)
    return plant


def fat_tree(leaves: int = 4, nodes: int = 8, spines: int = 2, each: int = 2, pods: int = 1, cores: int = 0) -> Plant:
    """All ports of a node on one leaf; with `cores`, pods are joined by them, each spine with each core."""
    plant = Plant()
    for pod in range(pods):
        for leaf in range(leaves):
            name = plant.switch(f"leaf{pod * leaves + leaf + 1:02d}")
            for node in range(nodes):
                plant.cable(f"n{(pod * leaves + leaf) * nodes + node + 1:03d} mlx5_0", 1, name, node + 1)
            for spine in range(spines):
                upper = plant.switch(f"spine{pod * spines + spine + 1:02d}")
                for number in range(each):
                    plant.cable(name, UP + spine * each + number, upper, leaf * each + number + 1)
        for spine in range(spines if cores else 0):
            for core in range(cores):
                down, upper = f"spine{pod * spines + spine + 1:02d}", plant.switch(f"core{core + 1:02d}")
                plant.cable(down, UP + core, upper, pod * spines + spine + 1)
    return plant


def dragonfly(groups: int = 5, routers: int = 4, nodes: int = 2) -> Plant:
    """Routers with hosts: all of a group joined, and each pair of groups by one cable."""
    plant = Plant()
    free: dict[str, int] = {}

    def join(one: str, other: str) -> None:
        ports = []
        for name in (one, other):
            plant.switch(name)
            free[name] = free.get(name, 20) + 1
            ports.append(free[name])
        plant.cable(one, ports[0], other, ports[1])

    for group in range(groups):
        names = [f"g{group}r{router}" for router in range(routers)]
        for one in range(routers):
            plant.switch(names[one])
            for node in range(nodes):
                plant.cable(f"h{group}-{one}-{node} mlx5_0", 1, names[one], node + 1)
            for other in range(one + 1, routers):
                join(names[one], names[other])
    for one in range(groups):
        for other in range(one + 1, groups):
            join(f"g{one}r{other % routers}", f"g{other}r{one % routers}")
    return plant


def read_whole(engine: Engine) -> ClusterTables:
    """All rows, also those that show nothing."""
    return ClusterTables(
        *(
            from_dataset._sort_by_node(map(kind._make, engine.many_rows(table_query(table, kind._fields))))
            for table, kind in ROW_KINDS.items()
        )
    )
