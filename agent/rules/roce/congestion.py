"""Congestion notification packets (CNP): which priority they use at a port."""

from __future__ import annotations

from agent.model.nic import Qos


def cnp_priority(qos: Qos) -> int | None:
    """By the DSCP of CNPs where the port trusts DSCP, else the priority that they are sent with; None: not known."""
    if qos.trust == "dscp" and qos.cnp_dscp is not None and qos.dscp_prio:
        return qos.dscp_prio.get(str(qos.cnp_dscp), 0)
    return qos.cnp_priority


def cnp_words(qos: Qos) -> str:
    """What is set, for people."""
    dscp = "not known" if qos.cnp_dscp is None else str(qos.cnp_dscp)
    priority = "not known" if qos.cnp_priority is None else str(qos.cnp_priority)
    return f"DSCP {dscp}, priority {priority}"
