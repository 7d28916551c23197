"""c2c-errors."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.device_runtime.links import gpus
from agent.rules.rule import Answer, NotApplicable, rule
from agent.rules.runtime import HOUR, MINUTE, Counters, Limit, Place, Words, judged, moved
from agent.rules.threshold import Threshold

_PER_HOUR = Threshold("c2c-errors.per_hour", 10, "errors and replays an hour of one GPU's C2C links")
_PER_MINUTE = Threshold("c2c-errors.error_per_minute", 10, "the same a minute: an error")
_COUNTERS = ("c2c_interrupts", "c2c_replays", "c2c_replays_back_to_back")
_WORDS = Words(
    "errors and replays of NVLink-C2C",
    "The way between CPU and GPU (450 GB/s in each direction on a GH200) loses time to what is sent again.",
    "Look for Xid 121 in the kernel log; reset the GPU; power cycle the tray; then its maker.",
)


@rule(
    "c2c-errors",
    "warning",
    needs=("nvml|nvidia_smi",),
    references=("NVL-024",),
    thresholds=(_PER_HOUR, _PER_MINUTE),
)
def c2c_errors(case: Case) -> Iterator[Answer]:
    """The NVLink-C2C between a Grace CPU and its GPU has errors.

    ## What it checks
    How the error and replay counters of NVLink-C2C moved on every GPU of a superchip.

    ## Why it matters
    All that CPU and NICs bring to the GPU goes this way, 450 GB/s in each direction on a GH200. A sound one replays
    nothing for days.

    ## How it is decided
    Ten an hour: warning. Ten a minute: error.

    ## What keeps it silent
    - GPUs without C2C, drivers that do not tell it, GPUs that are gone or asleep: not applicable.
    - No earlier sample, or counters that a new driver or a reset began anew: unknown.

    ## How to confirm
    NVML fields 231 to 233, by `dcgmi` or pynvml, twice; `dmesg | grep 'Xid.*: 121'`

    ## How to fix
    Reset the GPU, power cycle the tray; where it goes on, the module goes to its maker.

    ## Source
    nvml.h (fields 231, 232 and 233); NVIDIA Xid catalogue (121); the limits are judgement.
    """
    for each in gpus(case):
        yield _judge(case, *each) if isinstance(each[0], Gpu) else each


def _judge(case: Case, gpu: Gpu, place: Place, counters: Counters) -> Answer:
    del gpu
    if not any(name in counters.now for name in _COUNTERS):
        return NotApplicable(place.subject, "no C2C, or its driver does not tell its errors")
    limits = (Limit(_PER_MINUTE, "error", MINUTE), Limit(_PER_HOUR, "warning", HOUR))
    return judged(case, place, moved(case, counters, _COUNTERS), limits, _WORDS)
