"""roce-rt-crc."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_wire
from agent.rules.rule import Answer, rule
from agent.rules.runtime import HOUR, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("rx_crc_errors_phy", "rx_symbol_err_phy", "rx_fcs_err_frames", "rx_crc_errors.nic")
_KERNELS = ("rx_crc_errors",)  # of any driver, where its own are not there
_PER_HOUR = Threshold("roce-rt-crc.per_hour", 10, "frames with a wrong check sum an hour of one interface")
_WORDS = Words(
    "received frames with a wrong check sum",
    "Each is a lost packet whatever PFC does, and costs RoCE a go-back or a timeout of up to 4.3 s.",
    "Clean or replace the cable or module; then the switch port.",
)


@rule(
    "roce-rt-crc", "warning", needs=("rdma|rdma_tools", "netdev"), references=("roce-rt-crc",), thresholds=(_PER_HOUR,)
)
def roce_rt_crc(case: Case) -> Iterator[Answer]:
    """Frames arrive damaged on the wire of a RoCE port.

    ## What it checks
    How check sum and symbol errors moved on the interface of every active RoCE port of a rail or storage NIC.

    ## Why it matters
    A damaged frame is dropped before PFC or congestion control could help; each costs RoCE a go-back, and where it was
    the last of a message a timeout of 4.3 s at NCCL's default.

    ## How it is decided
    10 an hour and more: warning, on storage NICs info. In a shorter window ten are needed all the same.

    ## What keeps it silent
    - Single errors, as when a link comes up; fewer than ten in a window below an hour are unknown.
    - Virtual functions do not count the wire: not applicable; so are ports without a role.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E 'crc|symbol_err'`, twice

    ## How to fix
    Clean or replace the cable or module, then try another port of the switch.

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; the limit is judgement.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "damaged frames")


def _judge(case: Case, each: Watched) -> Answer:
    names = _COUNTERS if any(name in each.eth.now for name in _COUNTERS) else _KERNELS
    return judged(case, each.place, moved(case, each.eth, names), (Limit(_PER_HOUR, "warning", HOUR),), _WORDS)
