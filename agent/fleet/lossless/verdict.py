"""The verdict of a hop: proved, set, lossy, trimmed or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent.fleet.lossless.fault import HopContext, HopFault
from agent.fleet.lossless.hop import CableEnd
from agent.fleet.lossless.traffic import LEAST_BYTES, TrafficClass, settle_neighbors
from agent.model.finding import SEVERITIES

VERDICTS = {  # best first; what each is
    "proved": "proved lossless: counters of both ends over a window with traffic",
    "set": "set up lossless at both ends",
    "trimmed": "packets are trimmed: lossy by design",
    "unknown": "unknown",
    "lossy": "lossy",
}
PRIORITIES_WITHOUT_PROOF = SEVERITIES.index("warning")


class Verdict(NamedTuple):
    """`reason`: of what is not set up or not known. `settle`: the one command that would decide it."""

    verdict: str
    reason: str = ""
    settle: str = ""


def judge_hop(context: HopContext, faults: Sequence[HopFault], severities: Sequence[str]) -> Verdict:
    """`severities`: of the faults."""
    if context.by_design == "trimmed":
        return Verdict("trimmed", "a switch trims packets instead of dropping them")
    if context.by_design:
        return Verdict("lossy", "the switch is set to a lossy RoCE mode")
    lossy = next((fault for fault in faults if fault.lossy), None)
    if lossy is not None:
        return Verdict("lossy", f"{lossy.end.label}: {lossy.summary}{lossy.detail}")
    for side in context.sides():
        if side.traffic.lossless is False:
            return Verdict("lossy", f"{side.end.label}: DSCP {context.dscp} is in a class without PFC, by its report")
    for side in context.sides():
        if side.traffic.lossless is None:
            far = side.far.switch if not side.end.node else None
            return Verdict("unknown", side.traffic.reason, settle_neighbors(far) if far else side.traffic.settle)
    worst = max((SEVERITIES.index(severity) for severity in severities), default=0)
    missing = _why_not_proved(context) if worst < PRIORITIES_WITHOUT_PROOF else "it has findings"
    return Verdict("set", f"not proved: {missing}") if missing else Verdict("proved")


def _why_not_proved(context: HopContext) -> str:
    """What is missing for a proof; "" where nothing is."""
    moved = 0
    for side in context.sides():
        why = _why_no_window(side.end, side.traffic)
        if why:
            return why
        moved = max(moved, side.end.delta(f"queue_bytes_{side.traffic.queue}") or 0)
    return "" if moved >= LEAST_BYTES else f"less than {LEAST_BYTES:,} bytes of the class in the window"


def _why_no_window(end: CableEnd, traffic: TrafficClass) -> str:
    facts = end.facts
    if facts is None:
        return f"{end.node} has no two samples"
    if end.before is None:
        return f"{end.node}: one collection, two are needed (--before)"
    if facts.watchdog is None or traffic.priority not in facts.watchdog:
        return f"{end.label}: whether the watchdog is on"
    if facts.ecn is None or traffic.queue is None or traffic.queue not in facts.ecn:
        return f"{end.label}: whether ECN is on"
    for name in (f"drop_pg_{traffic.priority}", f"drop_queue_{traffic.queue}"):
        delta = end.delta(name)
        if delta is None:
            return f"{end.label}: {name} of both collections"
        if delta:
            return f"{end.label}: {delta:,} drops"
    return ""
