"""nvlink-bandwidth-mode-reduced."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.devices import no_gpu
from agent.rules.nvlink.fabric import FABRIC_ARCHITECTURES, places, together
from agent.rules.nvlink.tally import Form, form_of, not_offered
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("nvlink-bandwidth-mode-reduced", "warning", needs=("nvml|nvidia_smi",), references=("NVL-018",))
def nvlink_bandwidth_mode_reduced(case: Case) -> Iterator[Answer]:
    """Somebody switched NVLink to a reduced bandwidth.

    ## What it checks
    The NVLink bandwidth mode of the system, and of every GPU that has one of its own (Blackwell and later).

    ## Why it matters
    The mode saves power and switches links off: HALF leaves an H100 225 of its 450 GB/s, MIN one link of 18, OFF none.
    It outlives jobs, and no link counts as faulty.

    ## How it is decided
    Any mode but full is a warning.

    ## What keeps it silent
    - GPUs before Hopper and cards have no such mode: not applicable. No driver is bound to the GPU, no NVLink is
      offered, MIG: likewise.
    - The mode of a Hopper system is told to root only: unknown.

    ## How to confirm
    `nvidia-smi nvlink -gBwMode`

    ## How to fix
    `nvidia-smi nvlink -sBwMode FULL` with all jobs gone, unless the mode is meant.

    ## Source
    nvml.h (nvmlSystemGetNvlinkBwMode, nvmlDeviceGetNvlinkBwMode).
    """
    yield from no_gpu(case)
    mode = case.topology.bandwidth_mode
    if mode not in (None, "full"):
        yield _fault("node", "node", mode or "", frozenset(gpu.id for gpu in case.topology.gpus))
        return
    judged, faults = 0, []
    for gpu in case.topology.gpus:
        answer = _judge(case, gpu)
        judged += not isinstance(answer, NotApplicable)
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    yield from together(faults, judged)


def _judge(case: Case, gpu: Gpu) -> Answer:
    subject = f"gpu:{gpu.id}"
    if answer := not_offered(case, gpu):
        return answer
    if gpu.nvlink_bandwidth_mode not in (None, "full"):
        return _fault(subject, gpu.label, gpu.nvlink_bandwidth_mode or "", places(case, gpu))
    if "full" in (gpu.nvlink_bandwidth_mode, case.topology.bandwidth_mode):
        return Pass(subject)
    if gpu.architecture not in (*FABRIC_ARCHITECTURES, None) or form_of(case, gpu) is Form.CARD:
        return NotApplicable(subject, "GPUs before Hopper, and cards, have no NVLink bandwidth mode")
    if gpu.mig and gpu.mig.current:
        return NotApplicable(subject, "MIG is on: NVLink is not used")
    if gpu.links_known and not gpu.links:
        return NotApplicable(subject, "the driver offers no NVLink: see nvlink-disabled")
    return Unknown(subject, "the NVLink bandwidth mode is not told (root is needed, or a newer driver)")


def _fault(subject: str, label: str, mode: str, at: frozenset[str]) -> Fail:
    return Fail(
        subject=subject,
        label=label,
        summary=f"NVLink bandwidth mode {mode}",
        impact="NVLinks are switched off on purpose: HALF leaves an H100 225 of 450 GB/s, MIN and OFF less.",
        remedy="With all jobs gone: nvidia-smi nvlink -sBwMode FULL, unless the mode is meant.",
        evidence=(Evidence(what="bandwidth mode", value=mode, source="nvidia-smi nvlink -gBwMode"),),
        places=at,
    )
