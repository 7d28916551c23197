"""The NVLink domain of a node: what several nodes share that one fabric joins."""

from __future__ import annotations

import re

from agent.model.report import Report

_NO_CLUSTER = "00000000-0000-0000-0000-000000000000"  # NVLink ends at this node


def nvlink_domain(report: Report) -> str | None:
    """ "ClusterUUID.CliqueId", as topograph calls it; None where GPUs differ, or no fabric leaves the node."""
    said = {
        (gpu.fabric.cluster_uuid, gpu.fabric.clique) if gpu.fabric else (None, None) for gpu in report.topology.gpus
    }
    cluster, clique = said.pop() if len(said) == 1 else (None, None)
    if cluster is None or clique is None or cluster == _NO_CLUSTER or not re.fullmatch(r"[0-9a-fA-F-]{36}", cluster):
        return None
    return f"{cluster}.{clique}"
