"""What is not modelled, and why."""

from __future__ import annotations

from collections.abc import Sequence

from agent.recommend.machine import NodeFacts
from agent.recommend.rails import rail_gbyte_s

MODELLED_FROM = 8_000_000  # bytes: below, launch and plugins decide, which no topology shows


def find_refusal(job: Sequence[NodeFacts], nodes: int, size: int) -> str | None:
    """Why a job on these nodes has no prediction; None: it has one."""
    return next((text for node in job if (text := _refuse(node, nodes, size))), None) or _unlike(job)


def _refuse(node: NodeFacts, nodes: int, size: int) -> str | None:
    if node.missing:
        return f"missing: {', '.join(node.missing)}"
    if len(node.gpus) * nodes < 2:
        return "a collective needs two GPUs"
    if node.kind in ("pcie", "none"):
        return "GPUs without direct links: measure with nccl-tests; NCCL's constants do not fit PCIe-only machines"
    if not node.regular and (nodes > 1 or not node.mesh):
        return "the direct links do not join all GPUs alike: measure with nccl-tests"
    if nodes > 1 and not any(rail_gbyte_s(rail, True) for rail in node.rails):
        return "no rail with a known rate: give --rails, for example 8x400"
    if size < MODELLED_FROM:
        return "below 8 MB launch time and network plugin decide, which no topology shows"
    return None


def _unlike(nodes: Sequence[NodeFacts]) -> str | None:
    """Nodes of different kinds in one job have no model."""
    shapes = {(node.kind, len(node.gpus)): node.host for node in nodes}
    if len(shapes) < 2:
        return None
    return "nodes differ: " + ", ".join(f"{host} has {count} GPUs ({kind})" for (kind, count), host in shapes.items())
