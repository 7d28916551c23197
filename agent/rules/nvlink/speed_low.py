"""nvlink-speed-low."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.rules.case import Case
from agent.rules.counting import ranges, share_lost
from agent.rules.nvlink.tally import Tally, tallies
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_TOLERANCE = 0.97

# GB/s of one link in one direction as `nvidia-smi nvlink -s` prints it, by NVLink generation. Generation 3: A100 is
# printed as 25 or 25.781, GA102 (RTX 3090, A6000) as 14.062
_RATES = {2: (25.0, 25.781), 3: (25.0, 25.781, 14.062), 4: (26.562,), 5: (53.125,)}
_GA102 = (14.062,)
_GENERATION = {"Volta": 2, "Turing": 2, "Ampere": 3, "Hopper": 4, "Blackwell": 5}


@rule("nvlink-speed-low", "error", needs=("nvml|nvidia_smi",), references=("NVL-004",))
def nvlink_speed_low(case: Case) -> Iterator[Answer]:
    """Active NVLinks run slower than their generation.

    ## What it checks
    The signalling rate of every active NVLink.

    ## Why it matters
    An NVLink 4 link should signal at 26.562 GB/s in each direction; 18 of them are 478, 450 of it payload. A link
    that trained lower slows every collective that crosses it.

    ## How it is decided
    The rate is compared with that of the link's generation: 25 or 25.781 (V100, A100), 14.062 (GA102), 26.562
    (H100, H200), 53.125 (B200, GB200). More than 3 % below is a fault. Where the generation is not known, the links of
    one GPU are compared with each other.

    ## What keeps it silent
    - A sleeping link, a link that is not active: not judged here.
    - MIG is on, the NVLink bandwidth mode is not full, no driver is bound, the GPU sleeps or is gone: not applicable.
    - A rate above its generation's is no loss: it passes.
    - Drivers before R520 do not tell the rate of a link: unknown.

    ## How to confirm
    `nvidia-smi nvlink -s`

    ## How to fix
    Reset the GPU (`nvidia-smi -r`) and, where there is one, restart the fabric manager with all jobs gone. A link that
    trains low again: GPU module, socket or NVSwitch.

    ## Source
    NVML field 164 (NVLINK_GET_SPEED) and its history; captures of A100, H100, H200, B200 and GA102 pairs.
    """
    for each in tallies(case):
        yield _judge(each) if isinstance(each, Tally) else each


def _judge(tally: Tally) -> Answer:
    live = [link for link in tally.active if link.state == "active"]
    if not live:
        return NotApplicable(tally.subject, "no NVLink is awake and active")
    rates = {link.link: link.signal_gbyte_s for link in live if link.signal_gbyte_s}
    fastest = max(rates.values(), default=0.0)
    slow = [
        (link, due)
        for link in live
        if link.signal_gbyte_s and link.signal_gbyte_s < (due := _due(tally.gpu, link, fastest)) * _TOLERANCE
    ]
    if slow:
        return _fault(tally, slow)
    if len(rates) < len(live):
        return Unknown(tally.subject, "the driver does not tell the rate of every link")
    return Pass(tally.subject)


def _due(gpu: Gpu, link: GpuLink, fastest: float) -> float:
    """The rate that a link should have: the nearest one of its generation; where that is unknown, its siblings'."""
    generation = _generation(gpu, link)
    choices = _RATES.get(generation or 0, ())
    if generation == 3 and gpu.compute_capability is not None:
        choices = _GA102 if gpu.compute_capability == "8.6" else _RATES[2]
    rate = link.signal_gbyte_s or 0.0
    return min(choices, key=lambda due: abs(due - rate), default=fastest)


def _generation(gpu: Gpu, link: GpuLink) -> int | None:
    major = (link.version or "").partition(".")[0]
    return int(major) if major.isdecimal() and len(major) < 3 else _GENERATION.get(gpu.architecture or "")


def _fault(tally: Tally, slow: list[tuple[GpuLink, float]]) -> Fail:
    gpu, (worst, due) = tally.gpu, min(slow, key=lambda each: each[0].signal_gbyte_s or 0.0)
    now = worst.signal_gbyte_s or 0.0
    numbers = ranges(link.link for link, _ in slow)
    which = f" -i {gpu.index}" if gpu.index is not None else ""
    return Fail(
        subject=tally.subject,
        label=gpu.label,
        summary=f"NVLink {numbers}: {now:g} GB/s, where {due:g} are due",
        impact=f"{share_lost(now, due)} of the bandwidth of {len(slow)} of {tally.total} links; "
        "collectives run at the slowest.",
        remedy="Reset the GPU and restart the fabric manager with all jobs gone; if it trains low again, replace it.",
        evidence=tuple(
            Evidence(
                what=f"link {link.link}", value=f"{link.signal_gbyte_s:g} GB/s", source=f"nvidia-smi nvlink -s{which}"
            )
            for link, _ in slow
        ),
        places=frozenset({gpu.id, gpu.pci or gpu.id}),
    )
