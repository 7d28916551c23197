"""Which CPU socket a NUMA node belongs to: from the number of sockets and the firmware's distances."""

from __future__ import annotations

from agent.model.node import NumaNode
from agent.model.report import Report


def sockets_by_numa_node(report: Report) -> dict[int, int]:
    """NUMA node with CPUs -> socket, numbered from 0; empty where it cannot be decided."""
    sockets = report.node.cpu.sockets
    nodes = [node for node in report.node.numa_nodes if node.cpus]
    if not sockets or not nodes or len(nodes) < sockets:
        return {}
    if len(nodes) == sockets:
        return {node.id: number for number, node in enumerate(nodes)}
    if sockets == 1:
        return {node.id: 0 for node in nodes}
    return _group_by_distance(nodes, [node.id for node in report.node.numa_nodes], sockets)


def _group_by_distance(nodes: list[NumaNode], ids: list[int], sockets: int) -> dict[int, int]:
    """Nodes of one socket are near to each other: the distance limit that gives as many groups as sockets."""
    near = {node.id: dict(zip(ids, node.distances, strict=False)) for node in nodes}
    for limit in sorted({distance for row in near.values() for distance in row.values()}):
        groups: list[list[int]] = []
        for node in nodes:
            group = next((g for g in groups if all(near[node.id].get(other, limit + 1) <= limit for other in g)), None)
            if group is None:
                groups.append([node.id])
            else:
                group.append(node.id)
        if len(groups) == sockets and len({len(group) for group in groups}) == 1:
            return {node: number for number, group in enumerate(groups) for node in group}
    return {}
