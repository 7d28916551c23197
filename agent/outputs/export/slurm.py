"""gres.conf lines of a node's GPUs; lines for slurm.conf and topology.conf stand beside them as comments.

Contract: Slurm's gres.conf(5), slurm.conf(5), topology.conf(5). `Cores` are logical core numbers (`lstopo -l` shows
them), not the kernel's processors; `Links` are in the order of PCI addresses, as the lines are. A GPU whose device file
is not known, or which MIG has cut, has no line; what is not known is left out of a line.
"""

from __future__ import annotations

import re
from itertools import pairwise

from agent.model.gpu import Gpu
from agent.model.node import Node
from agent.model.report import Report
from agent.outputs.export.domain import nvlink_domain
from agent.outputs.formatting import cpu_numbers, line

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def export(report: Report) -> str:
    """The whole file: as it stands it is a gres.conf."""
    name = (report.node.hostname or "").split(".")[0]
    node = name if _NAME.fullmatch(name) else None
    said = line(f"{report.generator.name} {report.generator.version}", 60)
    lines = [f"# gres.conf of one node, by {said}. As it stands Slurm reads it; other files' lines are comments."]
    if node is None:
        lines.append("# The host's name is not known: no NodeName.")
    gpus, notes = _usable(report)
    lines += [f"# {note}" for note in notes]
    links, cores = _links(report, gpus), core_ranges(report.node)
    head = f"NodeName={node} " if node else ""
    for gpu in gpus:
        parts = ["Name=gpu", *([f"Type={kind}"] if (kind := _type(gpu)) else []), f"File=/dev/nvidia{gpu.minor}"]
        if gpu.numa_node in cores:
            parts.append(f"Cores={cores[gpu.numa_node]}")
        if gpu.id in links:
            parts.append(f"Links={','.join(map(str, links[gpu.id]))}")
        lines.append(head + " ".join(parts))
    if node:
        lines += _elsewhere(report, node, gpus)
    return "\n".join(lines) + "\n"


def _usable(report: Report) -> tuple[list[Gpu], list[str]]:
    """GPUs that a job can have, in the order of the bus, and why others are not among them."""
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
        notes.append(f"{line(gpu.label, 60)} is left out: {line(why)}.")
    return usable, notes


def _type(gpu: Gpu) -> str | None:
    """The name as AutoDetect=nvml makes it: lower case, "_" for blanks.

    >>> _type(Gpu(id="", label="", name="NVIDIA H100 80GB HBM3"))
    'nvidia_h100_80gb_hbm3'
    """
    return re.sub(r"[^a-z0-9_.-]+", "_", (gpu.name or "").lower()[:64]).strip("_") or None


def _links(report: Report, gpus: list[Gpu]) -> dict[str, list[int]]:
    """NVLinks of every GPU with every other; empty where some GPU's are not known, or no two are joined."""
    counts: dict[frozenset[str], int] = {}
    for path in report.topology.paths:
        found = re.fullmatch(r"NV(\d{1,2})", path.kind or "")
        if found:
            counts[frozenset((path.a, path.b))] = int(found[1])
    if not counts or not all(gpu.links_known for gpu in gpus):
        return {}
    return {a.id: [-1 if a is b else counts.get(frozenset((a.id, b.id)), 0) for b in gpus] for a in gpus}


def core_ranges(node: Node) -> dict[int | None, str]:
    """The logical cores of each NUMA node, as Slurm counts them: package by package; empty where that is not known.

    It is known where every node's processors are, the threads of a core, and the nodes follow each other as the
    packages do: one a package, or each in as many pieces as a core has threads.
    """
    threads, sockets = node.cpu.threads_per_core, node.cpu.sockets
    lists = {each.id: cpu_numbers(each.cpus) for each in node.numa_nodes if each.cpus != ""}
    if not threads or not sockets or not lists or not all(lists.values()):
        return {}
    together = all(_pieces(cpus) <= threads for cpus in lists.values()) or len(lists) == sockets
    whole = all(len(cpus) % threads == 0 for cpus in lists.values())
    once = len(set().union(*lists.values())) == sum(map(len, lists.values()))
    if not (together and whole and once):
        return {}
    ranges: dict[int | None, str] = {}
    first = 0
    for number in sorted(lists, key=lambda each: lists[each][0]):
        cores = len(lists[number]) // threads
        ranges[number] = f"{first}-{first + cores - 1}" if cores > 1 else str(first)
        first += cores
    return ranges


def _pieces(cpus: list[int]) -> int:
    return 1 + sum(b - a > 1 for a, b in pairwise(cpus))


def _elsewhere(report: Report, node: str, gpus: list[Gpu]) -> list[str]:
    lines = []
    if gpus:
        kinds = [f"gpu:{kind}" if kind else "gpu" for kind in map(_type, gpus)]
        wanted = ",".join(f"{kind}:{kinds.count(kind)}" for kind in dict.fromkeys(kinds))
        lines.append(f"# slurm.conf: NodeName={node} Gres={wanted}")
    rails = {nic.id for nic in report.topology.nics if nic.role == "rail"}
    leaves = sorted(
        {
            each.neighbor.system
            for each in report.topology.netdevs
            if each.nic in rails and each.neighbor and _NAME.fullmatch(each.neighbor.system or "")
        }
        - {None},
        key=str,
    )
    if len(leaves) == 1:
        lines.append(f"# topology.conf: SwitchName={leaves[0]} Nodes={node}")
    elif leaves:
        names = ", ".join(map(str, leaves))
        lines.append(
            f"# topology.conf: rails lead to {len(leaves)} switches ({line(names)}): no one leaf has this node"
        )
    domain = nvlink_domain(report)
    if domain:
        lines.append(f"# topology.conf: BlockName={domain} Nodes={node}")
    return lines
