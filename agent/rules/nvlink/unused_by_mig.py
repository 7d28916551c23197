"""nvlink-unused-by-mig."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import is_nvidia
from agent.rules.nvlink.fabric import places
from agent.rules.nvlink.tally import Form, form_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, rule


@rule("nvlink-unused-by-mig", "info", needs=("nvml|nvidia_smi",), references=("NVL-022",))
def nvlink_unused_by_mig(case: Case) -> Iterator[Answer]:
    """MIG is on, so that NVLink between GPUs is not used.

    ## What it checks
    Whether MIG is on for GPUs that have NVLinks to others of this node.

    ## Why it matters
    MIG instances reach no other GPU: 450 GB/s of NVLink of each H100 lie idle, and a job of several GPUs cannot use
    them.

    ## How it is decided
    MIG is on, the GPU is a module of a baseboard or a superchip, and there is another GPU.

    ## What keeps it silent
    - MIG is off: it passes. Cards, one GPU alone: not applicable.
    - NVLinks of such GPUs are not judged at all: the driver does not answer about them.

    ## How to confirm
    `nvidia-smi --query-gpu=index,mig.mode.current --format=csv`

    ## How to fix
    Nothing, where MIG is meant; else `nvidia-smi -mig 0` with all jobs gone.

    ## Source
    NVIDIA MIG user guide (no GPU-to-GPU P2P); nvidia-smi ("Nvlink queries are not supported for Devices in MIG mode").
    """
    linked = [
        gpu
        for gpu in case.topology.gpus
        if is_nvidia(case, gpu) and form_of(case, gpu) in (Form.BOARD, Form.SUPERCHIP) and gpu.driver_state == "open"
    ]
    if len(linked) < 2:
        yield NotApplicable("node", "fewer than two GPUs that are wired by NVLink")
        return
    split = [gpu for gpu in linked if gpu.mig and gpu.mig.current]
    if not split:
        yield Pass("node")
        return
    yield Fail(
        subject="node",
        label="node",
        summary=f"MIG is on: NVLink of {named([gpu.label for gpu in split])} is not used",
        impact="A job cannot join these GPUs: 450 GB/s of NVLink on each H100 lie idle.",
        remedy="Nothing, where MIG is meant; else nvidia-smi -mig 0 with all jobs gone.",
        evidence=(Evidence(what="MIG on", value=named([gpu.label for gpu in split]), source="nvidia-smi -q"),),
        places=frozenset().union(*(places(case, gpu) for gpu in split)),
    )
