"""roce-dcb-unreadable."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain, unreadable
from agent.rules.roce.told import fault, over_ports
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule


@rule("roce-dcb-unreadable", "info", needs=("rdma|rdma_tools", "netdev"), references=("roce-dcb-unreadable",))
def roce_dcb_unreadable(case: Case) -> Iterator[Answer]:
    """Whether a RoCE rail is lossless cannot be seen from here.

    ## What it checks
    Whether the DCB state (PFC, trust, classes) of the interface of every RoCE rail could be read.

    ## Why it matters
    Without it 0 rules about lossless classes can judge the port; it is unknown, which is not the same as fine.

    ## How it is decided
    The rail is a virtual function, its interface is in another network namespace, or its driver answered the question
    with an error. Info: one finding where it is so of every rail.

    ## What keeps it silent
    - EFA, iWARP and cloud NICs that have no such classes; ports that are not active; storage NICs: not applicable.
    - Nobody asked (a saved source without it, a probe that was left out): unknown.

    ## How to confirm
    `dcb pfc show dev INTERFACE`

    ## How to fix
    Run the agent on the host that has the physical function, or outside of the container (`--root`); in a cloud ask the
    provider.

    ## Source
    Linux `mlx5/core/en_main.c`: DCB operations are those of the function that manages the port.
    """
    yield from over_ports(case, _judge)


def _judge(each: Chain) -> Answer:
    subject, port = each.each.subject, each.each
    why = unreadable(port)
    if port.nic.role != "rail":
        return NotApplicable(subject, "no rail")
    if why is None:
        return Pass(subject)
    asked = port.nic.virtual_function or port.nic.state == "other_namespace"
    if not asked and port.netdev is not None and port.netdev.qos_reason is None:
        return Unknown(subject, why)
    name = port.netdev.label if port.netdev else "INTERFACE"
    return fault(
        each,
        f"whether it is lossless is not known: {why}",
        "Run the agent on the host that has the physical function, outside of containers; in a cloud ask the provider.",
        impact="0 rules about lossless classes can judge this rail.",
        severity="info",
        evidence=(Evidence(what=f"DCB of {port.label}", value=why, source=f"dcb pfc show dev {name}"),),
    )
