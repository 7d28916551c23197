"""gpu-ats-off."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.nvlink.fabric import by_each, places
from agent.rules.nvlink.superchips import superchips
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule


@rule("gpu-ats-off", "warning", needs=("nvml|nvidia_smi",), references=("NVL-025",))
def gpu_ats_off(case: Case) -> Iterator[Answer]:
    """A GPU of a superchip does not share the CPU's page tables.

    ## What it checks
    The addressing mode of every GPU with NVLink-C2C (GH200, GB200, GB300).

    ## Why it matters
    With address translation services (ATS) GPU and CPU use one page table, and either reads the other's memory at
    450 GB/s. Without them memory is copied or migrated page by page, and programs that count on it fail.

    ## How it is decided
    The mode should be ATS; HMM or none is a warning.

    ## What keeps it silent
    - GPUs without C2C, virtual machines, no driver: not applicable.
    - Drivers before R580 do not tell the mode: unknown.

    ## How to confirm
    `nvidia-smi -q | grep "Addressing Mode"`

    ## How to fix
    Turn the SMMU on in firmware, take `iommu.passthrough=1` and `iommu=off` off the kernel command line, and use a
    kernel with SVA support; reboot.

    ## Source
    nvml.h (nvmlDeviceGetAddressingMode); NVIDIA Grace performance tuning guide.
    """
    yield from by_each(superchips(case), lambda gpu: _judge(case, gpu))


def _judge(case: Case, gpu: Gpu) -> Answer:
    subject, mode = f"gpu:{gpu.id}", gpu.addressing_mode
    if mode is None:
        return Unknown(subject, "the driver does not tell its addressing mode (R580 and later do)")
    if mode == "ats":
        return Pass(subject)
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"addressing mode {mode}, where ATS is due",
        impact="CPU and GPU share no page table: memory is copied or migrated instead of read at 450 GB/s.",
        remedy="Turn the SMMU on in firmware and on the kernel command line; use a kernel with SVA; reboot.",
        evidence=(Evidence(what="addressing mode", value=mode, source="nvidia-smi -q"),),
        cause=mode,
        places=places(case, gpu),
    )
