"""pcie-replays."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.device_runtime.links import budget, gpus
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import MINUTE, Counters, Moved, Place, moved, rate, span
from agent.rules.threshold import Threshold

_TIMES = Threshold("pcie-replays.times_budget", 1, "times the replays a minute that the link's bit error rate allows")
_GRAVE = Threshold("pcie-replays.error_times_budget", 10, "the same: an error")
_COUNTERS = ("replays", "replay_rollovers")


@rule(
    "pcie-replays",
    "warning",
    needs=("nvml|nvidia_smi",),
    references=("PCIE-020",),
    absorbs=("pcie-recoveries",),
    thresholds=(_TIMES, _GRAVE),
)
def pcie_replays(case: Case) -> Iterator[Answer]:
    """A GPU sends its PCIe packets again more often than a sound link needs.

    ## What it checks
    How the replays of the PCIe link of every GPU moved, as its driver counts them.

    ## Why it matters
    A packet that was not acknowledged is sent again. More than 31 a minute on a Gen 5 x16 link are a bit error rate
    above 10^-12: the link is going bad, and may come up with half its lanes next time.

    ## How it is decided
    More a minute than a bit error rate of 10^-12 gives at the link's best speed and width (31 for Gen 5 x16, 16 for
    Gen 4, 8 for Gen 3): warning. Ten times that: error.

    ## What keeps it silent
    - AER on either end counts the errors themselves: pcie-errors-correctable is the cause, and stands for it.
    - Drivers that do not tell replays, GPUs that are gone or asleep: not applicable.
    - No earlier sample, or counters that a new driver or a reset began anew: unknown.

    ## How to confirm
    `nvidia-smi --query-gpu=pcie.link.gen.current --format=csv`, and "Replays Since Reset" of `nvidia-smi -q`, twice

    ## How to fix
    Reseat the GPU or its riser, try another slot, renew firmware and BIOS; then replace it.

    ## Source
    DCGM `PcieMain.cpp` (budget); NVML `nvmlDeviceGetPcieReplayCounter`, fields 94 and 95.
    """
    for each in gpus(case):
        yield _judge(case, *each) if isinstance(each[0], Gpu) else each


def _judge(case: Case, gpu: Gpu, place: Place, counters: Counters) -> Answer:
    count = moved(case, counters, _COUNTERS)
    if not isinstance(count, Moved):
        return NotApplicable(place.subject, "its driver does not tell replays")
    function = case.functions.get(gpu.pci or "")
    allowed = budget(function.link if function else None)
    times = rate(case, count.total, MINUTE) / allowed
    if times <= case.threshold(_TIMES):
        return Unknown(place.subject, count.gap) if count.gap else Pass(place.subject)
    grave = times > case.threshold(_GRAVE)
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"{count.total} PCIe replays in {span(case)}, "
        f"limit {allowed * case.threshold(_GRAVE if grave else _TIMES):g}/min",
        impact=f"{times:.0f} times the errors of a link at 10^-12: it may come up with half its lanes next time.",
        remedy="Reseat the GPU or its riser, try another slot, renew firmware and BIOS; then replace it.",
        evidence=count.evidence,
        severity="error" if grave else "warning",
        places=place.places,
    )
