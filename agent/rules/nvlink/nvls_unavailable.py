"""nvls-unavailable."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nvlink.fabric import FABRIC_ARCHITECTURES, PLACE, places, unmanaged
from agent.rules.nvlink.tally import Form, form_of, not_offered
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("nvls-unavailable", "warning", needs=("pci|lspci", "nvml|nvidia_smi"), references=("NVL-021",))
def nvls_unavailable(case: Case) -> Iterator[Answer]:
    """The NVSwitches cannot sum for NCCL: GPUs on them are registered with no fabric.

    ## What it checks
    On hosts with NVSwitches of Hopper and later: whether every GPU completed its registration with the fabric, which
    multicast (NVLS) needs.

    ## Why it matters
    With NVLS the switches add up: an all-reduce of 8 H100 runs at 480 GB/s bus bandwidth instead of 360. NCCL falls
    back to rings and trees without a word.

    ## How it is decided
    A GPU whose fabric state is "not supported", or anything but completed with success, cannot use multicast.

    ## What keeps it silent
    - No NVSwitch of this host, GPUs before Hopper, cards, MIG, a virtual machine: not applicable.
    - Why registration failed is told by fabric-manager-down and fabric-incomplete: they stand for this one.
    - The driver does not tell: unknown.

    ## How to confirm
    `nvidia-smi -q | grep -A4 Fabric`; a job with `NCCL_DEBUG=INFO` says whether NVLS is used

    ## How to fix
    See fabric-manager-down and fabric-incomplete; where the state is "not supported", update driver and VBIOS.

    ## Source
    NCCL user guide (NCCL_NVLS_ENABLE); nvml.h (nvmlGpuFabricState).
    """
    yield _judge(case)


def _judge(case: Case) -> Answer:
    if case.virtual_machine:
        return NotApplicable("node", "a virtual machine: its hypervisor decides what of the fabric a guest has")
    if answer := unmanaged(case):
        return answer
    gpus = [
        gpu
        for gpu in case.topology.gpus
        if not_offered(case, gpu) is None
        and gpu.architecture in FABRIC_ARCHITECTURES
        and form_of(case, gpu) is Form.BOARD
        and not (gpu.mig and gpu.mig.current)
    ]
    if len(gpus) < 2:
        return NotApplicable("node", "fewer than two GPUs that could sum in switches")
    without = [gpu for gpu in gpus if gpu.fabric and (gpu.fabric.state, gpu.fabric.status) != ("completed", "success")]
    sure = [
        gpu for gpu in without if gpu.fabric and gpu.fabric.state and not _unsaid(gpu.fabric.state, gpu.fabric.status)
    ]
    if not sure:
        known = all(gpu.fabric and gpu.fabric.status for gpu in gpus)
        return Pass("node") if known else Unknown("node", "the driver does not tell the fabric state of every GPU")
    if case.settling:
        return Unknown("node", case.settling)
    return Fail(
        subject="node",
        label="node",
        summary=f"no NVLink multicast (NVLS): {named([gpu.label for gpu in sure])} not registered with the fabric",
        impact="NCCL all-reduce falls back to rings: about 360 instead of 480 GB/s bus bandwidth on 8 H100.",
        remedy="See fabric-manager-down and fabric-incomplete; where it is not supported, update driver and VBIOS.",
        evidence=tuple(
            Evidence(what=f"fabric state of {gpu.label}", value=gpu.fabric.state or "", source="nvidia-smi -q")
            for gpu in sure
            if gpu.fabric
        ),
        places=frozenset({PLACE}).union(*(places(case, gpu) for gpu in sure)),
    )


def _unsaid(state: str, status: str | None) -> bool:
    return state == "completed" and status is None
