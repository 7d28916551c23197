"""nvlink-disabled."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.devices import no_gpu
from agent.rules.nvlink.fabric import PLACE, by_each, places
from agent.rules.nvlink.tally import Form, form_of, not_offered
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_PARAMETER = "NvLinkDisable"


@rule(
    "nvlink-disabled",
    "error",
    needs=("nvml|nvidia_smi",),
    absorbs=("nvlink-claimed", "nvls-unavailable", "profile-differs"),
    references=("SEEN-NVLINK",),
)
def nvlink_disabled(case: Case) -> Iterator[Answer]:
    """The driver offers no NVLink at all of GPUs that are wired by it.

    ## What it checks
    Nodes with two or more SXM modules: whether the driver knows any NVLink of each, up or down; and its parameter
    NvLinkDisable.

    ## Why it matters
    The GPUs talk over PCIe: 63 GB/s at best instead of 450 on an H100, and no job ends for it. `NVreg_NvLinkDisable=1`
    is what single rented GPUs are given so that CUDA does not wait for a fabric manager; in an image for whole boards,
    or left in `/etc/modprobe.d` after a fabric manager was mended, it takes away all of NVLink.

    ## How it is decided
    The driver answers that NVLink is not supported on an SXM module.

    ## What keeps it silent
    - Cards, superchips, a module that is alone on its node, MIG, confidential computing, no driver: not applicable.
    - NVLinks that are there, though down: passes; nvlink-inactive judges them.
    - A virtual machine: its hypervisor may give it no NVLink, and then the parameter is right: unknown.
    - The driver does not tell: unknown.

    ## How to confirm
    `nvidia-smi nvlink -s`; `grep NvLinkDisable /proc/driver/nvidia/params`

    ## How to fix
    Take `NVreg_NvLinkDisable=1` out of `/etc/modprobe.d`, make the initramfs anew, and reboot; the fabric manager must
    run. Where the parameter is 0, look for NVRM messages of NVLink in the kernel's log.

    ## Source
    NVIDIA open kernel modules, `nv-reg.h` (NvLinkDisable); DigitalOcean, "NVLink" (disabled so that CUDA runs). What
    NVML answers then was seen on an H100 SXM with driver 580.159.04: NOT_SUPPORTED for every link, fabric state 0.
    """
    yield from no_gpu(case)
    found = [not_offered(case, gpu) or gpu for gpu in case.topology.gpus]
    modules = sum(isinstance(each, Gpu) and form_of(case, each) is Form.BOARD for each in found)
    yield from by_each(found, lambda gpu: _judge(case, gpu, modules))


def _judge(case: Case, gpu: Gpu, modules: int) -> Answer:
    subject = f"gpu:{gpu.id}"
    if form_of(case, gpu) is not Form.BOARD or modules < 2:
        return NotApplicable(subject, "no other GPU of a baseboard that it could be wired to")
    if gpu.mig and gpu.mig.current:
        return NotApplicable(subject, "MIG is on: NVLink is not used")
    if case.software.driver.confidential_computing:
        return NotApplicable(subject, "confidential computing: the driver closes NVLink between GPUs")
    if not gpu.links_known:
        return Unknown(subject, gpu.links_reason or "NVLinks not known")
    if gpu.links:
        return Pass(subject)
    if case.virtual_machine:
        return Unknown(subject, "no NVLink is offered; a hypervisor may have left it out")
    told = case.software.driver.parameters.get(_PARAMETER)
    asked = told not in (None, "0")
    return Fail(
        subject=subject,
        label=gpu.label,
        summary="NVLink is switched off by the driver's NvLinkDisable" if asked else "the driver offers no NVLink",
        impact="GPUs talk PCIe: 63 GB/s at best instead of 450 on an H100.",
        remedy="Take NVreg_NvLinkDisable out of /etc/modprobe.d, make the initramfs anew, and reboot."
        if asked
        else "Look for NVRM messages of NVLink in the kernel's log; reset the GPUs with all jobs gone.",
        evidence=(
            Evidence(what="NVLink", value=gpu.links_reason or "none", source="nvidia-smi nvlink -s"),
            Evidence(what=_PARAMETER, value=told or "not known", source="/proc/driver/nvidia/params"),
        ),
        cause="parameter" if asked else "none",
        places=places(case, gpu) | {PLACE},
    )
