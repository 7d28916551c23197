"""roce-pfc-off."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce.lossless import Chain, protected
from agent.rules.roce.told import CONVENTION, by_cause, fault, set_pfc, set_trust
from agent.rules.rule import Answer, Fail, rule


@rule(
    "roce-pfc-off",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-pfc-off",),
    absorbs=("roce-lossy", "roce-global-pause"),
)
def roce_pfc_off(case: Case) -> Iterator[Answer]:
    """A RoCE port has no lossless class: PFC is off for every priority.

    ## What it checks
    The PFC mask of the interface of every active RoCE port of a rail or storage NIC.

    ## Why it matters
    The NIC drops what it cannot take and never asks the switch to wait. RoCE repeats whole windows: above 1 % loss
    almost nothing arrives, and a lost last packet waits 4.3 s with NCCL's defaults. The factory default is off.

    ## How it is decided
    No priority has PFC, and global pause is not on in both directions. Error where PFC is meant (another port of the
    same role has it, the switch announces it, `roce_mode = "lossless"`) or packets were lost in the window. Else a
    warning that asks whether the network is lossy by design. Storage: one step less.

    ## What keeps it silent
    - `roce_mode = "lossy"`, or a switch that announces a class for RoCE (UDP 4791) and no PFC: by design.
    - Global pause in both directions: roce-global-pause.
    - EFA, iWARP and cloud NICs, software devices, ports that are not active or have no role: not applicable.
    - Virtual functions, other network namespaces, PFC or pause that could not be read: unknown.

    ## How to confirm
    `dcb pfc show dev INTERFACE` or `mlnx_qos -i INTERFACE`; `ethtool -S INTERFACE` has no `rx_prio3_pause`

    ## How to fix
    `mlnx_qos -i INTERFACE --trust dscp --pfc 0,0,0,1,0,0,0,0` for priority 3 (or the class of the site), after a drain:
    it bounces the link of mlx5. Look whether the unit that sets it ran after the last reload of the driver. Where loss
    is meant, say so: `roce_mode = "lossy"` below `[facts]` of the configuration.

    ## Source
    Linux `mlx5/core/en_dcbnl.c`; NVIDIA mlx5 counters guide.
    """
    yield from by_cause(case, "roce-pfc-off", lambda each: _fault(case, each))


def _fault(case: Case, each: Chain) -> Fail:
    why = each.meant or ("lost packets are counted" if each.losses else "")
    trust = "" if each.qos.trust == "dscp" else f"{set_trust()}, "
    pause = each.each.netdev.pause if each.each.netdev else None
    half = "; global pause off: ethtool -A INTERFACE rx off tx off" if pause and (pause.rx or pause.tx) else ""
    lossy = "" if each.meant else ' If loss is by design, declare it: roce_mode = "lossy" below [facts].'
    return fault(
        each,
        "PFC is off for every priority" + (f", and {why}" if why else "; lossy by design?"),
        f"Drain the node, then {trust}{set_pfc(_wanted(case, each))}{half}.{lossy}",
        cause="meant" if each.meant else "",
    )


def _wanted(case: Case, each: Chain) -> int:
    """The class of the switch, else of other ports, else the convention."""
    neighbor = each.each.netdev.neighbor if each.each.netdev else None
    told = [n for n, on in enumerate(neighbor.pfc[:8]) if on] if neighbor else []
    others = [protected(netdev.qos) for netdev in case.topology.netdevs if netdev.qos]
    return next((n for n in (*told, *(n for on in others for n in on))), CONVENTION)
