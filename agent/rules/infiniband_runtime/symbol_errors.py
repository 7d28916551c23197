"""ib-symbol-errors."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port, went_down
from agent.rules.rule import Answer, Fail, rule
from agent.rules.runtime import HOUR, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_PER_HOUR = Threshold("ib-symbol-errors.per_hour", 10, "symbol errors an hour of one port: a warning")
_RATIO = Threshold("ib-symbol-errors.error_ratio", 1e-12, "symbol errors for each bit of the link's rate: an error")


@rule(
    "ib-symbol-errors",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("ib-symbol-errors",),
    absorbs=("ib-rcv-errors",),
    thresholds=(_PER_HOUR, _RATIO),
)
def ib_symbol_errors(case: Case) -> Iterator[Answer]:
    """An InfiniBand link has bit errors that its correction does not mend.

    ## What it checks
    How the symbol errors of every InfiniBand port of a rail or storage NIC moved, against the bits that the link
    carries in that time.

    ## Why it matters
    What is not corrected is sent again or lost. The specification allows one error in 10^12 bits, cables are tested to
    one in 10^15: at 400 Gb/s that is 1440 and 1.4 an hour.

    ## How it is decided
    Ten an hour: warning. One in 10^12 bits of the link's rate: error. Storage NICs one step lower. In a shorter window
    ten are needed all the same.

    ## What keeps it silent
    - The link went down in the window: it comes up with errors; not applicable (see ib-link-flap).
    - The counter has 16 bits and sticks at 65535: unknown; so are ports without an earlier sample, and windows that
      begin in the first quarter of an hour after boot.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/counters/symbol_error`, twice; `mlxlink -d DEVICE -c` shows bit error
    rates

    ## How to fix
    Clean or replace the cable or transceiver, then try another port of the switch.

    ## Source
    InfiniBand specification (10^-12), NVIDIA DGX SuperPOD cabling guide (10^-15); infiniband-diags (10).
    """
    yield from by_port(case, lambda each: _judge(case, each), "symbol errors")


def _judge(case: Case, each: Watched) -> Answer:
    down = went_down(case, each)
    if down:
        return down
    words = Words(
        "symbol errors",
        "Each is sent again or lost; a link that errs so is going bad.",
        "Clean or replace cable or transceiver, then the switch port.",
    )
    count = moved(case, each.counters, ["symbol_error"])
    answer = judged(case, each.place, count, (Limit(_PER_HOUR, "warning", HOUR),), words)
    rate, seconds = each.ib.port.rate_gbit_s, (case.window.seconds if case.window else None)
    total = getattr(count, "total", 0)
    if not isinstance(answer, Fail) or not rate or not seconds:
        return answer
    ratio = total / (rate * 1e9 * seconds)
    return answer._replace(
        summary=f"{answer.summary}: {ratio:.0e} of its bits",
        severity=each.place.severity("error" if ratio >= case.threshold(_RATIO) else "warning"),
    )
