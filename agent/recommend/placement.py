"""Where ranks go: rank to GPU to rail, and the CPUs of each."""

from __future__ import annotations

from agent.model.prediction import RankPlace
from agent.model.report import Report
from agent.recommend.machine import NodeFacts

_NO_INDEX = 1 << 20


def place_ranks(report: Report, node: NodeFacts) -> list[RankPlace]:
    """One rank a GPU in the order of their indexes; its rails are those that are nearest to it."""
    gpus = [gpu for gpu in report.topology.gpus if gpu.label in node.gpus]
    gpus.sort(key=lambda gpu: (_NO_INDEX if gpu.index is None else gpu.index, gpu.pci or gpu.id))
    cpus = {numa.id: numa.cpus for numa in report.node.numa_nodes}
    rails: dict[str, list[str]] = {}
    for rail in node.rails:
        if rail.gpu is not None:
            rails.setdefault(rail.gpu, []).append(rail.label)
    return [
        RankPlace(
            local_rank=rank, gpu=gpu.label, pci=gpu.pci, rails=rails.get(gpu.label, []), numa_node=gpu.numa_node,
            cpus=cpus.get(gpu.numa_node) if gpu.numa_node is not None else None,
        )
        for rank, gpu in enumerate(gpus)
    ]  # fmt: skip
