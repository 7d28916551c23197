"""gdr-gdrcopy-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE
from agent.rules.nccl.settings import effective, number
from agent.rules.nccl.users import evidence, mapped, unused
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule


@rule("gdr-gdrcopy-missing", "info", needs=("nccl", "limits"), references=("gdr-gdrcopy-missing",))
def gdr_gdrcopy_missing(case: Case) -> Iterator[Answer]:
    """Jobs use GDRCopy, and its driver is not there.

    ## What it checks
    Running jobs that have `libgdrapi` or a network transport of NVSHMEM (`nvshmem_transport_*`) mapped, or set
    `NCCL_GDRCOPY_ENABLE=1`; and `/dev/gdrdrv`.

    ## Why it matters
    Without it small messages between CPU and GPU go by a copy engine, at 5 to 10 microseconds instead of 1, and
    NVSHMEM has no atomics over the network.

    ## How it is decided
    One of these is in use, and /dev has no `gdrdrv`.

    ## What keeps it silent
    - Jobs of NCCL alone: it does not use GDRCopy unless told to. Not applicable.
    - `libnvshmem_host` alone: PyTorch is linked with it, and has it mapped in every process. Not applicable.
    - Whether such a job runs could not be seen, or /dev could not be listed: unknown.

    ## How to confirm
    `ls -l /dev/gdrdrv`; `lsmod | grep gdrdrv`

    ## How to fix
    Install the gdrdrv kernel module of the GDRCopy package, and load it at boot.

    ## Source
    NVSHMEM installation guide; NCCL `src/init.cc` (NCCL_GDRCOPY_ENABLE); GDRCopy README. What PyTorch has mapped was
    seen with 2.11.
    """
    users = mapped(case, "libgdrapi", "nvshmem_transport")
    asked = [each for each in effective(case, "NCCL_GDRCOPY_ENABLE") if number(each.value)]
    nodes = case.software.device_nodes
    if not case.topology.gpus or not (users or asked):
        yield from unused(case, "GDRCopy")
    elif nodes is None:
        yield Unknown("node", case.probe_failure("limits") or "/dev is not to be seen here")
    elif "gdrdrv" in nodes:
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="jobs use GDRCopy, and /dev/gdrdrv is not there",
            impact="small messages take 5 to 10 microseconds instead of 1; NVSHMEM has no atomics over the network.",
            remedy="Install and load gdrdrv, the kernel module of GDRCopy.",
            evidence=(
                *evidence(users),
                *(each.evidence("NCCL_GDRCOPY_ENABLE") for each in asked[:4]),
                Evidence(what="gdrdrv", value="not there", source="ls /dev"),
            ),
            places=NODE,
        )
