"""Whether RoCE traffic is in a lossless class from end to end."""

from __future__ import annotations

from agent.model.counters import port_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import one_level_lower
from agent.rules.pages import read_limit
from agent.rules.roce.qos_findings import (
    cause_rule,
    cnp_evidence,
    cnp_priority,
    expected_class,
    fail_port,
    format_pfc,
    lossless_traffic_class,
    lossless_values,
    merge_alike,
    not_judged_result,
    path_evidence,
    readable_paths,
    set_pfc,
    set_trust,
)
from agent.rules.roce.qos_path import QosPath, address_tags, qos_paths, why_unreadable
from agent.rules.rule import Fail, Result, rule
from agent.rules.wording import find_majority, format_ranges, quote_name


@rule("roce-lossy", each=qos_paths, merge=merge_alike)
def roce_lossy(context: RuleContext, qos_path: QosPath) -> Result:
    if qos_path.verdict != "lossy":
        return not_judged_result(qos_path) or qos_path.passes()
    used = f"RDMA uses priority {qos_path.priority} ({qos_path.how}), " if qos_path.priority is not None else ""
    return fail_port(
        qos_path,
        f"{used}PFC is on for {format_pfc(qos_path.qos)}: see {qos_path.cause}",
        "" if qos_path.protected else f"{set_pfc(expected_class(context, qos_path))}.",
        values=lossless_values(qos_path.qos),
        cause=qos_path.cause,
        situation="marking" if qos_path.protected else "",
    )


@cause_rule("roce-pfc-off")
def roce_pfc_off(context: RuleContext, qos_path: QosPath) -> Fail:
    why = qos_path.meant or ("lost packets are counted" if qos_path.losses else "")
    trust = "" if qos_path.qos.trust == "dscp" else f"{set_trust()}, "
    pause = qos_path.each.netdev.pause if qos_path.each.netdev else None
    half = "; global pause off: `ethtool -A INTERFACE rx off tx off`" if pause and (pause.rx or pause.tx) else ""
    return fail_port(
        qos_path,
        "PFC is off for every priority" + (f", and {why}" if why else "; lossy by design?"),
        f"Drain the node, then {trust}{set_pfc(expected_class(context, qos_path))}{half}.",
        cause="meant" if qos_path.meant else "",
    )


@cause_rule("roce-class-mismatch")
def roce_class_mismatch(qos_path: QosPath) -> Fail:
    marking, priority = qos_path.marking, qos_path.priority or 0
    by = f"traffic class {marking.text} is DSCP {marking.dscp}: " if marking and "DSCP" in qos_path.how else ""
    return fail_port(
        qos_path,
        f"{by}RDMA uses priority {priority} ({qos_path.how}), PFC is on for {format_pfc(qos_path.qos)}",
        f"{set_pfc(priority)}.",
        values=lossless_values(qos_path.qos),
    )


@cause_rule("roce-trust-pcp-untagged")
def roce_trust_pcp_untagged(qos_path: QosPath) -> Fail:
    guessed = qos_path.qos.trust_source == "APP table" and qos_path.each.nic.driver not in ("mlx5_core", "mlx5", None)
    severity = qos_path.severity
    return fail_port(
        qos_path,
        f"trust is PCP, and no packet has a VLAN tag: all are priority 0, PFC is on for {format_pfc(qos_path.qos)}",
        f"{set_trust()}.",
        severity=one_level_lower(severity) if guessed else severity,
        confidence="medium" if guessed else "high",
    )


@cause_rule("roce-marking-unset")
def roce_marking_unset(qos_path: QosPath) -> Fail:
    doubt = qos_path.marking.doubt if qos_path.marking else None
    mark = lossless_traffic_class(qos_path.qos)
    declare = "" if mark is None else f"Where launchers set it, declare it: roce_traffic_class = {mark} below [facts]."
    return fail_port(
        qos_path,
        f"nothing marks RDMA: NCCL sends DSCP 0, which is priority {qos_path.priority}; PFC is on for "
        f"{format_pfc(qos_path.qos)}" + (f" ({doubt})" if doubt else ""),
        declare,
        values=lossless_values(qos_path.qos),
        severity="info" if doubt else qos_path.each.severity("error" if qos_path.losses else "warning"),
        confidence="low" if doubt else "high" if qos_path.losses else "medium",
    )


