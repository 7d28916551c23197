"""What the rules about traffic classes share: subjects, evidence and commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Netdev, Qos
from agent.rules.context import RuleContext
from agent.rules.node_wide import merge_if_on_all
from agent.rules.roce.ports import NOT_SHOWN
from agent.rules.roce.qos_path import QosPath, lossless_priorities, qos_paths, unreadable_reason
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown
from agent.rules.wording import format_ranges

CONVENTION = 3  # the priority that NVIDIA, Broadcom and Cumulus use where nobody chose another
COLLAPSE = (
    "RoCE resends whole windows: throughput collapses above about 1% loss, and a lost last packet waits 4.3 s in NCCL."
)
_DSCP_OF_CONVENTION = 26
_SHOWN = 32  # rows of evidence of one finding about many ports


def for_each_port(case: RuleContext, judge: Callable[[QosPath], Result]) -> Iterator[Result]:
    """An answer for every port; one finding for the node where all have the same fault in the same words."""
    faults: list[Fail] = []
    of: dict[str, QosPath] = {}
    judged = 0
    for path in qos_paths(case):
        if not isinstance(path, QosPath):
            yield path
            continue
        answer = judge(path)
        judged += isinstance(answer, Pass | Fail)
        if isinstance(answer, Fail):
            faults.append(answer)
            of[answer.subject] = path
        else:
            yield answer
    if len({one.summary for one in faults}) > 1:
        yield from (_fill_port_name(one, of) for one in faults)
    elif faults:
        for one in merge_if_on_all(faults, judged, f"{faults[0].summary}; the same on {len(faults)} ports"):
            yield _fill_port_name(replace(one, evidence=tuple(dict.fromkeys(one.evidence))[:_SHOWN]), of)


def _fill_port_name(one: Fail, of: Mapping[str, QosPath]) -> Fail:
    """Its commands with the names of the one port that it is about; what is about all ports keeps the words."""
    if one.subject not in of:
        return one
    nic, netdev = of[one.subject].each.nic, of[one.subject].each.netdev
    remedy = one.remedy.replace("DEVICE", nic.rdma_device or "DEVICE")
    return replace(one, remedy=remedy.replace("INTERFACE", netdev.label) if netdev else remedy)


def for_each_readable_port(case: RuleContext, judge: Callable[[QosPath, Netdev], Result]) -> Iterator[Result]:
    """The same for every port whose PFC state could be read, with its interface; unknown for the others."""

    def judge_readable(qos_path: QosPath) -> Result:
        why, netdev = unreadable_reason(qos_path.each), qos_path.each.netdev
        return Unknown(qos_path.each.subject, why or NOT_SHOWN) if why or netdev is None else judge(qos_path, netdev)

    yield from for_each_port(case, judge_readable)


def fail_by_cause(case: RuleContext, rule: str, make: Callable[[QosPath], Fail]) -> Iterator[Result]:
    """Faults of the ports whose chain names this rule as the cause."""

    def judge(qos_path: QosPath) -> Result:
        return make(qos_path) if qos_path.cause == rule else not_judged_result(qos_path) or Pass(qos_path.each.subject)

    yield from for_each_port(case, judge)


def not_judged_result(qos_path: QosPath) -> Result | None:
    """The answer of a port of which nothing can be said, or nothing need be."""
    if qos_path.verdict == "by_design":
        return NotApplicable(qos_path.each.subject, qos_path.reason)
    return Unknown(qos_path.each.subject, qos_path.reason) if qos_path.verdict == "unknown" else None


def fail_port(qos_path: QosPath, summary: str, remedy: str = "", **other: Any) -> Fail:
    """A fault of one port with its whole chain as evidence; `other`: fields of Fail that are not as for lossy ports."""
    failure = Fail(
        subject=qos_path.each.subject,
        label=qos_path.each.label,
        summary=summary,
        impact=COLLAPSE,
        remedy=remedy,
        evidence=path_evidence(qos_path),
        severity=qos_path.severity,
        confidence="low" if qos_path.severity == "info" and qos_path.is_plain else "high",
        places=port_ids(qos_path),
    )
    return replace(failure, **other)


def port_ids(qos_path: QosPath) -> frozenset[str]:
    """The port and its interface."""
    port, netdev = qos_path.each, qos_path.each.netdev
    return port.places | ({netdev.id} if netdev else set())


def path_evidence(qos_path: QosPath) -> tuple[Evidence, ...]:
    """Every step of the chain with its source."""
    netdev = qos_path.each.netdev
    return (
        *_marking_evidence(qos_path),
        *(_interface_evidence(qos_path, netdev) if netdev else ()),
        *loss_evidence(qos_path),
    )


def loss_evidence(qos_path: QosPath) -> tuple[Evidence, ...]:
    """Counters of lost packets that moved."""
    nic, netdev = qos_path.each.nic, qos_path.each.netdev
    hw = f"/sys/class/infiniband/{nic.rdma_device or nic.label}/ports/{qos_path.each.port.port}/hw_counters"
    ethtool = f"ethtool -S {netdev.label if netdev else 'INTERFACE'}"
    return tuple(
        Evidence(
            what=f"{name} of {qos_path.each.label}, moved by",
            value=str(by),
            source=f"{hw}/{name}" if name in qos_path.each.port.hw_counters else ethtool,
        )
        for name, by in qos_path.losses
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


def expected_class(case: RuleContext, qos_path: QosPath) -> int:
    """The class of the switch, else of other ports, else the convention."""
    neighbor = qos_path.each.netdev.neighbor if qos_path.each.netdev else None
    priorities = [n for n, on in enumerate(neighbor.pfc[:8]) if on] if neighbor else []
    others = [lossless_priorities(netdev.qos) for netdev in case.topology.netdevs if netdev.qos]
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
        yield Evidence(what="traffic class of RDMA", value=value, source=marking.source)


def _interface_evidence(qos_path: QosPath, netdev: Netdev) -> Iterator[Evidence]:
    name, qos, priority = netdev.label, qos_path.qos, qos_path.priority
    if qos.trust:
        source = f"dcb app show dev {name}" if qos.trust_source != "qos/trust" else f"/sys/class/net/{name}/qos/trust"
        yield Evidence(what=f"trust of {name}", value=qos.trust, source=source)
    if priority is not None:
        known_by = f"ethtool -S {name}" if qos_path.how.endswith("the window") else f"dcb app show dev {name}"
        yield Evidence(what=f"priority of RDMA at {name}", value=f"{priority} ({qos_path.how})", source=known_by)
        if priority < len(qos.prio_tc):
            tc = str(qos.prio_tc[priority])
            yield Evidence(what=f"traffic class queue at {name}", value=tc, source=f"dcb ets show dev {name}")
    if qos.pfc:
        yield Evidence(what=f"PFC of {name}", value=format_pfc(qos), source=pfc_source(netdev))
    if netdev.pause:
        words = f"rx {_format_switch(netdev.pause.rx)}, tx {_format_switch(netdev.pause.tx)}"
        yield Evidence(what=f"global pause of {name}", value=words, source=f"ethtool -a {name}")
    if netdev.neighbor and netdev.neighbor.pfc:
        priorities = format_ranges(n for n, on in enumerate(netdev.neighbor.pfc) if on)
        where = f"{netdev.neighbor.system or '?'} {netdev.neighbor.port or ''}".strip()
        yield Evidence(
            what=f"PFC that {where} announces", value=priorities, source=f"lldpcli show neighbors ports {name}"
        )


def _format_switch(value: bool | None) -> str:
    return {True: "on", False: "off", None: "not known"}[value]


def cnp_priority(qos: Qos) -> int | None:
    """By the DSCP of CNPs where the port trusts DSCP, else the priority that they are sent with; None: not known."""
    if qos.trust == "dscp" and qos.cnp_dscp is not None and qos.dscp_prio:
        return qos.dscp_prio.get(str(qos.cnp_dscp), 0)
    return qos.cnp_priority


def format_cnp(qos: Qos) -> str:
    """What is set, for people."""
    dscp = "not known" if qos.cnp_dscp is None else str(qos.cnp_dscp)
    priority = "not known" if qos.cnp_priority is None else str(qos.cnp_priority)
    return f"DSCP {dscp}, priority {priority}"
