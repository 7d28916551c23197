"""Buffers, bandwidth shares and rate limits of traffic classes."""

from __future__ import annotations

from collections.abc import Collection

from agent.model.counters import netdev_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.context import RuleContext
from agent.rules.pages import read_limit
from agent.rules.roce.qos_findings import fail_port, loss_evidence, merge_alike, path_evidence, readable_paths
from agent.rules.roce.qos_path import QosPath
from agent.rules.rule import Result, rule
from agent.rules.wording import format_ranges

_CABLE_METRES = 7.0  # what mlx5 computes with where nothing states more
_XON, _CELL = 9216, 128  # bytes between XON and XOFF, and the smallest cell of the buffer: the most lenient sum
_DROPS = ("discards", "buf_discard")


@rule("roce-headroom-small", each=readable_paths, merge=merge_alike)
def roce_headroom_small(context: RuleContext, qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    nic = qos_path.each.nic
    driver = nic.driver or netdev.driver or ""
    if not qos_path.protected:
        return qos_path.not_applicable("not-configured", detail="PFC is off")
    if not driver.startswith("mlx5") or (nic.model or "").startswith("BlueField"):
        return qos_path.not_applicable("not-measured", detail="not computed for this kind of NIC")
    where, sizes = qos_path.qos.buffers.get("prio_buffer", []), qos_path.qos.buffers.get("size_bytes", [])
    speed, mtu = netdev.speed_gbit_s or qos_path.each.port.rate_gbit_s, netdev.mtu
    if not speed or not mtu or len(where) < 8 or not all(0 <= where[n] < len(sizes) for n in qos_path.protected):
        return qos_path.unknown("not-shown", detail="buffers, speed or MTU could not be read")
    metres = _cable_metres(context, qos_path, netdev)
    need = needed_bytes(metres, speed, mtu)
    small = {where[n]: sizes[where[n]] for n in qos_path.protected if sizes[where[n]] < need}
    if not small:
        return qos_path.passes()
    dropped = [name for name, _ in qos_path.losses if name.endswith(_DROPS) or name.startswith("rx_discards")]
    buffers = ", ".join(f"buffer {n} has {size // 1000} kB" for n, size in sorted(small.items()))
    return fail_port(
        qos_path,
        f"{buffers}; {need / 1000:.0f} kB are needed at {speed:g} Gb/s, MTU {mtu} and {metres:g} m of cable",
        f"`mlnx_qos -i INTERFACE --cable_len {max(metres, _CABLE_METRES):.0f}`: the driver computes its buffers again.",
        impact=f"{(need - min(small.values())) / 1000:.0f} kB can be lost each time that the port pauses its switch.",
        severity=qos_path.each.severity("error" if dropped else "warning"),
        evidence=(
            Evidence(
                f"receive buffers of {netdev.label}",
                f"bytes {sizes}, by priority {where}",
                f"dcb buffer show dev {netdev.label}",
            ),
            *loss_evidence(qos_path),
        ),
        confidence="high" if dropped else "medium",
    )


def needed_bytes(metres: float, gbit_s: float, mtu: int) -> float:
    """The smallest buffer of a lossless class.

    >>> round(needed_bytes(7, 400, 9000) / 1000), round(needed_bytes(100, 400, 9000) / 1000)
    (160, 241)
    """
    return (301 + 2.16 * metres) * gbit_s + 2.72 * mtu + _XON + _CELL


def _cable_metres(context: RuleContext, qos_path: QosPath, netdev: Netdev) -> float:
    declared = context.settings.facts.get("cable_metres")
    lengths = [float(declared)] if isinstance(declared, int | float) else []
    lengths += [netdev.module.length_m] if netdev.module and netdev.module.length_m else []
    lengths += [float(qos_path.qos.cable_metres)] if qos_path.qos.cable_metres else []
    return max(lengths, default=_CABLE_METRES)


SHARE = read_limit("roce-prio2buffer-shared.percent")


@rule("roce-prio2buffer-shared", each=readable_paths, merge=merge_alike)
def roce_prio2buffer_shared(context: RuleContext, qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    on = qos_path.protected
    where = qos_path.qos.buffers.get("prio_buffer", [])
    if not on or len(on) == 8:
        return qos_path.not_applicable("no-such-device", detail="no priority beside lossless ones")
    if len(where) < 8:
        return qos_path.unknown("not-read", fact="its receive buffers")
    lossless = {where[n] for n in on}
    sharing = [n for n in range(8) if n not in on and where[n] in lossless]
    netdev_id, now = f"netdev:{netdev.id}", netdev_counters(netdev)
    received = {n: context.counter_delta(netdev_id, f"rx_prio{n}_bytes", now) for n in range(8)}
    if any(received[n] is None for n in sharing):
        return qos_path.unknown(
            context.why_no_delta(netdev_id, "rx_prio0_bytes").prefixed("whether anything uses them: ")
        )
    total = sum(moved or 0 for moved in received.values())
    busy = [n for n in sharing if 100 * (received[n] or 0) > context.threshold(SHARE) * total]
    if not busy:
        return qos_path.passes()
    return fail_port(
        qos_path,
        f"priority {format_ranges(busy)} shares the receive buffer of "
        f"the lossless priority {format_ranges(on)}, and is in use",
        impact="Ordinary traffic uses up the headroom of up to 8 priorities, and makes the port pause RDMA.",
        severity="info",
        values=_separate_buffers(where, on),
        evidence=(
            Evidence(
                f"buffer of priority 0 to 7 of {netdev.label}",
                ",".join(map(str, where)),
                f"dcb buffer show dev {netdev.label}",
            ),
            *(
                Evidence(
                    f"rx_prio{n}_bytes of {netdev.label}, moved by", str(received[n]), f"ethtool -S {netdev.label}"
                )
                for n in busy
            ),
        ),
        confidence="medium",
    )


def _separate_buffers(where: list[int], lossless: Collection[int]) -> tuple[tuple[str, str], ...]:
    """The map in which lossless priorities have a buffer of their own, the others theirs as before."""
    free = min(set(range(8)) - {where[n] for n in range(8) if n not in lossless})
    return (("BUFFERS", ",".join(str(free if n in lossless else where[n]) for n in range(8))),)


GUARANTEED = read_limit("roce-ets-starved.percent")
BUSY = read_limit("roce-ets-starved.other_percent")
_MOST = 90  # percent of the link for RDMA, in the step that corrects it


@rule("roce-ets-starved", each=readable_paths, merge=merge_alike)
def roce_ets_starved(context: RuleContext, qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    qos, priority = qos_path.qos, qos_path.priority
    if len(qos.prio_tc) < 8 or len(qos.tc_tsa) < 8:
        return qos_path.unknown("not-read", fact="its traffic class queues")
    if set(qos.tc_tsa) == {"vendor"} and len(set(qos.prio_tc)) == 8:
        return qos_path.passes()
    is_guessed = context.lists_whole and priority is None and len(qos_path.protected) == 1
    priority = min(qos_path.protected) if is_guessed else priority  # the lossless one, whatever marks RDMA
    if priority is None:
        if qos_path.protected:
            return qos_path.unknown("not-known", fact="which priority RDMA uses")
        return qos_path.not_applicable("not-configured", detail="PFC is off: RDMA has no class of its own")
    queue = qos.prio_tc[priority]
    if not 0 <= queue < 8:
        return qos_path.unknown("not-read", fact="its traffic class queues")
    sent = _bytes_sent(context, netdev)
    others, text = _compute_share(sent, [n for n in range(8) if n != priority]), None
    if qos.tc_tsa[queue] == "ets" and len(qos.tc_bandwidth) == 8:
        share = qos.tc_bandwidth[queue]
        if share < context.threshold(GUARANTEED) and (others is None or others > context.threshold(BUSY)):
            text = f"ETS guarantees {share}% to the queue of RDMA (priority {priority}, queue {queue})"
    situation = "shares" if text else ""
    if is_guessed and not text:
        return qos_path.unknown("not-known", fact="which priority RDMA uses")
    if len(set(qos.prio_tc)) == 1 and priority in qos_path.protected and others is None:
        text = text or f"all 8 priorities share one queue ({queue}): a pause of RDMA stops all of them"
    strict = [n for n in range(8) if qos.tc_tsa[qos.prio_tc[n] & 7] == "strict"]
    ahead = [n for n in strict if qos.prio_tc[n] != queue and qos.tc_tsa[queue] != "vendor"]
    same = [0] if priority != 0 and qos.prio_tc[0] == queue else []
    for which, words in ((ahead, "goes before RDMA in strict queues"), (same, "shares the queue of RDMA")):
        busy = _compute_share(sent, which)
        if busy is not None and busy > context.threshold(BUSY):
            text = text or f"priority {format_ranges(which)} {words} and sent {busy:.0f}% of all bytes"
    if not text:
        return qos_path.passes()
    rows = (
        f"queue of priority 0 to 7: {qos_path.qos.prio_tc}, {qos_path.qos.tc_tsa}, percent {qos_path.qos.tc_bandwidth}"
    )
    return fail_port(
        qos_path,
        text,
        impact="When others send, this queue gets only its share of the link.",
        severity=qos_path.each.severity("warning"),
        situation=situation,
        values=_share_link(qos_path) if situation else (),
        evidence=(
            Evidence(f"queues of {netdev.label}", rows, f"dcb ets show dev {netdev.label}"),
            *path_evidence(qos_path),
        ),
        confidence="medium",
    )


def _bytes_sent(context: RuleContext, netdev: Netdev) -> list[int | None]:
    now = netdev_counters(netdev)
    return [context.counter_delta(f"netdev:{netdev.id}", f"tx_prio{n}_bytes", now) for n in range(8)]


def _compute_share(sent: list[int | None], which: list[int]) -> float | None:
    """The share of some priorities in what was sent; None where that is not known, or nothing was sent."""
    known = [count for count in sent if count is not None]
    if len(known) < 8 or not sum(known):
        return None
    return 100 * sum(known[n] for n in which) / sum(known)


def _share_link(qos_path: QosPath) -> tuple[tuple[str, str], ...]:
    """Shares with most of the link for the queue of RDMA: of ETS queues the others keep their proportions."""
    qos, queue = qos_path.qos, qos_path.qos.prio_tc[qos_path.priority or 0]
    others = {n: share for n, share in enumerate(qos.tc_bandwidth) if qos.tc_tsa[n] == "ets" and n != queue and share}
    shares = {n: (100 - _MOST) * share // sum(others.values()) for n, share in others.items()}
    shares[queue] = 100 - sum(shares.values())
    return (("SHARES", ",".join(str(shares.get(n, 0)) for n in range(8))),)


ENOUGH = read_limit("roce-tc-rate-limited.percent")


@rule("roce-tc-rate-limited", each=readable_paths, merge=merge_alike)
def roce_tc_rate_limited(context: RuleContext, qos_path: QosPath) -> Result:
    netdev = qos_path.netdev
    qos, rates = qos_path.qos, qos_path.qos.max_rate_kbit_s
    link = netdev.speed_gbit_s or qos_path.each.port.rate_gbit_s
    if not rates:
        return qos_path.unknown("not-read", fact="its rate limits")
    if not any(rates):
        return qos_path.passes()
    if not link:
        return qos_path.unknown("not-known", fact="the rate of its link")
    low = [n for n, rate in enumerate(rates) if rate and rate / 1e6 < link * context.threshold(ENOUGH) / 100]
    if not low:
        return qos_path.passes()
    if qos_path.priority is not None and qos_path.priority < len(qos.prio_tc):
        queue = qos.prio_tc[qos_path.priority]
        if queue not in low:
            return qos_path.passes()
    elif len(low) == len(rates):
        queue = low[0]
    else:
        return qos_path.unknown("not-known", fact="some queues are limited, and which one RDMA uses")
    limit = rates[queue] / 1e6
    return fail_port(
        qos_path,
        f"queue {queue} of RDMA is limited to {limit:g} Gb/s, the link runs at {link:g}",
        impact=f"{100 * (1 - limit / link):.0f}% of the link cannot be used.",
        severity=qos_path.each.severity("warning"),
        values=(("LIMITS", ",".join(f"{0 if n == queue else rate / 1e6:.0f}" for n, rate in enumerate(rates))),),
        evidence=(
            Evidence(
                f"limits of queue 0 to 7 of {netdev.label}, kbit/s",
                ",".join(map(str, rates)),
                f"dcb maxrate show dev {netdev.label}",
            ),
        ),
    )
