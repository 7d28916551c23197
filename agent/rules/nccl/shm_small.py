"""gdr-shm-small."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE, no_gpus
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_SMALL_MIB = Threshold("gdr-shm-small.mib", 64, "size of /dev/shm that is too small for several GPUs, MiB")


@rule("gdr-shm-small", "warning", needs=("nccl",), references=("gdr-shm-small",), thresholds=(_SMALL_MIB,))
def gdr_shm_small(case: Case) -> Iterator[Answer]:
    """Shared memory is as small as Docker makes it.

    ## What it checks
    The size of `/dev/shm` where there are several GPUs.

    ## Why it matters
    NCCL and the data loaders of frameworks pass data between processes there. Docker gives a container 64 MiB, which
    eight ranks fill: jobs end with "No space left on device" or a bus error.

    ## How it is decided
    64 MiB or less (threshold `gdr-shm-small.mib`), and two GPUs or more.

    ## What keeps it silent
    - One GPU or none: not applicable.
    - No `size=` among the options of the mount: half of the memory, which is enough.
    - /dev/shm is not mounted as tmpfs, or the source does not hold the mounts: unknown.

    ## How to confirm
    `df -h /dev/shm`

    ## How to fix
    `--shm-size=16g` or `--ipc=host`; in Kubernetes a volume of medium `Memory` at /dev/shm.

    ## Source
    NCCL user guide, troubleshooting (shared memory); tmpfs(5); Docker run reference (--shm-size).
    """
    yield from (silent := list(no_gpus(case)))
    if silent:
        return
    size = case.software.shared_memory_mib
    if len(case.topology.gpus) < 2:
        yield NotApplicable("node", "one GPU")
    elif size is None:
        yield Unknown("node", case.probe_failure("nccl") or "the size of /dev/shm is not known")
    elif size > case.threshold(_SMALL_MIB):
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary=f"{size} MiB of shared memory (/dev/shm) for {len(case.topology.gpus)} GPUs",
            impact='100 % of jobs that fill it end with a bus error or "No space left on device".',
            remedy="Start the container with --shm-size=16g or --ipc=host.",
            evidence=(Evidence(what="size", value=f"{size} MiB", source="/proc/mounts"),),
            places=NODE,
        )
