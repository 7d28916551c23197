"""gdr-devnodes-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE, no_rails, rdma_rails
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule


@rule("gdr-devnodes-missing", "error", needs=("limits",), references=("gdr-devnodes-missing",))
def gdr_devnodes_missing(case: Case) -> Iterator[Answer]:
    """Rails are there, and programs have no device node to open them by.

    ## What it checks
    `/dev/infiniband/uverbs*`, on a node or in a container that sees active RDMA rails.

    ## Why it matters
    Verbs open a device by its node. Without one NCCL finds no RDMA device, says so only at INFO, and goes over TCP
    sockets: about 10 % of the bandwidth.

    ## How it is decided
    Fewer nodes than rails. On the host: error (`ib_uverbs` is not loaded, or udev made no node). In a container:
    warning, for it may be one that needs no rail.

    ## What keeps it silent
    - No active rail, or a cloud's own way: not applicable.
    - /dev could not be listed, or the source is not the machine itself (a tree, saved outputs): unknown.

    ## How to confirm
    `ls /dev/infiniband`; `ibv_devices`; `lsmod | grep ib_uverbs`

    ## How to fix
    Host: `modprobe ib_uverbs`. Container: `--device /dev/infiniband`, or the RDMA device plugin of the cluster.

    ## Source
    Linux `Documentation/infiniband/user_verbs.rst`; rdma-core, `Documentation/libibverbs.md`.
    """
    yield from (silent := list(no_rails(case)))
    if silent:
        return
    nodes = case.software.device_nodes
    if nodes is None:
        yield Unknown("node", case.probe_failure("limits") or "/dev is not to be seen here")
        return
    rails = sorted({each.name for each in rdma_rails(case)})
    verbs = [node for node in nodes if node.startswith("infiniband/uverbs")]
    if len(verbs) >= len(rails):
        yield Pass("node")
        return
    inside = case.node.container is not None
    yield Fail(
        subject="node",
        label="node",
        summary=f"{len(verbs)} device nodes (/dev/infiniband/uverbs*) for {len(rails)} RDMA rails",
        impact=f"programs here cannot open {len(rails) - len(verbs)} of {len(rails)} rails; NCCL goes over TCP where "
        "none is left: about 10 %.",
        remedy="Give the container /dev/infiniband (--device, or the RDMA device plugin)."
        if inside
        else "modprobe ib_uverbs; look at udev where the module is loaded.",
        evidence=(
            Evidence(what="nodes", value=", ".join(verbs[:8]) or "none", source="ls /dev/infiniband"),
            Evidence(what="rails", value=", ".join(rails[:8]), source="ls /sys/class/infiniband"),
        ),
        severity="warning" if inside else "error",
        cause="none" if not verbs else "some",
        places=NODE,
    )
