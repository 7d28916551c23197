"""roce-pfc-switch-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import evidence, fault, over_readable, pfc_words
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule

_ROCE = "udp:4791"


@rule(
    "roce-pfc-switch-mismatch",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-pfc-switch-mismatch",),
)
def roce_pfc_switch_mismatch(case: Case) -> Iterator[Answer]:
    """A RoCE port and its switch port pause different classes.

    ## What it checks
    PFC and the class of RoCE that the switch announces by LLDP (DCBX), against those of the interface of every RoCE
    port.

    ## Why it matters
    PFC works per hop: the host pauses one queue and the switch fills another, and 0 pauses reach the one that
    overflows.

    ## How it is decided
    The switch told its PFC mask, and it is another than the interface's; or it announces a priority for RoCE (UDP port
    4791), and RDMA here uses another one. Error; of medium confidence where the NIC's firmware negotiates DCBX.
    Storage: one step less. Where RDMA is lossy on the host's side already, the rule of that cause stands.

    ## What keeps it silent
    - No neighbour seen, or none of these announced: unknown. It says nothing about what the switch does.
    - The bandwidth of classes is not compared: LLDP tells 0 % of strict ones, too.
    - `roce_mode = "lossy"`, or a switch that is lossy by design: not applicable. DCB not readable: unknown.

    ## How to confirm
    `lldpcli show neighbors ports INTERFACE details`, and `dcb pfc show dev INTERFACE`

    ## How to fix
    Set the same class on both. On NVIDIA switches `nv set qos roce` makes it priority 3 and announces it.

    ## Source
    IEEE 802.1Q annex D (DCBX TLVs); NVIDIA Cumulus RoCE guide.
    """
    yield from over_readable(case, _judge)


def _judge(each: Chain, netdev: Netdev) -> Answer:
    subject, neighbor = each.each.subject, netdev.neighbor
    if each.verdict == "by_design":
        return NotApplicable(subject, each.reason)
    told = (neighbor.pfc if neighbor else None) or each.qos.peer_pfc
    roce = neighbor.applications.get(_ROCE) if neighbor else None
    wrong = []
    if told and tuple(n for n, on in enumerate(told) if on) != each.protected:
        announced = ranges(n for n, on in enumerate(told) if on)
        wrong.append(f"the switch announces PFC on {announced}, here it is on for {pfc_words(each.qos)}")
    if roce is not None and each.priority is not None and roce != each.priority:
        wrong.append(f"the switch announces priority {roce} for RoCE, RDMA here uses {each.priority} ({each.how})")
    if not wrong:
        compared = bool(told) or (roce is not None and each.priority is not None)
        return Pass(subject) if compared else Unknown(subject, _untold(neighbor is not None))
    where = f"{neighbor.system or '?'} {neighbor.port or ''}".strip() if neighbor else "the switch"
    row = Evidence(
        what=f"what {where} announces",
        value=f"PFC {ranges(n for n, on in enumerate(told or ()) if on)}, RoCE priority {roce}",
        source=f"lldpcli show neighbors ports {netdev.label} details",
    )
    return fault(
        each,
        "; ".join(wrong),
        "Set the same class on the interface and on its switch port.",
        impact="PFC works per hop: 0 pauses reach the queue that overflows, and its packets are lost.",
        severity=each.each.severity("error"),
        evidence=(row, *evidence(each)),
        confidence="medium" if each.qos.dcbx == "firmware" else "high",
        cause="pfc" if "PFC" in wrong[0] else "priority",
    )


def _untold(heard: bool) -> str:
    """Without a name of the port: many ports have one reason."""
    return "what the switch has is not known: " + (
        "it announces no DCBX" if heard else "no LLDP of it (lldpd) was heard"
    )
