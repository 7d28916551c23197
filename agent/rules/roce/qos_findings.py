"""What the rules about traffic classes share: subjects, evidence and commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Netdev, Qos
from agent.rules.context import RuleContext
from agent.rules.node_wide import count_faults, merge_if_on_all
from agent.rules.roce.qos_path import QosPath, lossless_priorities, qos_paths, why_unreadable
from agent.rules.rule import Fail, Result, Rule, rule
from agent.rules.wording import format_ranges, quote_name

CONVENTION = 3  # the priority that NVIDIA, Broadcom and Cumulus use where no one chose another
COLLAPSE = (
    "RoCE resends whole windows: throughput collapses above about 1% loss, and a lost last packet waits 4.3 s in NCCL."
)
_DSCP_OF_CONVENTION = 26
_SHOWN = 32  # rows of evidence of one finding about many ports


def readable_paths(context: RuleContext) -> Iterator[QosPath | Result]:
    """The chain of every port whose PFC state could be read; unknown for the others."""
    for path in qos_paths(context):
        if not isinstance(path, QosPath):
            yield path
        elif why := why_unreadable(path.each):
            yield path.unknown(why)
        else:
            yield path


def cause_rule(name: str) -> Callable[[Callable[[QosPath], Result] | Callable[[RuleContext, QosPath], Result]], Rule]:
    """A rule about the ports whose chain names it as the cause of their loss."""

    def list_paths(context: RuleContext) -> Iterator[QosPath | Result]:
        for path in qos_paths(context):
            if isinstance(path, QosPath) and path.cause != name:
                yield not_judged_result(path) or path.passes()
            else:
                yield path

    return rule(name, each=list_paths, merge=merge_alike)


def merge_alike(context: RuleContext, answers: Sequence[Result]) -> Iterator[Fail]:
    """One finding for the node where all ports have the same fault in the same words."""
    faults, judged = count_faults(answers)
    if len({one.summary for one in faults}) > 1:
        yield from (_fill_port_name(context, one) for one in faults)
    elif faults:
        for one in merge_if_on_all(faults, judged, f"{faults[0].summary}; the same on {len(faults)} ports"):
            yield _fill_port_name(context, replace(one, evidence=tuple(dict.fromkeys(one.evidence))[:_SHOWN]))


def _fill_port_name(context: RuleContext, one: Fail) -> Fail:
    """Its commands with the names of the one port that it is about; what is about all ports keeps the words."""
    for path in qos_paths(context):
        if isinstance(path, QosPath) and path.subject == one.subject:
            remedy = one.remedy.replace("DEVICE", quote_name(path.each.nic.rdma_device or "DEVICE"))
            interface = quote_name(path.netdev.label) if path.each.netdev else "INTERFACE"
            return replace(one, remedy=remedy.replace("INTERFACE", interface))
    return one


def not_judged_result(qos_path: QosPath) -> Result | None:
    """The answer of a port of which nothing can be reported, or nothing need be."""
    if qos_path.verdict == "by_design":
        return qos_path.not_applicable(qos_path.reason)
    return qos_path.unknown(qos_path.reason) if qos_path.verdict == "unknown" else None


def fail_port(qos_path: QosPath, summary: str, remedy: str = "", **other: Any) -> Fail:
    """A fault of one port with its whole chain as evidence; `other`: fields of Fail that are not as for lossy ports."""
    failure = qos_path.fail(
        summary=summary,
        impact=COLLAPSE,
        remedy=remedy,
        evidence=path_evidence(qos_path),
        severity=qos_path.severity,
        confidence="low" if qos_path.severity == "info" and qos_path.is_plain else "high",
    )
    return replace(failure, **other)


def path_evidence(qos_path: QosPath) -> tuple[Evidence, ...]:
    """Every step of the chain with its source."""
    netdev = qos_path.each.netdev
    return (
        *_marking_evidence(qos_path),
        *(_interface_evidence(qos_path, netdev) if netdev else ()),
        *loss_evidence(qos_path),
    )


def loss_evidence(qos_path: QosPath) -> tuple[Evidence, ...]:
    """Counters of lost packets that moved, or what they have counted where nothing dates it."""
    nic, netdev = qos_path.each.nic, qos_path.each.netdev
    hw = f"/sys/class/infiniband/{nic.rdma_device or nic.label}/ports/{qos_path.each.port.port}/hw_counters"
    ethtool = f"ethtool -S {netdev.label if netdev else 'INTERFACE'}"
    moved = [(f"{name} of {qos_path.label}, moved by", name, by) for name, by in qos_path.losses]
    undated = [(f"{name} of {qos_path.label}, not dated", name, count) for name, count in qos_path.undated]
    return tuple(
        Evidence(what, str(count), f"{hw}/{name}" if name in qos_path.each.port.hw_counters else ethtool)
        for what, name, count in (*moved, *undated)
    )


def format_pfc(qos: Qos) -> str:
    """ "priority 3", "no priority"."""
    on = lossless_priorities(qos)
    return f"priority {format_ranges(on)}" if on else "no priority"


def pfc_source(netdev: Netdev) -> str:
    """The command that shows PFC."""
    return f"dcb pfc show dev {netdev.label}"


def lossless_traffic_class(qos: Qos) -> int | None:
    """A traffic class with ECT(0) that ends in a lossless priority; None where no DSCP does."""
    on = lossless_priorities(qos)
    wanted = [_DSCP_OF_CONVENTION, *(8 * n for n in on), *range(64)]
    lossless_dscp = (
        next((dscp for dscp in wanted if qos.dscp_prio.get(str(dscp), 0) in on), None) if qos.dscp_prio else None
    )
    return None if lossless_dscp is None else lossless_dscp * 4 + 2


def lossless_values(qos: Qos) -> tuple[tuple[str, str], ...]:
    """What TRAFFIC_CLASS stands for in the steps of a finding; nothing where no DSCP ends in a lossless priority."""
    traffic_class = lossless_traffic_class(qos)
    return () if traffic_class is None else (("TRAFFIC_CLASS", str(traffic_class)),)


def set_pfc(priority: int) -> str:
    """The commands that switch PFC on for one priority and off for the others."""
    bits = ",".join("1" if n == priority else "0" for n in range(8))
    upstream = f"`dcb pfc set dev INTERFACE prio-pfc all:off {priority}:on`"
    return f"`mlnx_qos -i INTERFACE --pfc {bits}` (upstream: {upstream})"


def expected_class(context: RuleContext, qos_path: QosPath) -> int:
    """The class of the switch, else of other ports, else the convention."""
    neighbor = qos_path.each.netdev.neighbor if qos_path.each.netdev else None
    priorities = [n for n, on in enumerate(neighbor.pfc[:8]) if on] if neighbor else []
    others = [lossless_priorities(netdev.qos) for netdev in context.topology.netdevs if netdev.qos]
    return next((n for n in (*priorities, *(n for on in others for n in on))), CONVENTION)


def set_trust() -> str:
    """The commands that make a port trust DSCP."""
    table = " ".join(f"{8 * n}:{n}" for n in range(8))
    upstream = f"`dcb app add dev INTERFACE dscp-prio {table} {_DSCP_OF_CONVENTION}:{CONVENTION}`"
    return f"`mlnx_qos -i INTERFACE --trust dscp` (upstream: {upstream}; a DSCP that is not named goes to priority 0)"


def _marking_evidence(qos_path: QosPath) -> Iterator[Evidence]:
    marking = qos_path.marking
    if marking:
        value = f"{marking.text} (DSCP {marking.dscp})"
        yield Evidence("traffic class of RDMA", value, marking.source)


def _interface_evidence(qos_path: QosPath, netdev: Netdev) -> Iterator[Evidence]:
    name, qos, priority = netdev.label, qos_path.qos, qos_path.priority
    if qos.trust:
        source = f"dcb app show dev {name}" if qos.trust_source != "qos/trust" else f"/sys/class/net/{name}/qos/trust"
        yield Evidence(f"trust of {name}", qos.trust, source)
    if priority is not None:
        known_by = f"ethtool -S {name}" if qos_path.how.endswith("the window") else f"dcb app show dev {name}"
        yield Evidence(f"priority of RDMA at {name}", f"{priority} ({qos_path.how})", known_by)
        if priority < len(qos.prio_tc):
            tc = str(qos.prio_tc[priority])
            yield Evidence(f"traffic class queue at {name}", tc, f"dcb ets show dev {name}")
    if qos.pfc:
        yield Evidence(f"PFC of {name}", format_pfc(qos), pfc_source(netdev))
    if netdev.pause:
        words = f"rx {format_switch(netdev.pause.rx)}, tx {format_switch(netdev.pause.tx)}"
        yield Evidence(f"global pause of {name}", words, f"ethtool -a {name}")
    if netdev.neighbor and netdev.neighbor.pfc:
        priorities = format_ranges(n for n, on in enumerate(netdev.neighbor.pfc) if on)
        where = f"{netdev.neighbor.system or '?'} {netdev.neighbor.port or ''}".strip()
        yield Evidence(f"PFC that {where} announces", priorities, f"lldpcli show neighbors ports {name}")


def format_switch(value: bool | None) -> str:
    """As a person writes it."""
    return {True: "on", False: "off", None: "not known"}[value]


def cnp_priority(qos: Qos) -> int | None:
    """By the DSCP of CNPs where the port trusts DSCP, else the priority that they are sent with; None: not known."""
    if qos.trust == "dscp" and qos.cnp_dscp is not None and qos.dscp_prio:
        return qos.dscp_prio.get(str(qos.cnp_dscp), 0)
    return qos.cnp_priority


def cnp_evidence(qos_path: QosPath) -> Evidence:
    """What is set for CNPs."""
    qos, name = qos_path.qos, qos_path.netdev.label
    dscp = "not known" if qos.cnp_dscp is None else str(qos.cnp_dscp)
    priority = "not known" if qos.cnp_priority is None else str(qos.cnp_priority)
    value = f"DSCP {dscp}, priority {priority}"
    return Evidence(f"CNPs of {name}", value, f"/sys/class/net/{name}/ecn/roce_np/cnp_dscp")
