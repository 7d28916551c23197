"""InfiniBand ports that are down, degraded or cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.counters import PORT_COUNTER_BITS
from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.node import Event
from agent.rules.cabling import (
    board_model,
    describe_lost_rails,
    find_known_rate,
    judge_by_role,
    merge_whole_node,
    position_on_card,
    quote_tools,
)
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, severity_by_role, why_unreachable
from agent.rules.infiniband.ports import (
    IbPort,
    device_number,
    has_no_infiniband,
    ib_ports,
    is_held_down,
    is_rate_unparsed,
)
from agent.rules.node_wide import merge_if_on_all, on_all
from agent.rules.rule import NODE, Fail, Result, Unknown, rule, split_subjects
from agent.rules.wording import count_of, find_majority, format_share_lost, join_labels

_MEANING = {
    "Polling": "no signal from the other end: cable, module or switch port",
    "Disabled": "disabled by an administrator, the subnet manager or firmware",
    "PortConfigurationTraining": "retrains repeatedly: a bad cable or module",
    "LinkErrorRecovery": "recovers from errors repeatedly: a bad cable or module",
    "LinkUp": "physically up, but the port is not active",
}

# Keys of the steps on the page of ib-port-down
_SITUATIONS = {
    "Polling": "polling",
    "Disabled": "disabled",
    "PortConfigurationTraining": "training",
    "LinkErrorRecovery": "training",
    "LinkUp": "linkup",
}


@rule("ib-port-down")
def ib_port_down(context: RuleContext) -> Iterator[Result]:
    ports, others = split_subjects(ib_ports(context))
    yield from others
    yield from judge_by_role(context, ports, _fail_port_down, _merge_rails)


def _merge_rails(ports: Sequence[IbPort], faults: Sequence[Fail]) -> Fail:
    """No rail is active: one finding. Virtual functions are not down because of cables and switches."""
    merged, situation = merge_whole_node(faults, "InfiniBand"), faults[0].situation
    if any(fault.situation != situation for fault in faults) or not ports[0].nic.virtual_function:
        return merged
    return replace(merged, summary=f"{merged.summary}; each is {_explain_down(ports[0])[0]}", situation=situation)


def _fail_port_down(context: RuleContext, ib_port: IbPort, confidence: str) -> Fail:
    port = ib_port.port
    why, situation = _explain_down(ib_port)
    return ib_port.fail(
        summary=f"{port.state}, physical state {port.phys_state}: {why}"
        if port.phys_state
        else f"{port.state}, physical state unknown",
        impact=describe_lost_rails(context, ib_port.nic),
        evidence=(
            ib_port.evidence("state", port.state or "", "state"),
            ib_port.evidence("physical state", port.phys_state or "not known", "phys_state"),
            *quote_tools(context, ib_port),
        ),
        severity=severity_by_role("error", ib_port.nic),
        confidence=confidence,
        situation=situation,
    )


def _explain_down(ib_port: IbPort) -> tuple[str, str]:
    """What the physical state means, and the key of the steps. A virtual function has no wire of its own."""
    nic, physical = ib_port.nic, ib_port.port.phys_state or ""
    if is_held_down(ib_port.port) and not nic.virtual_function:
        return (
            "a port without a wire of its own (virtual function, Socket Direct) that its link policy or the subnet "
            "manager holds down",
            "vf-policy",
        )
    if not nic.virtual_function:
        return _MEANING.get(physical, "not in use"), _SITUATIONS.get(physical, "")
    if not (nic.node_guid or "1").strip("0:"):
        return "a virtual function whose host has not given it a node GUID", "vf-guid"
    if physical == "LinkUp":
        return "a virtual function that its link policy or the subnet manager holds down", "vf-policy"
    return "a virtual function; the port of its physical function, on the host, is not up", "vf-physical"


# Gb/s that a port of each generation can do: ConnectX-4, 5, 6, 7, 8, BlueField-2, BlueField-3 (PCI device ids)
_GENERATION = {0x1013: 100, 0x1017: 100, 0x1019: 100, 0x101B: 200, 0x1021: 400, 0x1023: 800, 0xA2D6: 200, 0xA2DC: 400}
_CABLE_LANES = 4  # 8X and 12X are links inside of switches; no NIC has them


@rule("ib-rate-degraded")
def ib_rate_degraded(context: RuleContext) -> Iterator[Result]:
    ports: list[IbPort] = []
    for port in ib_ports(context):
        if not isinstance(port, IbPort):
            yield port
        elif port.port.state != "ACTIVE":
            yield port.not_applicable(
                "other-kind", detail=f"{port.port.state}: a rate is reported for active ports only"
            )
        elif is_rate_unparsed(context, port):
            yield port.unknown("undecided", detail="SDR on an active port: the kernel has no name for its speed")
        elif port.port.rate_gbit_s is None:
            yield port.unknown("not-read", fact="its rate")
        else:
            ports.append(port)
    groups = [_rate_group(context, port) for port in ports]
    answers = [
        _judge_rate_degraded(context, port, [o for o, other in zip(ports, groups, strict=True) if other == group])
        for port, group in zip(ports, groups, strict=True)
    ]
    slow = [answer for answer in answers if isinstance(answer, Fail) and answer.severity == "info"]
    yield from (answer for answer in answers if answer not in slow)
    yield from merge_if_on_all(slow, len(slow), "slower than the NIC supports, all alike")


def _rate_group(context: RuleContext, ib_port: IbPort) -> tuple[object, ...]:
    """What ports have in common that should run alike: second ports of all cards may be on a slower fabric."""
    nic = ib_port.nic
    return nic.role, board_model(context, nic), position_on_card(nic, ib_port.port.port)


def _judge_rate_degraded(context: RuleContext, ib_port: IbPort, alike: list[IbPort]) -> Result:
    rate = ib_port.port.rate_gbit_s or 0.0
    rates = [other.port.rate_gbit_s or 0.0 for other in alike]
    usual_rate, fastest = find_majority(rates), max(rates)
    if usual_rate is not None and rate < usual_rate:
        return _fail_rate_degraded(ib_port, usual_rate, f"most ports of this board run at {usual_rate:g}", "high")
    if rate < fastest:  # most are slow: no norm, where one shows what the fabric can do
        return _fail_rate_degraded(ib_port, fastest, f"another port of this board runs at {fastest:g}", "medium")
    more = _rate_with_all_lanes(ib_port)
    if more is not None:
        return _fail_rate_degraded(ib_port, more, f"{_far_end(ib_port)} and this port support {more:g}", "medium")
    was = find_known_rate(context, ib_port.subject)
    if was is not None and rate < was:
        fault = _fail_rate_degraded(ib_port, was, f"in an earlier run it had {was:g}", "medium")
        return fault if _has_fewer_lanes(ib_port) else replace(fault, severity=severity_by_role("warning", ib_port.nic))
    if ib_port.port.width == "1X":
        return _fail_rate_degraded(ib_port, rate * _CABLE_LANES, "one lane of four", "medium")
    expected_rate = _GENERATION.get(device_number(context, ib_port.nic) or 0)
    if expected_rate and rate < expected_rate:
        return _lower_to_info(
            _fail_rate_degraded(ib_port, expected_rate, f"its generation can do {expected_rate}", "low")
        )
    return ib_port.passes()


def _has_fewer_lanes(ib_port: IbPort) -> bool:
    return 0 < _parse_lanes(ib_port.port.width or "") < _CABLE_LANES


def _fail_rate_degraded(ib_port: IbPort, rate_due: float, because: str, confidence: str) -> Fail:
    port, rate = ib_port.port, ib_port.port.rate_gbit_s or 0.0
    lanes = f" ({port.width} {port.speed})" if port.width and port.speed else ""
    return ib_port.fail(
        summary=f"runs at {rate:g} Gb/s{lanes}; {because}",
        impact=f"{rate / 8:g} instead of {rate_due / 8:g} GB/s in each direction "
        f"({format_share_lost(rate, rate_due)} less); "
        "collectives wait for the slowest rail.",
        evidence=(ib_port.evidence("rate", f"{rate:g} Gb/s{lanes}", "rate"), *_far_end_evidence(ib_port)),
        severity=severity_by_role("error", ib_port.nic),
        confidence=confidence,
    )


def _rate_with_all_lanes(ib_port: IbPort) -> float | None:
    """The rate in Gb/s with the lanes that both ends support; None where they all run, or no more are known."""
    far, port = ib_port.port.neighbor, ib_port.port
    if far is None or far.could_width is None or far.width is None or far.rate_gbit_s != port.rate_gbit_s:
        return None
    if port.width not in (far.width, None):
        return None
    run, could = _parse_lanes(far.width), min(_parse_lanes(far.could_width), _CABLE_LANES)
    return (port.rate_gbit_s or 0.0) * could / run if could > run > 0 else None


def _parse_lanes(width: str) -> int:
    digits = width.removesuffix("X")
    return int(digits) if digits in ("1", "2", "4", "8", "12") else 0


def _far_end(ib_port: IbPort) -> str:
    far = ib_port.port.neighbor
    return f"port {far.port} of {far.name or far.node_guid or 'the switch'}" if far else ""


def _far_end_evidence(ib_port: IbPort) -> tuple[Evidence, ...]:
    far = ib_port.port.neighbor
    if far is None:
        return ()
    could = " ".join(word for word in (far.could_width, far.could_speed) if word)
    value = _far_end(ib_port) + (f"; both ends could be {could}" if could else "")
    return (Evidence(f"far end of {ib_port.label}", value, far.source),)


def _lower_to_info(fault: Fail) -> Fail:
    impact = f"{fault.impact} Where the fabric is slower by design, nothing is lost."
    return replace(fault, impact=impact, severity="info")


@rule("ib-rate-mixed")
def ib_rate_mixed(context: RuleContext) -> Iterator[Result]:
    ports: list[IbPort] = []
    active: list[IbPort] = []
    for port in ib_ports(context):
        if not isinstance(port, IbPort):
            if isinstance(port, Unknown):
                yield port
        elif port.nic.role == "rail" and port.port.state == "ACTIVE":
            active.append(port)
            if port.port.rate_gbit_s is None or is_rate_unparsed(context, port):
                yield port.unknown("not-known", fact="its rate")
            else:
                ports.append(port)
    sizes = [fault for fabric in _ports_by_subnet(active) if (fault := _find_small_packets(fabric)) is not None]
    yield from sizes
    if len(ports) < 2:
        if sizes:
            return
        if context.why_probe_failed("rdma") is None or has_no_infiniband(context):
            yield NODE.not_applicable("nothing-to-compare", detail="fewer than two active InfiniBand rails")
        return
    mixed = [fabric for fabric in _ports_by_subnet(ports) if len({ib_port.port.rate_gbit_s for ib_port in fabric}) > 1]
    if mixed or not sizes:
        yield _fail_rate_mixed(mixed[0]) if mixed else NODE.passes()


def _find_small_packets(ports: list[IbPort]) -> Fail | None:
    """Rails of one fabric whose packets are smaller than those of most."""
    known = [ib_port for ib_port in ports if ib_port.port.active_mtu]
    usual = find_majority([ib_port.port.active_mtu or 0 for ib_port in known])
    small = [ib_port for ib_port in known if usual and (ib_port.port.active_mtu or 0) < usual]
    if not small:
        return None
    labels = [f"{ib_port.label} {ib_port.port.active_mtu}" for ib_port in small]
    return NODE.fail(
        summary=f"InfiniBand rails send packets of different sizes: most {usual} bytes; {join_labels(labels)}",
        impact="Connections over these rails take the smaller size: more packets for the same data.",
        evidence=tuple(
            Evidence(
                f"active MTU of {ib_port.label}", str(ib_port.port.active_mtu), f"ibv_devinfo -d {ib_port.nic.label}"
            )
            for ib_port in known
        ),
        severity="warning",
        confidence="medium",
        cause="mtu",
        situation="mtu",
        ids=frozenset().union(*(ib_port.ids for ib_port in small)),
    )


def _ports_by_subnet(ports: list[IbPort]) -> list[list[IbPort]]:
    """Ports by the subnet manager that they answer to: a second fabric may be slower by design."""
    by_subnet: dict[int | None, list[IbPort]] = {}
    for port in ports:
        by_subnet.setdefault(port.port.sm_lid, []).append(port)
    return list(by_subnet.values())


def _fail_rate_mixed(ports: list[IbPort]) -> Fail:
    rates = [ib_port.port.rate_gbit_s or 0.0 for ib_port in ports]
    slowest, fastest = min(rates), max(rates)
    slow = [ib_port for ib_port in ports if (ib_port.port.rate_gbit_s or 0.0) < fastest]
    return NODE.fail(
        summary=f"InfiniBand rails run at {slowest:g} and {fastest:g} Gb/s; "
        f"slower: {join_labels([port.label for port in slow])}",
        impact="every rail runs as fast as the slowest: "
        f"{format_share_lost(slowest, fastest)} less on the faster ones.",
        evidence=tuple(ib_port.evidence("rate", f"{ib_port.port.rate_gbit_s:g} Gb/s", "rate") for ib_port in ports),
        ids=frozenset().union(*(ib_port.ids for ib_port in slow)),
    )


@rule("ib-rate-unparsed", each=ib_ports, merge=on_all("the kernel cannot name the speed of any InfiniBand port"))
def ib_rate_unparsed(context: RuleContext, ib_port: IbPort) -> Result:
    port = ib_port.port
    if port.state != "ACTIVE":
        return ib_port.not_applicable("other-kind", detail=f"{port.state}: a rate is reported for active ports only")
    if port.rate_gbit_s is None:
        return ib_port.unknown("not-read", fact="its rate")
    if port.speed == "SDR" and device_number(context, ib_port.nic) is None:
        return ib_port.unknown("not-shown", detail="SDR, and which NIC it is could not be read")
    if not is_rate_unparsed(context, ib_port):
        return ib_port.passes()
    return ib_port.fail(
        summary=f"{port.rate_gbit_s:g} Gb/s ({port.width} SDR) on {ib_port.nic.model or 'a ConnectX-5 or later'}: "
        f"kernel {context.node.kernel or 'unknown'} has no name for its speed",
        impact="the real rate is not known: up to 40 times what is shown. Rules about rates cannot judge this port.",
        evidence=(ib_port.evidence("rate", f"{port.rate_gbit_s:g} Gb/s ({port.width} SDR)", "rate"),),
        severity="info",
    )


@rule("ib-limited-pf")
def ib_limited_pf(context: RuleContext) -> Iterator[Result]:
    limited = [nic for nic in context.topology.nics if nic.limited]
    seen = [] if context.virtual_machine else [(nic, _refusals(context, nic)) for nic in context.topology.nics]
    refused = [(nic, lines) for nic, lines in seen if lines]
    if limited:
        yield _owned_by(limited)
    for nic, lines in refused:
        times = sum(event.count for event in lines)
        yield Fail(
            subject=f"pci:{nic.pci}",
            label=nic.label,
            summary=f"its firmware refused a register {count_of(times, 'times')} since boot, and it is no function of "
            "a fabric manager",
            impact="Some of its counters and its module cannot be read; its traffic is not affected.",
            remedy="Look at its firmware; where a fabric manager owns it, leave it out of jobs and monitoring.",
            evidence=tuple(Evidence("kernel log", event.text, event.source) for event in lines[:2]),
            severity="info",
            confidence="low",
            cause="refused",
            ids=frozenset({nic.id, nic.pci or nic.id}),
        )
    if not limited and not refused and (context.why_bus_unread is None or context.why_probe_failed("rdma") is None):
        yield NODE.not_applicable(
            "no-such-device", detail="no function that a fabric manager owns, and none that refuses its registers"
        )


def _refusals(context: RuleContext, nic: Nic) -> list[Event]:
    """What the log has of that kind of a NIC for jobs."""
    if (
        nic.limited
        or nic.software
        or nic.virtual_function
        or nic.pci is None
        or why_unreachable(find_function(context, nic))
    ):
        return []
    ids = (nic.pci, f"pci:{nic.pci}")
    return [
        event for event in context.events if (event.kind, event.code) == ("mlx5", "access-reg") and event.subject in ids
    ]


def _owned_by(limited: list[Nic]) -> Fail:
    return NODE.fail(
        summary=f"{len(limited)} management functions, not NICs for jobs; exclude them from NCCL_IB_HCA: "
        + join_labels([nic.label for nic in limited]),
        impact="A job that uses one of them hangs: NCCL_IB_HCA must exclude them.",
        remedy="Leave them to the fabric manager; name the rails in NCCL_IB_HCA, and leave them out of monitoring.",
        evidence=tuple(
            Evidence(nic.label, nic.limited or "", f"lspci -vv -s {nic.pci or nic.id}") for nic in limited[:8]
        ),
        severity="info",
        cause="owned",
        ids=frozenset(nic.id for nic in limited),
    )


_OF_SWITCHES = "port_rcv_switch_relay_errors"  # no NIC relays
_BITS = {name: bits for name, bits in PORT_COUNTER_BITS.items() if name != _OF_SWITCHES}


@rule("ib-counter-saturated", each=ib_ports, merge=on_all("counters at their maximum on every InfiniBand port"))
def ib_counter_saturated(ib_port: IbPort) -> Result:
    counters = ib_port.port.counters
    if not any(name in counters for name in _BITS):
        return ib_port.unknown("not-read", fact="its error counters")
    full = [name for name, bits in _BITS.items() if counters.get(name) == (1 << bits) - 1]
    if not full:
        return ib_port.passes()
    return ib_port.fail(
        summary=f"counts no further: {', '.join(f'{name} {counters[name]}' for name in full)}",
        impact=f"{len(full)} of its counters show no new error: flaps and bit errors go unseen.",
        evidence=tuple(
            Evidence(name, str(counters[name]), f"{ib_port.evidence('', '', 'counters').source}/{name}")
            for name in full
        ),
        severity="info",
    )
