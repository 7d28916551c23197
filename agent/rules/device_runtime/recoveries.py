"""pcie-recoveries."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.device_runtime.links import gpus
from agent.rules.rule import Answer, NotApplicable, Unknown, rule
from agent.rules.runtime import MINUTE, Counters, Limit, Place, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTER = "l0_to_recovery"
_PER_MINUTE = Threshold("pcie-recoveries.per_minute", 6, "times a minute that a GPU's PCIe link recovers")
_WORDS = Words(
    "recoveries of the PCIe link",
    "Each stops the link for microseconds; more than 6 a minute at constant clocks say that its signal is poor.",
    "Look for correctable errors on both ends; reseat the GPU or its riser; renew firmware.",
    "medium",
)


@rule(
    "pcie-recoveries",
    "info",
    needs=("nvml|nvidia_smi",),
    references=("PCIE-021",),
    thresholds=(_PER_MINUTE,),
)
def pcie_recoveries(case: Case) -> Iterator[Answer]:
    """The PCIe link of a busy GPU recovers its signal again and again.

    ## What it checks
    How often the PCIe link of every GPU went from work (L0) to recovery, as its driver counts.

    ## Why it matters
    Recovery stops the link for microseconds, and follows errors of the signal. At constant clocks a sound link has 0.

    ## How it is decided
    Six a minute and more, while the GPU is in P0 and its link at its best generation: info.

    ## What keeps it silent
    - A GPU that is not in P0, or whose link is below its best generation: changing the speed goes through recovery,
      too; not applicable.
    - Replays or correctable errors over their limits are the cause, and stand for it.
    - Drivers that do not tell it: not applicable. No earlier sample, or counters that were reset: unknown.

    ## How to confirm
    NVML field 169 (`NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER`), by `dcgmi` or pynvml, twice

    ## How to fix
    Look for correctable errors on both ends, reseat the GPU or its riser, renew firmware.

    ## Source
    nvml.h (field 169); the limit is judgement.
    """
    for each in gpus(case):
        yield _judge(case, *each) if isinstance(each[0], Gpu) else each


def _judge(case: Case, gpu: Gpu, place: Place, counters: Counters) -> Answer:
    if _COUNTER not in counters.now:
        return NotApplicable(place.subject, "its driver does not tell recoveries")
    if gpu.pstate is None or gpu.pcie is None or gpu.pcie.generation is None or gpu.pcie.max_generation is None:
        return Unknown(place.subject, "whether its link keeps its speed is not known")
    if gpu.pstate != "P0" or gpu.pcie.generation < gpu.pcie.max_generation:
        return NotApplicable(place.subject, "it saves power: changing the link's speed goes through recovery")
    return judged(case, place, moved(case, counters, [_COUNTER]), (Limit(_PER_MINUTE, "info", MINUTE),), _WORDS)
