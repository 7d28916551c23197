"""fabric-clique-mixed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nvlink.fabric import Registered, cluster, places, registered
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_SHORT = 8


@rule("fabric-clique-mixed", "error", needs=("nvml|nvidia_smi",), references=("NVL-014",))
def fabric_clique_mixed(case: Case) -> Iterator[Answer]:
    """GPUs of one node are in different NVLink domains.

    ## What it checks
    Cluster UUID and clique of every GPU that completed its registration with the fabric.

    ## Why it matters
    NCCL uses NVLink only between GPUs of one cluster and one clique: between the others it falls from 900 GB/s to
    PCIe or the network.

    ## How it is decided
    All GPUs of a node should say the same. Different clusters, or cliques on a node of its own: error. Different
    cliques in one cluster of several nodes may be partitions that somebody made: warning.

    ## What keeps it silent
    - Fewer than two GPUs have completed registration: not applicable. MIG, no fabric: not applicable.
    - The driver tells neither cluster nor clique of a GPU: unknown.

    ## How to confirm
    `nvidia-smi -q | grep -E "CliqueId|ClusterUUID"`

    ## How to fix
    Put all GPUs of the node into one partition, unless the partitions are meant; else restart the fabric manager, and
    reset the GPUs that differ.

    ## Source
    NCCL (a domain is one non-zero cluster UUID and one clique); nvml.h (nvmlGpuFabricInfo).
    """
    domains: dict[tuple[str | None, int], list[Gpu]] = {}
    for each in registered(case):
        if not isinstance(each, Registered):
            yield each
            continue
        gpu, fabric = each
        if fabric.state != "completed":
            yield NotApplicable(f"gpu:{gpu.id}", "registration is not completed: see fabric-incomplete")
        elif fabric.clique is None or fabric.cluster_uuid is None:
            yield Unknown(f"gpu:{gpu.id}", "the driver does not tell its cluster and clique")
        else:
            domains.setdefault((cluster(gpu), fabric.clique), []).append(gpu)
    if len(domains) > 1:
        yield _fault(case, domains)
    elif sum(map(len, domains.values())) > 1:
        yield Pass("node")
    elif domains:
        yield NotApplicable("node", "one GPU in a fabric: nothing to compare with")


def _fault(case: Case, domains: dict[tuple[str | None, int], list[Gpu]]) -> Fail:
    clusters = {uuid for uuid, _ in domains}
    partitioned = len(clusters) == 1 and None not in clusters
    groups = [
        (f"{(uuid or 'no cluster')[:_SHORT]}/{clique}" if uuid else f"clique {clique}", gpus)
        for (uuid, clique), gpus in sorted(domains.items(), key=lambda each: (each[0][0] or "", each[0][1]))
    ]
    fewest = min((gpus for _, gpus in groups), key=len)
    return Fail(
        subject="node",
        label="node",
        summary="GPUs in different NVLink domains: "
        + "; ".join(f"{name}: {named([gpu.label for gpu in gpus])}" for name, gpus in groups),
        impact="NCCL uses no NVLink between them, but PCIe or the network: seven times slower and more.",
        remedy="Put the node's GPUs into one partition, unless partitions are meant; else reset those that differ.",
        evidence=tuple(
            Evidence(what=name, value=named([gpu.label for gpu in gpus]), source="nvidia-smi -q")
            for name, gpus in groups
        ),
        severity="warning" if partitioned else "error",
        cause="clique" if len(clusters) == 1 else "cluster",
        places=frozenset().union(*(places(case, gpu) for gpu in fewest)),
    )
