"""gdr-peermem-broken."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.gpudirect.no_path import dmabuf_ready
from agent.rules.gpudirect.ways import peer_memory
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule(
    "gdr-peermem-broken",
    "error",
    needs=("kernel_log", "modules|lsmod"),
    references=("gdr-peermem-broken",),
    absorbs=("gdr-no-path",),
)
def gdr_peermem_broken(case: Case) -> Iterator[Answer]:
    """The peer-memory module was refused by the kernel: it was built for another RDMA stack.

    ## What it checks
    The kernel log of this boot for `nvidia_peermem` or `nv_peer_mem` and a symbol that is missing or of another
    version, while no peer-memory client is loaded.

    ## Why it matters
    Without it, and without DMA-BUF, NICs do not reach GPU memory: about 50 % of the bandwidth between nodes.

    ## How it is decided
    The kernel named `ib_register_peer_memory_client` as unknown or of another version, and no client is loaded or
    registered now. Where DMA-BUF has all that it needs, info: NCCL takes that way.

    ## What keeps it silent
    - A client is loaded now: the message is of an attempt before.
    - "invalid context" messages of nvidia-peermem: a process died with its memory pinned.
    - No such message: not applicable. The kernel log or the modules could not be read: unknown.

    ## How to confirm
    `dmesg | grep -i peer_mem`; `modinfo nvidia-peermem`; `cat /sys/module/{ib_core,mlx5_core}/version`

    ## How to fix
    Reinstall or rebuild the NVIDIA driver after DOCA-OFED, so that nvidia-peermem is built for its ib_core; or
    install the open kernel modules and use DMA-BUF.

    ## Source
    Mellanox/nv_peer_memory issue 84; NVIDIA/gpu-operator issue 2868.
    """
    refused = [event for event in case.events if event.kind == "peermem"]
    loaded = peer_memory(case)
    if not refused:
        why = case.probe_failure("kernel_log")
        yield Unknown("node", why) if why and case.topology.gpus else NotApplicable("node", "no such message")
    elif loaded:
        yield Pass("node")
    elif why := case.probe_failure("modules|lsmod"):
        yield Unknown("node", why)
    else:
        stack = case.software.rdma_stack
        ready = dmabuf_ready(case)
        yield Fail(
            subject="node",
            label="node",
            summary=f"{refused[-1].detail.get('module', 'nvidia_peermem')} was refused by the kernel: it was built for "
            "another RDMA stack",
            impact="0 %: DMA-BUF has all that it needs." if ready else "about 50 % of the bandwidth between nodes.",
            remedy="Rebuild the NVIDIA driver after DOCA-OFED was installed, or use its open kernel modules (DMA-BUF).",
            evidence=(
                Evidence(what="kernel log", value=refused[-1].text, source=refused[-1].source),
                Evidence(
                    what="RDMA stack", value=f"{stack.kind} {stack.version or ''}".strip(), source="/sys/module/ib_core"
                ),
            ),
            severity="info" if ready else "error",
            cause="symbol",
            places=frozenset({"node"}),
        )
