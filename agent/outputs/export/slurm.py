"""gres.conf lines of a node's GPUs, with lines for slurm.conf and topology.conf as comments.

Contract: Slurm's gres.conf(5), slurm.conf(5), topology.conf(5). `Cores` are logical core numbers (`lstopo -l` shows
them), not the kernel's processors; `Links` are in the order of PCI addresses, as the lines are. A GPU without a known
device file, or with MIG enabled, has no line; unknown values are omitted from a line.
"""

from __future__ import annotations

import re
from itertools import pairwise

from agent.model.gpu import Gpu
from agent.model.node import Node
from agent.model.report import Report
from agent.outputs.formatting import clean_line, nvlink_domain, parse_cpulist

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def export(report: Report) -> str:
    """The file: a valid gres.conf."""
    name = (report.node.hostname or "").split(".")[0]
    node = name if _NAME.fullmatch(name) else None
    generator = clean_line(f"{report.generator.name} {report.generator.version}", 60)
    lines = [f"# gres.conf of one node, by {generator}. Slurm reads it as it is; lines of other files are comments."]
    if node is None:
        lines.append("# The host's name is not known: no NodeName.")
    gpus, notes = _select_gpus(report)
    lines += [f"# {note}" for note in notes]
    links, cores = _count_nvlinks(report, gpus), compute_core_ranges(report.node)
    head = f"NodeName={node} " if node else ""
    for gpu in gpus:
        parts = ["Name=gpu", *([f"Type={kind}"] if (kind := _gres_type(gpu)) else []), f"File=/dev/nvidia{gpu.minor}"]
        if gpu.numa_node in cores:
            parts.append(f"Cores={cores[gpu.numa_node]}")
        if gpu.id in links:
            parts.append(f"Links={','.join(map(str, links[gpu.id]))}")
        lines.append(head + " ".join(parts))
    if node:
        lines += _lines_for_other_files(report, node, gpus)
    return "\n".join(lines) + "\n"


def _select_gpus(report: Report) -> tuple[list[Gpu], list[str]]:
    """GPUs that a job can use, in bus order, and why others are omitted."""
    usable, notes = [], []
    for gpu in report.topology.gpus:
        if gpu.vendor not in (None, "NVIDIA"):
            why = "not an NVIDIA GPU"
        elif gpu.driver_state != "open":
            why = f"the driver does not offer it ({gpu.driver_state})"
        elif gpu.minor is None:
            why = "its device file is not known"
        elif gpu.mig and gpu.mig.current:
            why = "MIG is on: Slurm takes its instances with AutoDetect=nvml"
        else:
            usable.append(gpu)
            continue
        notes.append(f"{clean_line(gpu.label, 60)} is left out: {clean_line(why)}.")
    return usable, notes


def _gres_type(gpu: Gpu) -> str | None:
    """The GPU type as AutoDetect=nvml names it: lower case, "_" for blanks.

    >>> _gres_type(Gpu(id="", label="", name="NVIDIA H100 80GB HBM3"))
    'nvidia_h100_80gb_hbm3'
    """
    return re.sub(r"[^a-z0-9_.-]+", "_", (gpu.name or "").lower()[:64]).strip("_") or None


def _count_nvlinks(report: Report, gpus: list[Gpu]) -> dict[str, list[int]]:
    """NVLinks between each pair of GPUs; empty if some GPU's are unknown or no two GPUs are connected."""
    counts: dict[frozenset[str], int] = {}
    for path in report.topology.paths:
        match = re.fullmatch(r"NV(\d{1,2})", path.kind or "")
        if match:
            counts[frozenset((path.a, path.b))] = int(match[1])
    if not counts or not all(gpu.links_known for gpu in gpus):
        return {}
    return {a.id: [-1 if a is b else counts.get(frozenset((a.id, b.id)), 0) for b in gpus] for a in gpus}


def compute_core_ranges(node: Node) -> dict[int | None, str]:
    """The logical cores of each NUMA node, as Slurm counts them: package by package; empty if unknown.

    They are known if every node's processors and the threads per core are known, and the nodes follow each other as the
    packages do: one per package, or each in as many runs as a core has threads.
    """
    threads, sockets = node.cpu.threads_per_core, node.cpu.sockets
    lists = {numa_node.id: parse_cpulist(numa_node.cpus) for numa_node in node.numa_nodes if numa_node.cpus != ""}
    if not threads or not sockets or not lists or not all(lists.values()):
        return {}
    together = all(_count_runs(cpus) <= threads for cpus in lists.values()) or len(lists) == sockets
    whole = all(len(cpus) % threads == 0 for cpus in lists.values())
    once = len(set().union(*lists.values())) == sum(map(len, lists.values()))
    if not (together and whole and once):
        return {}
    ranges: dict[int | None, str] = {}
    first = 0
    for number in sorted(lists, key=lambda numa_node: lists[numa_node][0]):
        cores = len(lists[number]) // threads
        ranges[number] = f"{first}-{first + cores - 1}" if cores > 1 else str(first)
        first += cores
    return ranges


def _count_runs(cpus: list[int]) -> int:
    return 1 + sum(b - a > 1 for a, b in pairwise(cpus))


def _lines_for_other_files(report: Report, node: str, gpus: list[Gpu]) -> list[str]:
    lines = []
    if gpus:
        kinds = [f"gpu:{kind}" if kind else "gpu" for kind in map(_gres_type, gpus)]
        gres = ",".join(f"{kind}:{kinds.count(kind)}" for kind in dict.fromkeys(kinds))
        lines.append(f"# slurm.conf: NodeName={node} Gres={gres}")
    rails = {nic.id for nic in report.topology.host_nics if nic.role == "rail"}
    leaves = sorted(
        {
            netdev.neighbor.system
            for netdev in report.topology.netdevs
            if netdev.nic in rails and netdev.neighbor and _NAME.fullmatch(netdev.neighbor.system or "")
        }
        - {None},
        key=str,
    )
    if len(leaves) == 1:
        lines.append(f"# topology.conf: SwitchName={leaves[0]} Nodes={node}")
    elif leaves:
        names = ", ".join(map(str, leaves))
        lines.append(
            f"# topology.conf: rails lead to {len(leaves)} switches ({clean_line(names)}): no one leaf has this node"
        )
    domain = nvlink_domain(report)
    if domain:
        lines.append(f"# topology.conf: BlockName={domain} Nodes={node}")
    return lines