@cause_rule("roce-nccl-tc-suspect")
def roce_nccl_tc_suspect(qos_path: QosPath) -> Fail:
    marking = qos_path.marking
    assert marking is not None  # the chain names this cause for a marking only
    right = lossless_traffic_class(qos_path.qos)
    if marking.wrong:
        slip = f"traffic class {marking.text!r} {marking.wrong}"
    else:
        right = marking.traffic_class * 4 + 2
        slip = f"traffic class {marking.text} is DSCP {marking.dscp}; DSCP {marking.text} would be {right}"
    return fail_port(
        qos_path,
        f"{slip}: RDMA uses priority {qos_path.priority}, PFC is on for {format_pfc(qos_path.qos)}",
        values=(("TRAFFIC_CLASS", str(right)),) if right is not None else (),
        cause="wrong" if marking.wrong else "",
    )


@cause_rule("roce-vlan-no-egress-map")
def roce_vlan_no_egress_map(context: RuleContext, qos_path: QosPath) -> Fail:
    vlan = address_tags(context, qos_path.each).vlan
    name = vlan.label if vlan else "VLAN"
    command = f"`ip link set {quote_name(name)} type vlan egress 0:{qos_path.protected[0]} 4:{qos_path.protected[0]}`"
    egress_map = str((vlan.vlan or {}).get("egress_map") or "none") if vlan else "none"
    return fail_port(
        qos_path,
        f"VLAN tags carry priority {qos_path.priority}, PFC is on for {format_pfc(qos_path.qos)}",
        f"{command}, or NCCL_IB_SL={qos_path.protected[0]}, or let the port trust DSCP.",
        severity=qos_path.each.severity("error" if qos_path.losses else "warning"),
        confidence="medium",
        evidence=(Evidence(f"egress map of {name}", egress_map, f"ip -d link show {name}"), *path_evidence(qos_path)),
    )


@rule("roce-dcb-unreadable", each=qos_paths, merge=merge_alike)
def roce_dcb_unreadable(context: RuleContext, qos_path: QosPath) -> Result:
    port = qos_path.each
    why = why_unreadable(port)
    if port.nic.role != "rail":
        return qos_path.not_applicable("no-such-device", detail="no rail")
    if why is None:
        return qos_path.passes()
    is_elsewhere = port.nic.virtual_function or port.nic.state == "other_namespace"
    # a source without any interface, or with this one and no word of its DCB: it was not saved
    is_read = bool(context.topology.netdevs) if port.netdev is None else port.netdev.qos_reason is not None
    if not is_elsewhere and not is_read:
        return qos_path.unknown(why)
    name = port.netdev.label if port.netdev else "INTERFACE"
    return fail_port(
        qos_path,
        f"PFC and traffic classes cannot be read here: {why}",
        impact="Rules about lossless classes cannot check this rail.",
        severity="info",
        evidence=(Evidence(f"DCB of {port.label}", why, f"dcb pfc show dev {name}"),),
    )


