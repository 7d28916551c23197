"""gpu-recovery-needed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.devices import away, function_of, is_nvidia, kernel_log, no_gpu
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

# What the driver asks for, how grave that is, and what a person does
_ACTIONS = {
    "reset": ("error", "Drain it and reset it: nvidia-smi -r -i"),
    "bus_reset": ("error", "Drain it and reset its bus, or power cycle."),
    "drain_and_reset": ("error", "Let its jobs end, start no new ones, then reset it: nvidia-smi -r -i"),
    "drain_p2p": ("warning", "Let jobs that use it with other GPUs end, and start no new ones; then reset it."),
    "recover_imex_domain": ("error", "Recover the IMEX domain of the rack: restart nvidia-imex on its nodes."),
    "reboot": ("critical", "Drain the node and reboot it."),
    "system_reboot": ("critical", "Drain the node and reboot it."),
}


@rule("gpu-recovery-needed", "error", needs=("nvml|nvidia_smi",), references=("CONTRACT-NVML230",))
def gpu_recovery_needed(case: Case) -> Iterator[Answer]:
    """The driver asks for a GPU to be reset or drained, or for the node to be rebooted.

    ## What it checks
    The recovery action that the driver names for every NVIDIA GPU.

    ## Why it matters
    The driver names one only after an error that it cannot mend: new jobs on the GPU fail, and one of 8 GPUs that
    fails ends a job of all. Waiting does not help.

    ## How it is decided
    Reboot: critical. Reset, bus reset, drain and reset, recover the IMEX domain: error. Drain P2P: warning. A word that
    a newer driver made up is a warning with that word.

    ## What keeps it silent
    - None is needed: it passes.
    - Drivers before R570 do not tell: unknown. The GPU sleeps, or no NVIDIA driver is bound: not applicable.
    - The GPU is gone or not offered: pcie-device-gone and gpu-missing stand for this one.

    ## How to confirm
    `nvidia-smi -q | grep "GPU Recovery Action"`

    ## How to fix
    Do what the driver asks for; look for the Xid in the kernel log. If it comes again, replace the GPU.

    ## Source
    nvml.h (NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, nvmlDeviceGpuRecoveryAction_t).
    """
    yield from no_gpu(case)
    for gpu in case.topology.gpus:
        yield _judge(case, gpu)


def _judge(case: Case, gpu: Gpu) -> Answer:
    subject, absent = f"gpu:{gpu.id}", away(function_of(case, gpu))
    if not is_nvidia(case, gpu):
        return NotApplicable(subject, "not of NVIDIA")
    if absent:
        return NotApplicable(subject, absent)
    if gpu.driver_state in ("no_driver", "vfio", "not_open"):
        return NotApplicable(subject, "the driver does not offer it")
    action = gpu.recovery_action
    if action is None:
        why = case.probe_failure("nvml|nvidia_smi") or gpu.driver_error
        return Unknown(subject, why or "the driver names no recovery action (R570 and later do)")
    if action == "none":
        return Pass(subject)
    severity, remedy = _ACTIONS.get(action, ("warning", "Do what the driver asks for."))
    word = action.replace("_", " ")
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"the driver asks for: {word}",
        impact="New jobs on it fail, and jobs of all 8 GPUs of a node with them, until that is done."
        if severity != "warning"
        else "Jobs that use it together with other GPUs may fail; others go on.",
        remedy=remedy if not remedy.endswith("-i") else f"{remedy} {gpu.index if gpu.index is not None else 'N'}",
        evidence=(
            Evidence(what="recovery action", value=word, source="nvidia-smi -q"),
            *kernel_log(case, gpu.pci or gpu.id),
        ),
        severity=severity,
        cause=action,
        places=frozenset({gpu.id, gpu.pci or gpu.id}),
    )
