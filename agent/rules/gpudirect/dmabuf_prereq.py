"""gdr-dmabuf-prereq."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.gpudirect.no_path import dmabuf_needs, gpus_that_could, why_not_applicable
from agent.rules.gpudirect.ways import peer_memory
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gdr-dmabuf-prereq", "info", needs=("modules|lsmod",), references=("gdr-dmabuf-prereq",))
def gdr_dmabuf_prereq(case: Case) -> Iterator[Answer]:
    """GPUDirect RDMA hangs on a peer-memory client alone: DMA-BUF, which follows it, lacks something.

    ## What it checks
    What DMA-BUF needs on a node whose GPUs and rails use GPUDirect RDMA by a peer-memory client.

    ## Why it matters
    NVIDIA has announced the end of the peer-memory interface since CUDA 13.0; a kernel or driver update takes it away,
    and with it about 50 % of the bandwidth between nodes.

    ## How it is decided
    A client is loaded, and one of these is missing: kernel 5.12, open kernel modules of the driver, CUDA 11.7, Turing
    or newer, a NIC driver that registers DMA-BUFs.

    ## What keeps it silent
    - No client is loaded: gdr-no-path looks at the whole. Clouds, virtual machines, GeForce, no active rail: not
      applicable.
    - Something that it needs could not be read: unknown.

    ## How to confirm
    `cat /proc/driver/nvidia/version` (Open Kernel Module); `uname -r`; `nvidia-smi | grep CUDA`

    ## How to fix
    Install the open kernel modules of the driver (`nvidia-open`).

    ## Source
    NCCL `src/init.cc` (DMA-BUF support); NVIDIA GPU Operator, GPUDirect RDMA; CUDA 13 GPUDirect RDMA guide.
    """
    gpus = gpus_that_could(case)
    silent = why_not_applicable(case, gpus)
    clients = peer_memory(case)
    if silent or not clients:
        yield NotApplicable("node", silent or "no peer-memory client: see gdr-no-path")
        return
    needs = dmabuf_needs(case, gpus)
    lacking = [need for need, met in needs.items() if met is False]
    unread = [need for need, met in needs.items() if met is None]
    if lacking:
        yield Fail(
            subject="node",
            label="node",
            summary=f"only {', '.join(clients)} lets NICs reach GPU memory; DMA-BUF lacks: {', '.join(lacking)}",
            impact="0 % today; about 50 % of the bandwidth between nodes once the client is gone.",
            remedy="Install the open kernel modules of the driver.",
            evidence=(
                Evidence(what="peer-memory client", value=", ".join(clients), source="/proc/modules"),
                Evidence(what="kernel", value=case.node.kernel or "not known", source="uname -r"),
            ),
            places=frozenset({"node"}),
        )
    elif unread:
        yield Unknown("node", f"for DMA-BUF not known: {', '.join(unread)}")
    else:
        yield Pass("node")
