"""Links between the two dies of a module of an Atlas A3."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import gpu_counters
from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.applicability import has_ascend
from agent.rules.ascend.npus import find_npus
from agent.rules.context import RuleContext
from agent.rules.devices import DIES, about_gpu, about_pair, find_device_id, find_function, why_unreachable
from agent.rules.rule import Fail, Result, rule
from agent.rules.wording import join_labels

_COUNTERS = ("sio.tx", "sio.rx")
_COMMAND = "npu-smi info -t sio-info -i N -c C"


@rule("sio-errors")
def sio_errors(context: RuleContext) -> Iterator[Result]:
    answer = has_ascend(context)
    if answer is not None:
        yield answer
    faulty: list[Gpu] = []
    for npu in find_npus(context):
        judged = _judge_die(context, npu)
        if judged is None:
            faulty.append(npu)
        else:
            yield judged
    while faulty:
        ends = [npu for npu in faulty if npu is faulty[0] or _is_partner(context, faulty[0], npu)]
        yield _fail_module(context, ends)
        faulty = [npu for npu in faulty if npu not in ends]


def _judge_die(context: RuleContext, npu: Gpu) -> Result | None:
    """The answer; None where errors were counted."""
    about, absent = about_gpu(npu), why_unreachable(find_function(context, npu))
    if find_device_id(context, npu) not in DIES:
        return about.not_applicable("no-such-device", detail="no die of an Atlas A3")
    if absent:
        return about.not_applicable(absent)
    if not any(name in npu.error_counts for name in _COUNTERS):
        return about.unknown("output-missing", command=_COMMAND)
    moves = _moves(context, npu)
    if any(moves.values()):
        return None
    gap = next((name for name, move in moves.items() if move is None), None)
    return about.unknown(context.why_no_delta(about.subject, gap)) if gap else about.passes()


def _moves(context: RuleContext, npu: Gpu) -> dict[str, int | None]:
    return {name: context.counter_delta(f"gpu:{npu.id}", name, gpu_counters(npu)) for name in _COUNTERS}


def _is_partner(context: RuleContext, one: Gpu, other: Gpu) -> bool:
    return any(path.kind == "SIO" for path in context.topology.paths if {path.a, path.b} == {one.id, other.id})


def _fail_module(context: RuleContext, ends: list[Gpu]) -> Fail:
    """Both dies of a module, or one of them."""
    pair = len(ends) == 2
    return (about_pair(ends[0], ends[1]) if pair else about_gpu(ends[0])).fail(
        label=" - ".join(npu.label for npu in ends),
        summary=f"the link between the dies of a module counts errors, at {join_labels([npu.label for npu in ends])}",
        impact="Traffic between the two dies of the module is sent again, or lost.",
        evidence=tuple(
            Evidence(f"{name} of {npu.label}", f"+{move}", _COMMAND)
            for npu in ends
            for name, move in _moves(context, npu).items()
            if move
        ),
        ids=frozenset(npu.id for npu in ends),
    )
