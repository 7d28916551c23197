"""Priority flow control and global pause settings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agent.model.finding import Evidence
from agent.model.nic import Netdev, Pause
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_device_id
from agent.rules.pages import read_limit
from agent.rules.roce.ports import NOT_SHOWN
from agent.rules.roce.qos_findings import (
    cnp_evidence,
    cnp_priority,
    expected_class,
    fail_port,
    format_pfc,
    format_switch,
    merge_alike,
    path_evidence,
    readable_paths,
    set_pfc,
    set_trust,
)
from agent.rules.roce.qos_path import QosPath, qos_paths, why_unreadable
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import find_majority, format_ranges, join_labels

CLASSES = read_limit("roce-pfc-multi.classes")


@rule("roce-pfc-multi", each=readable_paths, merge=merge_alike)
def roce_pfc_multi(context: RuleContext, qos_path: QosPath) -> Result:
    on = qos_path.protected
    if not on:
        return qos_path.not_applicable("not-configured", detail="PFC is off")
    if len(on) <= context.threshold(CLASSES):
        return qos_path.passes()
    expected = expected_class(context, qos_path)
    keep = next((n for n in (qos_path.priority, expected) if n in on), on[0])
    return fail_port(
        qos_path,
        f"PFC is on for {len(on)} priorities ({format_pfc(qos_path.qos)})",
        f"Keep one class for data: {set_pfc(keep)}.",
        impact=f"{len(on)} classes share the headroom of one, and a pause of any of them spreads to more traffic.",
        severity=qos_path.each.severity("error" if len(on) == 8 else "warning"),
        cause="all" if len(on) == 8 else "",
    )


@rule("roce-pfc-on-cnp-or-default", each=readable_paths, merge=merge_alike)
def roce_pfc_on_cnp_or_default(qos_path: QosPath) -> Result:
    on, data, cnp = qos_path.protected, qos_path.priority, cnp_priority(qos_path.qos)
    if not on:
        return qos_path.not_applicable("not-configured", detail="PFC is off")
    if data is None:
        return qos_path.unknown("not-known", fact="which priority RDMA uses") if len(on) > 1 else qos_path.passes()
    wrong = ["congestion notification packets"] if cnp in on and cnp != data else []
    wrong += ["ordinary traffic (priority 0)"] if 0 in on and data != 0 and cnp != 0 else []
    if wrong:
        row = cnp_evidence(qos_path)
        return fail_port(
            qos_path,
            f"PFC covers {' and '.join(wrong)}: on for {format_pfc(qos_path.qos)}, RDMA uses priority {data}",
            f"{set_pfc(data)}; put CNPs into a strict class without PFC, 6 or 7.",
            impact="They wait behind the queue that they report: at 400 Gb/s 50 kB more for every microsecond.",
            severity=qos_path.each.severity("warning"),
            evidence=(*path_evidence(qos_path), *((row,) if cnp is not None else ())),
            cause="cnp" if "congestion" in wrong[0] else "default",
            confidence="medium",
        )
    if cnp is None and set(on) - {data}:
        return qos_path.unknown("not-read", fact="which priority CNPs use")
    return qos_path.passes()


@rule("roce-global-pause", each=qos_paths, merge=merge_alike)
def roce_global_pause(context: RuleContext, qos_path: QosPath) -> Result:
    """Also where PFC is not known: frames that were exchanged show that global pause is in force."""
    netdev, why = qos_path.each.netdev, why_unreadable(qos_path.each)
    if netdev is None:
        return qos_path.unknown(why or NOT_SHOWN)
    if why is None:
        return _judge_global_pause(context, qos_path, netdev)
    counted = {name: count for name in _GLOBAL_FRAMES if (count := netdev.counters.get(name))}
    ways = _format_ways(netdev.pause)
    if why.code != "not-shown" or not counted or not ways:
        return qos_path.unknown(why)
    rows = (Evidence(f"{name} of {netdev.label}", str(count), f"ethtool -S {netdev.label}")
            for name, count in counted.items())  # fmt: skip
    return fail_port(
        qos_path,
        f"{ways} global pause, and {max(counted.values())} pause frames were exchanged",
        f"`ethtool -A INTERFACE rx off tx off`; {set_trust()}; {set_pfc(expected_class(context, qos_path))}.",
        impact=_STOPS_ALL,
        severity=qos_path.each.severity("warning"),
        evidence=(*path_evidence(qos_path), *rows),
        confidence="medium",
    )


def _format_ways(pause: Pause | None) -> str:
    flags = (("receives", pause.rx), ("sends", pause.tx)) if pause else ()
    return " and ".join(word for word, on in flags if on)


_GLOBAL_FRAMES = ("rx_global_pause", "tx_global_pause")  # mlx5: there only while global pause is on
_STOPS_ALL = "A pause stops all 8 priorities, congestion feedback and SSH too, and spreads over the fabric."


def _judge_global_pause(context: RuleContext, qos_path: QosPath, netdev: Netdev) -> Result:
    pause = netdev.pause
    if qos_path.protected:
        return qos_path.not_applicable("not-in-use", detail="PFC is on")
    if qos_path.verdict == "by_design":
        return qos_path.not_applicable(qos_path.reason)
    if not pause or not (pause.rx or pause.tx):
        off = pause is not None and pause.rx is False and pause.tx is False
        return qos_path.passes() if off else qos_path.unknown("not-read", fact="its global pause")
    negotiated = " (as negotiated with the switch)" if pause.autoneg else ""
    return fail_port(
        qos_path,
        f"{_format_ways(pause)} global pause{negotiated}, and no priority has PFC"
        + (f": {qos_path.meant}" if qos_path.meant else ""),
        f"`ethtool -A INTERFACE rx off tx off`; {set_trust()}; {set_pfc(expected_class(context, qos_path))}.",
        impact=_STOPS_ALL,
        severity=qos_path.each.severity("error" if qos_path.meant else "warning"),
    )


_FRAMES = ("rx_pause_frames", "tx_pause_frames")  # bnxt: always there, and not zero where pause is in use


@rule("roce-pause-and-pfc", each=readable_paths, merge=merge_alike)
def roce_pause_and_pfc(qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    pause = netdev.pause
    if not qos_path.protected:
        return qos_path.not_applicable("not-configured", detail="PFC is off")
    if not pause or not (pause.rx or pause.tx):
        off = pause is not None and pause.rx is False and pause.tx is False
        return qos_path.passes() if off else qos_path.unknown("not-read", fact="its global pause")
    if not netdev.counters:
        return qos_path.unknown("not-read", fact="its counters")
    in_force = any("global_pause" in name for name in netdev.counters)
    if not in_force and not any(netdev.counters.get(name) for name in _FRAMES):
        return qos_path.passes()
    return fail_port(
        qos_path,
        f"global pause is on beside PFC ({format_pfc(qos_path.qos)})",
        impact="One end ignores the other's frames: lossless traffic is dropped when queues fill.",
        severity=qos_path.each.severity("warning"),
        confidence="medium",
    )


_NO_MEASURE = (None, "none")  # no value is usual, or PFC is off: most rails without it are no reason to take it off
_SETTING_NAMES = {  # of what is remembered of the last run
    "PFC": ("pfc",), "trust": ("trust",), "DCBX owner": ("dcbx",), "global pause": ("pause_rx", "pause_tx"),
}  # fmt: skip
_GRAVE = ("PFC", "trust", "DSCP table", "traffic class queues")  # these lose packets; the others are a risk


@rule("roce-pfc-nic-asymmetry")
def roce_pfc_nic_asymmetry(context: RuleContext) -> Iterator[Result]:
    kinds: dict[str, list[QosPath]] = {}
    for path in qos_paths(context):
        if not isinstance(path, QosPath):
            yield path
            continue
        why = why_unreadable(path.each)
        if path.each.nic.role != "rail":
            yield path.not_applicable("no-such-device", detail="no rail")
        elif why:
            yield path.unknown(why)
        else:
            kinds.setdefault(find_device_id(context, path.each.nic), []).append(path)
    for alike in kinds.values():
        yield from _compare(context, alike)


def _compare(context: RuleContext, alike: list[QosPath]) -> Iterator[Result]:
    if len(alike) < 2:
        yield alike[0].each.not_applicable("nothing-to-compare", detail="no other rail of its kind to compare with")
        return
    values = {qos_path.subject: _format_settings(qos_path) for qos_path in alike}
    usual_values, split = {}, []
    for what in next(iter(values.values())):
        known = [row[what] for row in values.values() if row[what] is not None]
        usual_values[what] = _find_unchanged(context, what, values) or find_majority(known)
        if len(set(known)) > 1 and usual_values[what] in _NO_MEASURE:
            split.append(what)
    if split:
        port_values = [(qos_path, what, values[qos_path.subject][what]) for what in split for qos_path in alike]
        rows = tuple(
            _build_evidence(qos_path, what, value) for qos_path, what, value in port_values if value is not None
        )
        yield NODE.fail(
            summary="; ".join(f"rails differ in {what}: {_format_groups(alike, values, what)}" for what in split),
            impact="Collectives run at the speed of the slowest rail, and packets of some are queued differently.",
            evidence=rows,
            severity="error" if set(split) & set(_GRAVE) else "warning",
            cause=",".join(split),
            ids=frozenset().union(*(qos_path.ids for qos_path in alike)),
        )
        return
    for qos_path in alike:
        row = values[qos_path.subject]
        differing = [what for what in row if row[what] not in (None, usual_values[what])]
        yield _fail_outlier(qos_path, alike, row, usual_values, differing) if differing else qos_path.passes()


def _find_unchanged(context: RuleContext, what: str, values: dict[str, dict[str, str | None]]) -> str | None:
    """The value that all rails have whose setting is what it was in the last run, where others were changed since."""
    changes = context.history.settings if context.history else {}
    names = _SETTING_NAMES.get(what, ())
    changed = {
        f"port:{nic.id}/{port.port}"
        for nic in context.topology.nics
        for port in nic.ports
        for netdev in context.topology.netdevs
        if netdev.label in port.netdevs and changes.get(f"netdev:{netdev.id}", {}).keys() & set(names)
    }  # fmt: skip
    same = {row[what] for port, row in values.items() if port not in changed and row[what] is not None}
    return same.pop() if len(same) == 1 else None


def _format_settings(qos_path: QosPath) -> dict[str, str | None]:
    """What is compared, as people read it; None: not read."""
    qos, netdev = qos_path.qos, qos_path.each.netdev
    pause = netdev.pause if netdev else None
    return {
        "PFC": format_ranges(qos_path.protected),
        "trust": qos.trust,
        "DSCP table": _format_dscp_table(tuple(qos.dscp_prio.items())),
        "traffic class queues": ",".join(map(str, qos.prio_tc)) or None,
        "receive buffers": ",".join(map(str, qos.buffers.get("prio_buffer", []))) or None,
        "global pause": f"rx {format_switch(pause.rx)}, tx {format_switch(pause.tx)}"
        if pause and None not in (pause.rx, pause.tx)
        else None,
        "DCBX owner": qos.dcbx,
    }


@lru_cache(maxsize=64)  # rails have the same one
def _format_dscp_table(dscp_prio: tuple[tuple[str, int], ...]) -> str | None:
    """DSCPs by priority; those of priority 0 go there without an entry, too."""
    by_priority: dict[int, list[int]] = {}
    for dscp, priority in dscp_prio:
        if dscp.isdecimal() and priority:
            by_priority.setdefault(priority, []).append(int(dscp))
    rows = [f"{priority}: {format_ranges(dscps)}" for priority, dscps in sorted(by_priority.items())]
    return "; ".join(rows) or ("all 0" if dscp_prio else None)


def _fail_outlier(
    qos_path: QosPath,
    alike: list[QosPath],
    row: dict[str, str | None],
    usual_values: dict[str, str | None],
    differing: list[str],
) -> Fail:
    others = [one for one in alike if one is not qos_path]
    all_lossy = qos_path.verdict == "lossless" and all(one.verdict == "lossy" for one in others)
    about = frozenset().union(*(one.ids for one in (alike if all_lossy else [qos_path])))
    return fail_port(
        qos_path,
        "; ".join(f"{what} is {row[what]}, on the other rails {usual_values[what]}" for what in differing),
        impact="Collectives run at the speed of the slowest rail, and this one's packets are queued differently.",
        severity="error" if set(differing) & set(_GRAVE) else "warning",
        evidence=tuple(_build_evidence(qos_path, what, str(row[what])) for what in differing),
        cause=",".join(differing),
        ids=about,
    )


def _format_groups(alike: list[QosPath], values: dict[str, dict[str, str | None]], what: str) -> str:
    """Each value with the rails that have it."""
    groups: dict[str, list[str]] = {}
    for qos_path in alike:
        value = values[qos_path.subject][what]
        if value is not None:
            groups.setdefault(value, []).append(qos_path.label)
    return ", ".join(f"{value} on {join_labels(labels)}" for value, labels in sorted(groups.items()))


def _build_evidence(qos_path: QosPath, what: str, value: str) -> Evidence:
    name = qos_path.each.netdev.label if qos_path.each.netdev else qos_path.label
    command = {
        "PFC": "dcb pfc show dev",
        "traffic class queues": "dcb ets show dev",
        "receive buffers": "dcb buffer show dev",
        "global pause": "ethtool -a",
        "DCBX owner": "dcb dcbx show dev",
    }
    return Evidence(f"{what} of {name}", value, f"{command.get(what, 'dcb app show dev')} {name}")


_ROCE = "udp:4791"


@rule("roce-pfc-switch-mismatch", each=readable_paths, merge=merge_alike)
def roce_pfc_switch_mismatch(context: RuleContext, qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    neighbor = netdev.neighbor
    if context.settings.facts.get("roce_mode") == "lossy":
        return qos_path.not_applicable(qos_path.reason)
    switch_pfc = (neighbor.pfc if neighbor else None) or qos_path.qos.peer_pfc
    roce = neighbor.applications.get(_ROCE) if neighbor else None
    wrong = []
    if switch_pfc and tuple(n for n, on in enumerate(switch_pfc) if on) != qos_path.protected:
        announced = format_ranges(n for n, on in enumerate(switch_pfc) if on)
        wrong.append(f"the switch announces PFC on {announced}, here it is on for {format_pfc(qos_path.qos)}")
    if roce is not None and qos_path.priority is not None and roce != qos_path.priority:
        wrong.append(
            f"the switch announces priority {roce} for RoCE, RDMA here uses {qos_path.priority} ({qos_path.how})"
        )
    if not wrong:
        compared = bool(switch_pfc) or (roce is not None and qos_path.priority is not None)
        return qos_path.passes() if compared else qos_path.unknown(_why_unnamed(neighbor is not None))
    where = f"{neighbor.system or '?'} {neighbor.port or ''}".strip() if neighbor else "the switch"
    row = Evidence(
        f"what {where} announces",
        f"PFC {format_ranges(n for n, on in enumerate(switch_pfc or ()) if on)}, RoCE priority {roce}",
        f"lldpcli show neighbors ports {netdev.label} details",
    )
    return fail_port(
        qos_path,
        "; ".join(wrong),
        impact="The switch marks no congestion in the class that RDMA uses, and has no buffer for it: packets are lost."
        if qos_path.verdict == "by_design"
        else "PFC works per hop: no pause reaches the queue that overflows, and its packets are lost.",
        severity=qos_path.each.severity("error"),
        evidence=(row, *path_evidence(qos_path)),
        confidence="medium" if qos_path.qos.dcbx == "firmware" else "high",
        cause="pfc" if "PFC" in wrong[0] else "priority",
    )


def _why_unnamed(heard: bool) -> Reason:
    """Without a name of the port: many ports have one reason."""
    why = "it announces no DCBX" if heard else "no LLDP was received from it (lldpd)"
    return Reason("not-shown", detail=f"what the switch has is not known: {why}")