@rule("roce-dcbx-firmware-owned", each=readable_paths, merge=merge_alike)
def roce_dcbx_firmware_owned(qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    qos = qos_path.qos
    if qos.dcbx is None and not qos.peer_pfc:
        return qos_path.unknown("not-known", fact="who runs DCBX")
    if qos.dcbx != "firmware" and not qos.peer_pfc:
        return qos_path.passes()
    peer = format_ranges(n for n, on in enumerate(qos.peer_pfc) if on) if qos.peer_pfc else "not known"
    value = f"{qos.dcbx or 'not known'} ({' '.join(qos.dcbx_modes) or 'no modes'}), PFC of the peer: {peer}"
    return fail_port(
        qos_path,
        "DCBX is run by the firmware of the NIC" if qos.dcbx == "firmware" else "DCBX is run with the switch",
        impact="The switch can replace the PFC and ETS settings of the host at any time.",
        severity="info",
        evidence=(Evidence(f"DCBX of {netdev.label}", value, f"dcb dcbx show dev {netdev.label}"),),
    )


_CNP_DSCP = 48  # by convention


@rule("roce-cnp-class", each=readable_paths, merge=merge_alike)
def roce_cnp_class(context: RuleContext, qos_path: QosPath) -> Result:
    cnp, dscp = cnp_priority(qos_path.qos), qos_path.qos.cnp_dscp
    others = [path for path in qos_paths(context) if isinstance(path, QosPath) and path.qos.cnp_dscp is not None]
    usual_value = find_majority(path.qos.cnp_dscp for path in others if path.each.nic.role == qos_path.each.nic.role)
    if cnp is None:
        return qos_path.unknown("not-read", fact="which priority CNPs use")
    if usual_value is not None and dscp is not None and dscp != usual_value:
        text, cause = f"CNPs have DSCP {dscp}, those of other ports {usual_value}", "differs"
    elif qos_path.priority is None:
        return qos_path.unknown("not-known", fact="which priority RDMA uses")
    elif cnp == qos_path.priority:
        text, cause = f"CNPs share priority {cnp} with RDMA", "data"
    elif cnp == 0:
        text, cause = "CNPs have priority 0, that of ordinary traffic", "default"
    else:
        return qos_path.passes()
    row = cnp_evidence(qos_path)
    return fail_port(
        qos_path,
        text,
        values=(("CNP_DSCP", str(usual_value if cause == "differs" else _CNP_DSCP)),),
        impact="Notifications wait behind the congestion: 1 MB of queue at 400 Gb/s is 20 microseconds.",
        severity="info",
        evidence=(row,),
        cause=cause,
        confidence="medium",
    )


MARKS = read_limit("roce-ecn-off.marks")
_PROGRAMMABLE = ("BlueField", "ConnectX-8", "ConnectX-9")  # their congestion control may not need ECN
_SIDES = {"np": "notification point", "rp": "reaction point"}


@rule("roce-ecn-off", each=readable_paths, merge=merge_alike)
def roce_ecn_off(context: RuleContext, qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    priority, ecn = qos_path.priority, qos_path.qos.ecn
    declared = context.settings.facts.get("roce_congestion_control")
    if declared == "none":
        return qos_path.not_applicable("declared", detail='declared roce_congestion_control = "none": PFC alone')
    off = [side for side in _SIDES if _is_enabled(ecn.get(side), priority) is False]
    marks, answered = _count_marks(context, qos_path)
    if off:
        which = "every priority" if priority is None else f"priority {priority}"
        text = f"ECN is off for {which}: {' and '.join(_SIDES[side] for side in off)}"
        rows = tuple(_build_evidence(netdev, side, ecn[side]) for side in off)
    elif marks is not None and answered == 0 and marks >= context.threshold(MARKS):
        text = f"{marks} marks of congestion were received and none was answered"
        folder = f"{qos_path.each.folder}/hw_counters"
        rows = (
            Evidence("ECN marks, moved by", str(marks), f"{folder}/np_ecn_marked_roce_packets"),
            Evidence("CNPs sent, moved by", "0", f"{folder}/np_cnp_sent"),
        )
    elif all(_is_enabled(ecn.get(side), priority) for side in _SIDES):
        return qos_path.passes()
    else:
        is_read = priority is None and all(ecn.get(side) for side in _SIDES)
        known = Reason("not-known", fact="which priority RDMA uses") if is_read else Reason("not-reported", fact="it")
        return qos_path.unknown(known.prefixed("whether ECN is on for RDMA is not known: "))
    bare = not qos_path.protected and qos_path.verdict != "pause"
    programmable = declared is None and (qos_path.each.nic.model or "").startswith(_PROGRAMMABLE)
    return fail_port(
        qos_path,
        text + ("; PFC is off, too" if bare else ""),
        values=() if priority is None else (("PRIORITY", str(priority)),),
        impact="Only pauses hold senders back: flows that cause no congestion get a fraction of their 400 Gb/s.",
        severity="info" if programmable else qos_path.each.severity("error" if bare else "warning"),
        evidence=rows,
        confidence="medium",
        cause=",".join(off) or "marks",
    )


def _is_enabled(by_priority: list[bool] | None, priority: int | None) -> bool | None:
    """Whether one side is on for RDMA; None: not reported, or on for some and the priority of RDMA is not known."""
    if not by_priority:
        return None
    if priority is None:
        return by_priority[0] if len(set(by_priority)) == 1 else None
    return by_priority[priority] if priority < len(by_priority) else None


def _count_marks(context: RuleContext, qos_path: QosPath) -> tuple[int | None, int | None]:
    now = port_counters(qos_path.each.port)
    names = ("np_ecn_marked_roce_packets", "np_cnp_sent")
    marks, answered = (context.counter_delta(qos_path.subject, name, now) for name in names)
    return marks, answered


def _build_evidence(netdev: Netdev, side: str, enabled: list[bool]) -> Evidence:
    return Evidence(
        f"{_SIDES[side]} of {netdev.label} by priority",
        ",".join("1" if on else "0" for on in enabled),
        f"/sys/class/net/{netdev.label}/ecn/roce_{side}/enable/*",
    )
