"""gdr-gds-not-ready."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE
from agent.rules.nccl.users import evidence, mapped, unused
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_P2PDMA = (6, 2)  # kernels in which NVMe can use P2PDMA from user space, in place of nvidia-fs


@rule("gdr-gds-not-ready", "info", needs=("nccl", "modules|lsmod"), references=("gdr-gds-not-ready",))
def gdr_gds_not_ready(case: Case) -> Iterator[Answer]:
    """Jobs use GPUDirect Storage, and it can only run in compatibility mode.

    ## What it checks
    Running jobs that have `libcufile` mapped; and the kernel module `nvidia_fs`.

    ## Why it matters
    In compatibility mode everything that is read goes through host memory: one copy more, and about 50 % of what the
    drives give where the CPU's memory is the limit.

    ## How it is decided
    A job uses cuFile, and `nvidia_fs` is not loaded.

    ## What keeps it silent
    - No job has `libcufile` mapped: not applicable, whatever is installed.
    - Only as many processes as have PyTorch mapped, too: it is linked with `libcufile`, used or not: unknown.
    - Kernel 6.2 or later with open kernel modules of the driver, where P2PDMA may stand in for `nvidia_fs`: unknown.
    - Whether such a job runs, or the modules, could not be seen: unknown.

    ## How to confirm
    `gdscheck -p`; `lsmod | grep nvidia_fs`

    ## How to fix
    `modprobe nvidia-fs`, and name it in `/etc/modules-load.d/`.

    ## Source
    NVIDIA GPUDirect Storage, installation and best practices guides; GPU Operator, GDS.
    """
    users = mapped(case, "libcufile")
    why = case.probe_failure("modules|lsmod")
    if not case.topology.gpus or not users:
        yield from unused(case, "GPUDirect Storage")
    elif why:
        yield Unknown("node", why)
    elif any(module.name == "nvidia_fs" for module in case.software.modules):
        yield Pass("node")
    elif sum(row.used_by for row in users) <= sum(row.used_by for row in mapped(case, "libtorch_cuda")):
        yield Unknown("node", "PyTorch has libcufile mapped, whether it is used or not")
    elif case.software.driver.open is not False and _kernel(case) >= _P2PDMA:
        yield Unknown("node", "nvidia_fs is not loaded; P2PDMA of this kernel may stand in for it")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="jobs use GPUDirect Storage, and nvidia_fs is not loaded",
            impact="reads go through host memory: about 50 % where the CPU's memory is the limit.",
            remedy="modprobe nvidia-fs, and name it in /etc/modules-load.d/.",
            evidence=(*evidence(users), Evidence(what="nvidia_fs", value="not loaded", source="/proc/modules")),
            places=NODE,
        )


def _kernel(case: Case) -> tuple[int, int]:
    """Major and minor; one that is not known may be new."""
    found = re.match(r"(\d{1,3})\.(\d{1,3})", case.node.kernel or "")
    return (int(found[1]), int(found[2])) if found else _P2PDMA
