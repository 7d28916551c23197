"""ib-hwcounter-transport."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port, went_down
from agent.rules.nccl.settings import effective, number
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule
from agent.rules.runtime import HOUR, MINUTE, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_TIMEOUTS = Threshold("ib-hwcounter-transport.timeouts_per_minute", 10, "ACK timeouts a minute of one port")
_BROKEN = Threshold("ib-hwcounter-transport.retries_exceeded_per_hour", 10, "queue pairs an hour that gave up")
_SEQUENCE = Threshold(
    "ib-hwcounter-transport.sequence_per_minute", 100, "sequence errors a minute without adaptive routing"
)
_ROUTING = "NCCL_IB_ADAPTIVE_ROUTING"
_IMPACT = "A lossless fabric has none of these: each costs a timeout of up to 4.3 s, and after about 30 s the job."
_REMEDY = "Look for link errors on the path (ibqueryerrors) and for peers that hang or died."
_KINDS = (
    ("local_ack_timeout_err", Limit(_TIMEOUTS, "warning", MINUTE), "ACK timeouts"),
    ("req_transport_retries_exceeded", Limit(_BROKEN, "warning", HOUR), "queue pairs gave up (retries exceeded)"),
)
_ORDERED = ("packet_seq_err", Limit(_SEQUENCE, "warning", MINUTE), "sequence errors without adaptive routing")


@rule(
    "ib-hwcounter-transport",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("ib-hwcounter-transport",),
    thresholds=(_TIMEOUTS, _BROKEN, _SEQUENCE),
)
def ib_hwcounter_transport(case: Case) -> Iterator[Answer]:
    """Packets get lost on an InfiniBand fabric, which should lose none.

    ## What it checks
    How the transport errors of the driver (mlx5) moved on every InfiniBand port of a rail or storage NIC.

    ## Why it matters
    InfiniBand is lossless: a timeout (4.3 s at NCCL's default) means link errors on the path, a peer that hangs, or one
    that died; after seven in a row the job ends.

    ## How it is decided
    10 ACK timeouts a minute, or 10 queue pairs an hour that gave up: warning on rails, info on storage NICs. Where NCCL
    is told not to use adaptive routing (`NCCL_IB_ADAPTIVE_ROUTING=0`), 100 sequence errors a minute as well.

    ## What keeps it silent
    - Adaptive routing lets packets overtake each other: sequence errors are normal then, and are not counted.
    - Fewer: jobs that end leave some behind. The link went down in the window: not applicable (see ib-link-flap).
    - No earlier sample, a counter that was reset, windows that begin in the first quarter of an hour after boot:
      unknown. Drivers without these counters, ports without a role: not applicable.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/hw_counters/{local_ack_timeout_err,req_transport_retries_exceeded}`,
    twice

    ## How to fix
    Find links with errors by `ibqueryerrors`; see whether a peer hangs or died.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`; the limits are judgement.
    """
    yield from by_port(case, lambda each: _judge(case, each), "transport errors")


def _judge(case: Case, each: Watched) -> Answer:
    down = went_down(case, each)
    if down:
        return down
    ordered = [number(said.value) for said in effective(case, _ROUTING)]
    kinds = [*_KINDS, _ORDERED] if set(ordered) == {0} else list(_KINDS)
    answers = [
        judged(
            case, each.place, moved(case, each.counters, [name]), (limit,), Words(what, _IMPACT, _REMEDY, cause=name)
        )
        for name, limit, what in kinds
    ]
    return next((a for kind in (Fail, Unknown, Pass) for a in answers if isinstance(a, kind)), answers[0])
