"""Links between the two dies of a module of an Atlas A3."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import gpu_counters
from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.ascend.npus import find_npus
from agent.rules.context import RuleContext
from agent.rules.devices import DIES, find_device_id, find_function, unreachable_reason
from agent.rules.gates import has_ascend
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

_COUNTERS = ("sio.tx", "sio.rx")
_COMMAND = "npu-smi info -t sio-info -i N -c C"


@rule("sio-errors")
def sio_errors(case: RuleContext) -> Iterator[Result]:
    answer = has_ascend(case)
    if answer is not None:
        yield answer
    faulty: list[Gpu] = []
    for npu in find_npus(case):
        judged = _judge_die(case, npu)
        if judged is None:
            faulty.append(npu)
        else:
            yield judged
    while faulty:
        ends = [npu for npu in faulty if npu is faulty[0] or _is_partner(case, faulty[0], npu)]
        yield _fail_module(case, ends)
        faulty = [npu for npu in faulty if npu not in ends]


def _judge_die(case: RuleContext, npu: Gpu) -> Result | None:
    """The answer; None where errors were counted."""
    subject, absent = f"gpu:{npu.id}", unreachable_reason(find_function(case, npu))
    if find_device_id(case, npu) not in DIES:
        return NotApplicable(subject, Reason("no-such-device", detail="no die of an Atlas A3"))
    if absent:
        return NotApplicable(subject, absent)
    if not any(name in npu.error_counts for name in _COUNTERS):
        return Unknown(subject, Reason("output-missing", command=_COMMAND))
    moves = _moves(case, npu)
    if any(moves.values()):
        return None
    gap = next((name for name, move in moves.items() if move is None), None)
    return Unknown(subject, case.not_moved(subject, gap)) if gap else Pass(subject)


def _moves(case: RuleContext, npu: Gpu) -> dict[str, int | None]:
    return {name: case.moved(f"gpu:{npu.id}", name, gpu_counters(npu)) for name in _COUNTERS}


def _is_partner(case: RuleContext, one: Gpu, other: Gpu) -> bool:
    return any(path.kind == "SIO" for path in case.topology.paths if {path.a, path.b} == {one.id, other.id})


def _fail_module(case: RuleContext, ends: list[Gpu]) -> Fail:
    """Both dies of a module, or one of them."""
    pair = len(ends) == 2
    return Fail(
        subject=f"pair:{ends[0].id}+{ends[1].id}" if pair else f"gpu:{ends[0].id}",
        label=" - ".join(npu.label for npu in ends),
        summary=f"the link between the dies of a module counts errors, at {join_labels([npu.label for npu in ends])}",
        impact="Traffic between the two dies of the module is sent again, or lost.",
        evidence=tuple(
            Evidence(what=f"{name} of {npu.label}", value=f"+{move}", source=_COMMAND)
            for npu in ends
            for name, move in _moves(case, npu).items()
            if move
        ),
        places=frozenset(npu.id for npu in ends),
    )
