"""roce-rt-class-usage."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_priority, by_wire, lossless, rdma_bytes
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import moved, of, span, unsettled
from agent.rules.threshold import Threshold

_SHARE = Threshold("roce-rt-class-usage.percent", 50, "of the bytes sent that must be of a class with PFC, percent")
_BYTES = Threshold("roce-rt-class-usage.gbyte", 10, "RDMA bytes in the window, GB, below which nothing is judged")
_MOSTLY = 0.8  # so much of a port's bytes must be RDMA: TCP has its own class
_CLEAR = 0.6  # a priority dominates with so much of the bytes


@rule(
    "roce-rt-class-usage",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-rt-class-usage",),
    thresholds=(_SHARE, _BYTES),
)
def roce_rt_class_usage(case: Case) -> Iterator[Answer]:
    """RDMA traffic runs outside the class that is lossless.

    ## What it checks
    The bytes by priority of the interface of every active RoCE port that moved RDMA in the window.

    ## Why it matters
    PFC is configured and protects nothing: what is sent in another priority is dropped under congestion, and above 1 %
    loss next to nothing arrives. This is measured, not inferred from settings.

    ## How it is decided
    10 GB of RDMA at least, and RDMA is 80 % of what the port sent: less than half of the bytes are of priorities with
    PFC; or the priority that dominates what it sends is not the one that dominates what it receives (peers mark
    otherwise). Error, on storage NICs warning.

    ## What keeps it silent
    - Less RDMA, or a port that carries much else: not applicable. So is a port without PFC at all (roce-pfc-off), and
      drivers without bytes by priority, virtual functions, ports without a role.
    - No earlier sample, counters or PFC that could not be read: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E '[rt]x_prio._bytes'`, twice, beside `mlnx_qos -i INTERFACE`

    ## How to fix
    Mark the traffic for the class (`NCCL_IB_TC`, `cma_roce_tos`), trust DSCP, or switch PFC on where the traffic is; on
    all hosts alike.

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; the limits are judgement.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "RDMA outside its class")


def _judge(case: Case, each: Watched) -> Answer:
    subject = each.place.subject
    sent, received = by_priority(case, each, "tx_prio{}_bytes"), by_priority(case, each, "rx_prio{}_bytes")
    early = unsettled(case)
    if not sent or not received or early:
        why = moved(case, each.eth, ["tx_prio0_bytes"])
        gap = early or getattr(why, "gap", None) or "its bytes by priority are not known"
        return of(each.place, why) if isinstance(why, NotApplicable | Unknown) else Unknown(subject, gap)
    rdma = rdma_bytes(case, each)
    if rdma is None:
        return Unknown(subject, "its RDMA bytes are not counted")
    total = sum(sent.values())
    if rdma < case.threshold(_BYTES) * 1e9:
        return NotApplicable(subject, f"{rdma / 1e9:.1f} GB of RDMA sent in {span(case)}: too little to judge")
    if rdma < _MOSTLY * total:
        return NotApplicable(subject, "much of what it sends is not RDMA")
    on = lossless(each)
    inside = sum(count for priority, count in sent.items() if priority in (on or ()))
    if on and 100 * inside < case.threshold(_SHARE) * total:
        return _fault(case, each, f"{100 * inside / total:.0f} % of what it sent is of priorities with PFC", "sent")
    ours, theirs = _dominant(sent), _dominant(received)
    if ours is not None and theirs is not None and ours != theirs:
        return _fault(case, each, f"it sends in priority {ours} and receives in {theirs}", "peers")
    if on is None:
        return Unknown(subject, "whether PFC is on could not be read")
    return Pass(subject) if on else NotApplicable(subject, "PFC is off: there is no lossless class")


def _dominant(moves: dict[int, int]) -> int | None:
    """The priority with most of the bytes, where one clearly has."""
    most = max(moves, key=lambda priority: moves[priority])
    return most if moves[most] >= _CLEAR * max(sum(moves.values()), 1) else None


def _fault(case: Case, each: Watched, what: str, cause: str) -> Fail:
    place, on = each.place, lossless(each)
    names = [f"{way}_prio{p}_bytes" for way in ("tx", "rx") for p in range(8)]
    rows = [(name, case.moved(each.eth.subject, name, each.eth.now)) for name in names]
    pfc = "not known" if on is None else ", ".join(map(str, sorted(on))) or "none"
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"{what} in {span(case)}; PFC is on for {pfc}",
        impact="What is outside the class is dropped under congestion: above 1 % loss next to nothing arrives.",
        remedy="Mark the traffic for the class (NCCL_IB_TC, cma_roce_tos) and trust DSCP, on all hosts alike.",
        evidence=tuple(
            Evidence(what=name, value=f"+{move} in {span(case)}", source=each.eth.source(name))
            for name, move in rows
            if move
        ),
        severity=place.severity("error"),
        cause=cause,
        places=place.places,
    )
