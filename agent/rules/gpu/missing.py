"""gpu-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.devices import away, function_of, gone, is_nvidia, kernel_log
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_EXCLUDED = "NVreg_ExcludedGpus"


@rule(
    "gpu-missing",
    "critical",
    needs=("pci|lspci",),
    references=("PCIE-027",),
    essential=True,
    absorbs=(
        "nvlink-inactive",
        "nvlink-speed-low",
        "nvlink-asymmetric",
        "affinity-gpu-far-from-nic",
        "gpu-xid",
        "gpu-module-missing",
        "gpu-recovery-needed",
        "gpu-p2p-blocked",
    ),
)
def gpu_missing(case: Case) -> Iterator[Answer]:
    """A GPU is on the PCI bus, and the driver does not offer it.

    ## What it checks
    Every NVIDIA GPU of the PCI bus against what the driver lists (NVML, else nvidia-smi).

    ## Why it matters
    A job that asks for 8 GPUs finds 7 and does not start; one that asks for what is there loses 1/8 of its speed.

    ## How it is decided
    The NVIDIA driver is bound to the function and answers, and does not list it, or lists it and cannot open it (GPU is
    lost, no permission for its interrupt, not enough power).

    ## What keeps it silent
    - No driver is bound, another one is (nouveau), or the GPU waits for a virtual machine (vfio-pci): not applicable.
    - The GPU sleeps, or came or went during the scan: not applicable. It is gone: pcie-device-gone stands for this one.
    - The driver was asked to leave GPUs out (`NVreg_ExcludedGpus` on the kernel command line): unknown.
    - nvidia-smi ended at a GPU that is lost before it listed any: the others are unknown.
    - In a container that was given other GPUs than this one: not applicable.
    - In a virtual machine a GPU that is merely not listed is unknown: the hypervisor says what a guest may use.
    - Neither NVML nor nvidia-smi answered, or the PCI bus could not be read: unknown.
    - Accelerators of other vendors: their drivers are not asked yet.

    ## How to confirm
    `lspci -d 10de: -nnk` beside `nvidia-smi -L`; `cat /proc/driver/nvidia/gpus/*/information`; `dmesg | grep -i xid`.
    `nvidia-smi drain -q` tells of a GPU that somebody took out on purpose.

    ## How to fix
    Read the kernel log for the GPU's address. Reset it (`nvidia-smi -r -i`), reload the driver, or power cycle. If it
    stays lost, have it replaced.

    ## Source
    NVML `nvmlDeviceGetHandleByIndex` (GPU_IS_LOST); NVIDIA Xid catalogue, Xid 79 and 143.
    """
    for gpu in case.topology.gpus:
        yield _judge(case, gpu)


def _judge(case: Case, gpu: Gpu) -> Answer:
    subject, function = f"gpu:{gpu.id}", function_of(case, gpu)
    if not is_nvidia(case, gpu):
        return NotApplicable(subject, "not of NVIDIA: its driver is not asked")
    absent = away(function)
    if absent and not gone(function):
        return NotApplicable(subject, absent)
    if function is None and (unread := case.probe_failure("pci|lspci")):
        return Unknown(subject, f"whether others are on the bus: {unread}")
    if gpu.driver_state == "open":
        return Pass(subject)
    if gpu.driver_state == "error":
        return _fault(case, gpu, f"the driver lists it and cannot open it: {gpu.driver_error or 'no reason given'}")
    driver = function.driver if function else None
    if gpu.driver_state == "vfio" or driver == "vfio-pci":
        return NotApplicable(subject, "bound to vfio-pci: it waits for a virtual machine")
    if gpu.driver_state == "no_driver" or (driver is not None and driver != "nvidia"):
        return NotApplicable(subject, f"no NVIDIA driver is bound to it{f' but {driver}' if driver else ''}")
    unread = case.probe_failure("nvml|nvidia_smi")
    if case.node.container and not unread:
        return NotApplicable(subject, "a container sees only the GPUs that it was given")
    if gpu.driver_state != "not_open":
        return Unknown(subject, unread or gpu.driver_error or "the driver's list does not tell")
    if case.virtual_machine:
        return Unknown(subject, "not listed by the driver, in a virtual machine")
    if driver is None:
        return Unknown(subject, "not listed by the driver, and whether one is bound to it is not known")
    if _EXCLUDED in (case.node.cmdline or ""):
        return Unknown(subject, f"not listed, and the kernel command line sets {_EXCLUDED}")
    return _fault(case, gpu, "the driver is bound to it and does not list it")


def _fault(case: Case, gpu: Gpu, what: str) -> Fail:
    nvidia = [g for g in case.topology.gpus if is_nvidia(case, g)]
    usable = sum(g.driver_state in ("open", "unknown") for g in nvidia)
    most = "at most " if any(g.driver_state == "unknown" for g in nvidia) else ""
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"on the PCI bus, but {what}",
        impact=f"{most.capitalize()}{usable} of {len(nvidia)} GPUs can be used; jobs that ask for all do not start.",
        remedy="Read the kernel log for this address; reset the GPU, reload the driver or power cycle; or replace it.",
        evidence=(
            Evidence(what="on the PCI bus", value=gpu.pci or gpu.id, source="lspci -d 10de: -nnk"),
            Evidence(what="listed by the driver", value=f"{most}{usable} GPUs, not this one", source="nvidia-smi -L"),
            *kernel_log(case, gpu.pci or gpu.id),
        ),
        places=frozenset(place for place in (gpu.id, gpu.pci) if place),
    )
