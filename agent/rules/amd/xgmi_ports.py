"""XGMI ports as the firmware of each GPU states them: links that carry no data, and links below their peers' rate.

The firmware numbers ports by hardware: that a link is down is known by their number, and between which GPUs by the
ends that are one short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, XgmiPorts
from agent.model.reasons import Reason
from agent.rules.amd.gpus import FULL_MESH, select_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, about_pair, kernel_log_evidence
from agent.rules.rule import NODE, Fail, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels

_LANES, _LANE_GBIT_S = 16, 32  # of each link of MI300 and later
_SEVERAL = 3  # so many ends that agree on one GPU are no accident


@rule("xgmi-link-down")
def xgmi_link_down(context: RuleContext) -> Iterator[Result]:
    groups, answers = select_gpus(context, FULL_MESH, _has_states)
    yield from answers
    for group in groups:
        yield from _judge_states(context, group)


def _has_states(gpu: Gpu) -> bool:
    return bool(_ports(gpu).states) and gpu.links_known


def _ports(gpu: Gpu) -> XgmiPorts:
    return gpu.xgmi or XgmiPorts()


def _count_missing(gpu: Gpu) -> int:
    """Active ports that it has less than links to other GPUs by the driver."""
    return len(gpu.links) - _count(gpu, "active")


def _count(gpu: Gpu, state: str) -> int:
    return _ports(gpu).states.count(state)


def _judge_states(context: RuleContext, group: list[Gpu]) -> Iterator[Result]:
    short = {gpu.id: _count_missing(gpu) for gpu in group if _count_missing(gpu) > 0}
    whole = [gpu for gpu in group if gpu.id not in short]
    yield from (about_gpu(gpu).passes() for gpu in whole)
    centre = _find_centre(short)
    agreed = centre is not None and short[centre] >= _SEVERAL
    if 2 * len(short) >= len(group) and not agreed:
        why = "half of the GPUs or more have fewer active ports than links: this driver reports them wrongly"
        yield from (Unknown(f"gpu:{gpu_id}", Reason("undecided", detail=why)) for gpu_id in short)
        return
    spare = max((_count(gpu, "inactive") for gpu in whole), default=0)
    unsure = [gpu.id for gpu in group if gpu.id in short and _count(gpu, "inactive") <= spare]
    why = "its firmware reports no more ports down than on other GPUs: one is off, or not reported"
    yield from (Unknown(f"gpu:{gpu_id}", Reason("undecided", detail=why)) for gpu_id in unsure)
    down = {gpu_id: missing for gpu_id, missing in short.items() if gpu_id not in unsure}
    while down:
        centre = _find_centre(down)
        yield _fail_down(context, down, centre)
        left = {gpu_id: missing - 1 for gpu_id, missing in down.items() if missing > 1 and gpu_id != centre}
        down = left if centre else {}


def _find_centre(short: Mapping[str, int]) -> str | None:
    """The one GPU that misses a link to each other one that misses some; None where these are fewer than two."""
    centres = [gpu_id for gpu_id, missing in short.items() if missing == len(short) - 1 > 1]
    return centres[0] if len(centres) == 1 else None


def _fail_down(context: RuleContext, down: Mapping[str, int], centre: str | None) -> Fail:
    gpus = [context.gpus[gpu_id] for gpu_id in down]
    labels = join_labels([gpu.label for gpu in gpus])
    if centre or len(gpus) == 1:
        gpu = context.gpus[centre] if centre else gpus[0]
        about = about_gpu(gpu)
        summary = f"{down[gpu.id]} of {len(gpu.links)} XGMI links carry no data"
    elif [*down.values()] == [1, 1]:
        about = about_pair(*gpus)
        summary = "the XGMI link between them carries no data"
    else:
        about = NODE
        summary = f"XGMI links of {labels} carry no data"
    return about.fail(
        summary=summary,
        impact=f"Less XGMI bandwidth of {labels}; collectives run at the slowest GPU's speed.",
        evidence=(
            *(
                Evidence(
                    f"active XGMI ports of {gpu.label}",
                    f"{_count(gpu, 'active')}, and {len(gpu.links)} links to other GPUs",
                    _source(gpu),
                )
                for gpu in gpus[:8]
            ),
            *kernel_log_evidence(context, centre or gpus[0].id),
        ),
        confidence="medium",
        ids=frozenset(gpu.id for gpu in gpus),
    )


def _source(gpu: Gpu) -> str:
    return f"/sys/bus/pci/devices/{gpu.id}/gpu_metrics"


@rule("xgmi-link-slow")
def xgmi_link_slow(context: RuleContext) -> Iterator[Result]:
    groups, answers = select_gpus(context, FULL_MESH, lambda gpu: _ports(gpu).width is not None)
    yield from answers
    for group in groups:
        yield from _judge_rate(group)


def _judge_rate(group: list[Gpu]) -> Iterator[Result]:
    widths, rates = [_ports(gpu).width or 0 for gpu in group], [_ports(gpu).lane_gbit_s or 0 for gpu in group]
    width, rate, fastest = find_majority(widths), find_majority(rates) or 0, max(rates)
    for gpu in group:
        about, ports = about_gpu(gpu), _ports(gpu)
        own = ports.lane_gbit_s or 0
        if width is None or width < _LANES:
            yield about.unknown(
                "no-peers", detail="most GPUs have no width in common, or less than 16 lanes: idle links may be narrow"
            )
        elif (ports.width or 0) < width or 0 < own < rate:
            yield _fail_slow(gpu, width, rate)
        elif 0 < own < max(fastest, _LANE_GBIT_S):
            why = f"lanes at {own} Gb/s, {max(fastest, _LANE_GBIT_S)} are possible, and no majority has that: "
            yield about.unknown("link-inconclusive", detail=f"{why}idle links may be slow")
        else:
            yield about.passes()


def _fail_slow(gpu: Gpu, width: int, rate: int) -> Fail:
    ports = _ports(gpu)
    of_rate = f" at {ports.lane_gbit_s} Gb/s" if ports.lane_gbit_s and rate else ""
    usual = f"x{width}{f' at {rate} Gb/s' if of_rate else ''}"
    return about_gpu(gpu).fail(
        summary=f"its XGMI links are x{ports.width}{of_rate}; most others are {usual}",
        impact="Collectives run at the speed of the slowest link.",
        evidence=(Evidence(f"XGMI links of {gpu.label}", f"x{ports.width}{of_rate}", _source(gpu)),),
        confidence="medium",
    )
