"""roce-global-pause."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import CONVENTION, fault, over_readable, set_pfc, set_trust
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule


@rule("roce-global-pause", "warning", needs=("rdma|rdma_tools", "netdev"), references=("roce-global-pause",))
def roce_global_pause(case: Case) -> Iterator[Answer]:
    """A RoCE port pauses the whole link, not one class.

    ## What it checks
    Global pause (802.3x) of the interface of every RoCE port whose PFC is off.

    ## Why it matters
    It loses no packets where the switch takes part, and stops all 8 priorities at once: congestion feedback, SSH and
    storage wait with RDMA, and one slow receiver spreads over the whole fabric.

    ## How it is decided
    PFC is off for every priority, and pause is on in either direction. Warning; error where PFC is meant (another port
    of the same role has it, the switch announces it, `roce_mode = "lossless"`). Storage: one step less. With pause in
    one direction only, roce-pfc-off stands.

    ## What keeps it silent
    - PFC is on: roce-pause-and-pfc judges that. `roce_mode = "lossy"`, or a switch that is lossy by design.
    - Pause or PFC could not be read, virtual functions, other network namespaces: unknown.

    ## How to confirm
    `ethtool -a INTERFACE`, and `ethtool -S INTERFACE | grep global_pause`

    ## How to fix
    `ethtool -A INTERFACE rx off tx off`, then PFC on one class: `mlnx_qos -i INTERFACE --pfc 0,0,0,1,0,0,0,0`. A small
    cluster that uses global pause on purpose can switch this rule off.

    ## Source
    Linux `mlx5/core/en/port_buffer.c`; NVIDIA mlx5 counters guide (`rx_global_pause_duration`).
    """
    yield from over_readable(case, _judge)


def _judge(each: Chain, netdev: Netdev) -> Answer:
    subject, pause = each.each.subject, netdev.pause
    if each.protected:
        return NotApplicable(subject, "PFC is on")
    if each.verdict == "by_design":
        return NotApplicable(subject, each.reason)
    if not pause or not (pause.rx or pause.tx):
        off = pause is not None and pause.rx is False and pause.tx is False
        return Pass(subject) if off else Unknown(subject, "its global pause could not be read")
    ways = " and ".join(word for word, on in (("receives", pause.rx), ("sends", pause.tx)) if on)
    negotiated = " (as negotiated with the switch)" if pause.autoneg else ""
    return fault(
        each,
        f"{ways} global pause{negotiated}, and no priority has PFC" + (f": {each.meant}" if each.meant else ""),
        f"ethtool -A INTERFACE rx off tx off; {set_trust()}; {set_pfc(CONVENTION)}.",
        impact="A pause stops all 8 priorities, congestion feedback and SSH too, and spreads over the fabric.",
        severity=each.each.severity("error" if each.meant else "warning"),
    )
