"""Transceivers and cables: faults and optical power."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agent.model.counters import netdev_counters
from agent.model.finding import SEVERITIES, Evidence
from agent.model.nic import Lane, Netdev, Nic, Port, TransceiverModule
from agent.model.node import Event
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import NicPort, about_function, about_nic, find_unlisted, quote_log, severity_by_role
from agent.rules.pages import read_limit
from agent.rules.roce.ports import RocePort, cabled_interfaces, report_hidden, roce_ports
from agent.rules.rule import NODE, Fail, NamedSubject, NotApplicable, Result, Subject, Unknown, rule
from agent.rules.wording import count_of, find_median

CABLES = ("copper", "active_copper")  # they measure nothing


class PluggedModule(Subject, frozen=True):
    """One interface of a RoCE port, with what is plugged into it."""

    each: RocePort
    netdev: Netdev
    module: TransceiverModule | None

    @property
    def about(self) -> Subject:
        """The port; of a bond the interface."""
        port, netdev, ids = self.each, self.netdev, self.each.ids | {self.netdev.id}
        if netdev is port.netdev:
            return NamedSubject(port.subject, port.label, ids)
        return NamedSubject(f"netdev:{netdev.id}", f"{port.label} {netdev.label}", ids)

    @property
    def name(self) -> str:
        """Maker, part and serial number of the module, for people who go and change it."""
        module = self.module
        return " ".join(filter(None, (module.vendor, module.part, module.serial))) if module else ""


def plugged_modules(context: RuleContext, down: bool = False) -> Iterator[PluggedModule | Result]:
    """Every interface with a cable of a RoCE port of a rail or storage NIC; an answer for every other.

    Virtual functions and machines have no module. `down`: ports that are not active, too.
    """
    for port in roce_ports(context, down):
        if not isinstance(port, RocePort):
            yield port
        elif context.virtual_machine or port.nic.virtual_function:
            yield port.not_applicable("guest", detail="a virtual function or machine: it sees no module")
        elif silent := report_hidden(port):
            yield silent
        else:
            wires = cabled_interfaces(context, port)
            yield from (PluggedModule(port, netdev, netdev.module) for netdev in wires)
            if not wires:
                yield port.unknown("not-shown", detail="the members of its bond are not visible here")


def why_unread(one: PluggedModule) -> Unknown:
    """Why nothing is known of the module; what this process may not read is one reason for the whole node."""
    why = quote_source(one.netdev.module_reason) or Reason("not-read", fact="its module")
    return (NODE if one.netdev.module_reason_code == "needs-root" else one).unknown(why)


_COUNTERS = {
    "module_high_temp": "the module was too hot",
    "module_bus_stuck": "the bus to the module hung",
    "module_bad_shorted": "the cable or module is shorted",
}
_EVENTS = {
    "module": "the NIC reported an error of its module",
    "temperature": "the NIC reported a temperature that is too high",
    "slot-power": "the PCIe slot gives the NIC too little power for its modules",
}


@rule("port-module-fault")
def port_module_fault(context: RuleContext) -> Iterator[Result]:
    ports = (
        _judge_module_fault(context, one) if isinstance(one, PluggedModule) else one
        for one in plugged_modules(context, down=True)
    )
    for answer in dict.fromkeys(ports):  # what this process may not read is the node's answer: once
        if not (isinstance(answer, NotApplicable) and answer.subject == "node"):
            yield answer
    others = [(nic, port) for nic in context.topology.nics for port in nic.ports if port.link_layer == "InfiniBand"]
    for nic, port in others:
        yield _judge_infiniband(context, nic, port)
    for pci in find_unlisted(context, ("mlx5",), _EVENTS):
        nic = Nic(id=pci, label=f"NIC {pci}", pci=pci)
        fault = _fail_module_fault(about_nic(nic), nic, _logged_events(context, nic, Port(port=1)))
        codes = {event.code for event in context.events if event.subject == pci and event.code in _EVENTS}
        yield replace(fault, severity="info" if codes == {"slot-power"} else "warning", confidence="low")
    yield from _find_unplugged(context)
    looked = context.why_bus_unread is None or context.why_probe_failed("rdma") is None
    if looked and not any(nic.ports for nic in context.topology.nics):
        yield NODE.not_applicable("no-such-device", detail="no port of an RDMA device")


def _find_unplugged(context: RuleContext) -> Iterator[Fail]:
    """Cables that a log alone shows as pulled: a port that had none since the start is a note at most."""
    for pci in find_unlisted(context, ("unplugged",), (None,)):
        from agent.rules.link_flaps import is_of_start  # lazy: few logs show a cable that was pulled

        events = [event for event in context.events if event.kind == "unplugged" and event.subject == pci]
        was_used = any(event.detail.get("before") == "used" for event in events)
        if not was_used and all(is_of_start(event.logged) for event in events):
            continue
        yield about_function(context, pci).fail(
            label=f"NIC {pci}",
            summary="by the log, its cable was unplugged and not plugged in again "
            f"(module {events[0].detail.get('module')})",
            impact="What this means here depends on what the port is for: one without a cable carries nothing.",
            evidence=tuple(quote_log(event) for event in events[:4]),
            severity="warning" if was_used else "info",
            confidence="low",
            cause="unplugged",
            situation="unplugged",
        )


def _judge_module_fault(context: RuleContext, one: PluggedModule) -> Result:
    source = f"ethtool -m {one.netdev.label}"
    faults = [(s, text, Evidence(text, value, source)) for s, text, value in _find_module_faults(one.module)]
    now = netdev_counters(one.netdev)
    for name, meaning in _COUNTERS.items():
        move = context.counter_delta(f"netdev:{one.netdev.id}", name, now)
        if move:
            row = Evidence(name, f"+{move}", f"ethtool -S {one.netdev.label}")
            faults.append(("error", meaning, row))
    faults += _logged_events(context, one.each.nic, one.each.port)
    if faults:
        return _fail_module_fault(one, one.each.nic, faults, one.name)
    return why_unread(one) if one.module is None else one.passes()


def _find_module_faults(module: TransceiverModule | None) -> Iterator[tuple[str, str, str]]:
    """What a module shows against itself: severity, words, value."""
    if module is None:
        return
    if module.state == "fault":
        yield "error", "the module reports a fault", "state fault"
    readings = (("temperature", "c", "C", module.temperature_c, ("high",)),
                ("voltage", "v", "V", module.voltage_v, ("high", "low")))  # fmt: skip
    for what, unit, sign, value, sides in readings:
        rows = (_exceeded(module, what, (unit, sign), value, (side, level)) for level in _SEVERITIES for side in sides)
        if fault := next(filter(None, rows), None):
            yield fault


_SEVERITIES = {"alarm": "error", "warning": "warning"}  # of a module's own limits


def _exceeded(
    module: TransceiverModule, what: str, units: tuple[str, str], value: float | None, limit_of: tuple[str, str]
) -> tuple[str, str, str] | None:
    """A reading beyond one of the module's own limits, or that the module flags."""
    side, level = limit_of
    limit = module.thresholds.get(f"{what}_{side}_{level}_{units[0]}")
    reading = "flagged" if value is None else f"{value:g} {units[1]}"
    if value is not None and limit and (value >= limit if side == "high" else value <= limit):
        words = f"its {level} limit is {limit:g}" if side == "high" else f"its low {level} limit is {limit:g}"
        return _SEVERITIES[level], f"the module has {reading}, {words}", reading
    if f"{what}_{side}_{level}" in module.flags:
        return _SEVERITIES[level], f"the module flags its {what}: {side} {level}", reading
    return None


def _logged_events(context: RuleContext, nic: Nic, port: Port) -> list[tuple[str, str, Evidence]]:
    """Events of the function in the kernel log. What was in the past may be fixed where the port is active."""
    severity = "warning" if port.state == "ACTIVE" else "error"
    events_by_text: dict[str, Event] = {}
    for event in context.events:
        if event.kind == "mlx5" and event.code in _EVENTS and nic.pci and event.subject in (nic.pci, f"pci:{nic.pci}"):
            events_by_text[event.code] = event
    return [
        (
            severity if code == "module" else "warning",
            f"{_EVENTS[code]} ({count_of(event.count, 'times')} since boot)",
            Evidence("kernel log", event.text, event.source),
        )
        for code, event in events_by_text.items()
    ]


def _judge_infiniband(context: RuleContext, nic: Nic, port: Port) -> Result:
    about = NicPort(nic, port)
    silent = context.virtual_machine or nic.virtual_function or nic.limited or nic.role not in ("rail", "storage")
    faults = [] if silent else _logged_events(context, nic, port)
    if not faults:
        return about.not_applicable(
            "not-measured", detail="the interface of an InfiniBand port cannot read its module (mlxlink -m can)"
        )
    return _fail_module_fault(about, nic, faults)


def _fail_module_fault(about: Subject, nic: Nic, faults: list[tuple[str, str, Evidence]], name: str = "") -> Fail:
    worst = max((severity for severity, _, _ in faults), key=SEVERITIES.index)
    return about.fail(
        summary="; ".join(text for _, text, _ in faults) + (f": {name}" if name else ""),
        impact="When the module switches itself off, the link goes down and jobs end.",
        evidence=tuple(row for _, _, row in faults),
        severity=severity_by_role(worst, nic) or "info",
    )


_DARK = "dark"  # the cause where no lane receives light
DARK_DBM = -20.0  # no receiver of these rates works below: on an active port such a lane is not in use
_ALL_LANES = 4
_FEWEST_LANES, _WEAK_DB = 2, 6.0  # others to compare with; lanes of one fibre differ by 3 dB at most
_SPREAD = read_limit("roce-optics-power.spread_db")
_FLAGS = ("rx_los", "rx_lol", "tx_fault", "tx_los", "tx_lol")


@rule("roce-optics-power")
def roce_optics_power(context: RuleContext) -> Iterator[Result]:
    # What this process may not read is the node's answer: once, not for every port
    yield from dict.fromkeys(
        _judge_optics_power(context, one) if isinstance(one, PluggedModule) else one for one in plugged_modules(context)
    )


def _judge_optics_power(context: RuleContext, one: PluggedModule) -> Result:
    module = one.module
    if module is None:
        return why_unread(one)
    if module.media in CABLES:
        return one.not_applicable("not-measured", detail="a copper cable: it measures no light")
    if module.state not in (None, "ready"):
        return one.not_applicable("not-in-use", detail=f"its module is in state {module.state}")
    seen = [lane for lane in module.lanes if is_lit(lane)]
    if not seen and one.netdev.operstate is None and (dark := _find_all_dark(module)):
        readings = [(f"lane {lane.lane}", f"{lane.rx_power_dbm:g} dBm") for lane in dark]
        fault = _fail_optics_power(one, "info", ["it sends light, and receives none on any lane"], readings)
        return replace(
            fault, cause=_DARK, impact="Its link is down, or no fibre is plugged in: the port carries nothing."
        )
    if not seen:
        return one.not_applicable("not-measured", detail="its module measures no light on any lane")
    faults = [row for lane in seen for row in find_lane_faults(lane, module)]
    faults += [_describe_dark(lane) for lane in _find_dark_lane(module) if one.netdev.operstate != "up"]
    for severity in ("error", "warning"):
        rows = [(text, evidence) for grave, text, evidence in faults if grave == severity]
        if rows:
            return _fail_optics_power(one, severity, [text for text, _ in rows], [what for _, what in rows])
    powers = [lane.rx_power_dbm for lane in seen if lane.rx_power_dbm is not None]
    spread = max(powers, default=0.0) - min(powers, default=0.0)
    if spread > context.threshold(_SPREAD):
        readings = [
            (f"lane {lane.lane}", f"{lane.rx_power_dbm:g} dBm") for lane in seen if lane.rx_power_dbm is not None
        ]
        return _fail_optics_power(one, "info", [f"received lanes differ by {spread:.1f} dB"], readings)
    return one.passes()


def is_lit(lane: Lane) -> bool:
    """Whether anything is measured on a lane, and light comes in where that is measured."""
    if lane.rx_power_dbm is None:
        return lane.tx_power_dbm is not None and lane.tx_power_dbm > DARK_DBM
    return lane.rx_power_dbm > DARK_DBM


def _find_dark_lane(module: TransceiverModule) -> list[Lane]:
    """The one of four or more lanes that receives no light while the others do: links use one, two, or all of them."""
    dark = [lane for lane in module.lanes if not is_lit(lane)]
    return dark if len(dark) == 1 and len(module.lanes) >= _ALL_LANES else []


def _find_all_dark(module: TransceiverModule) -> list[Lane]:
    """The lanes of a module that receives no light, where all of them measure it and one sends some."""
    sends = any(lane.tx_power_dbm is not None and lane.tx_power_dbm > DARK_DBM for lane in module.lanes)
    measured = all(lane.rx_power_dbm is not None for lane in module.lanes)
    return list(module.lanes) if sends and measured else []


def _describe_dark(lane: Lane) -> tuple[str, str, tuple[str, str]]:
    reading = "no reading" if lane.rx_power_dbm is None else f"{lane.rx_power_dbm:g} dBm"
    return "warning", f"lane {lane.lane} has no light ({reading}), the others have", (f"lane {lane.lane}", reading)


def find_lane_faults(lane: Lane, module: TransceiverModule) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """What is wrong with a lane: severity, words, and the evidence as name and value."""
    for name, unit, text, value in (
        ("rx_power", "dBm", "received", lane.rx_power_dbm),
        ("tx_power", "dBm", "sent", lane.tx_power_dbm),
        ("tx_bias", "mA", "has a laser bias of", lane.tx_bias_ma or None),  # 0: the laser is off
    ):
        if value is None or value <= DARK_DBM:  # a bias is more in any case
            continue
        for level, severity in _SEVERITIES.items():
            low = module.thresholds.get(f"{name}_low_{level}_{unit.lower()}")
            high = module.thresholds.get(f"{name}_high_{level}_{unit.lower()}")
            if low is None or high is None or low >= high or low <= value <= high:
                continue
            side, limit = ("low", low) if value < low else ("high", high)
            what = f"{name.replace('_', ' ')} of lane {lane.lane}"
            summary = f"lane {lane.lane} {text} {value:g} {unit}, {side} {level} limit {limit:g}"
            yield severity, summary, (what, f"{value:g} {unit} (limit {limit:g} {unit})")
    yield from _find_weak(lane, module)
    for flag in lane.flags:
        if flag in _FLAGS:
            severity = "error" if flag == "tx_fault" else "warning"
            text = f"lane {lane.lane}: the module flags {flag.replace('_', ' ')}"
            yield severity, text, (f"flags of lane {lane.lane}", ", ".join(lane.flags))


def _find_weak(lane: Lane, module: TransceiverModule) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """A lane that receives far less than the others of a module that states no limits."""
    others = [other.rx_power_dbm for other in module.lanes if other.lane != lane.lane and is_lit(other)]
    powers = [power for power in others if power is not None]
    if "rx_power_low_alarm_dbm" in module.thresholds or len(powers) < _FEWEST_LANES or not is_lit(lane):
        return
    usual = find_median(powers)
    if lane.rx_power_dbm is not None and usual - lane.rx_power_dbm >= _WEAK_DB:
        text = f"lane {lane.lane} receives {lane.rx_power_dbm:g} dBm, the others {usual:.3g} dBm"
        row = (f"rx power of lane {lane.lane}", f"{lane.rx_power_dbm:g} dBm (the others {usual:.3g} dBm)")
        yield "warning", text, row


def _fail_optics_power(one: PluggedModule, severity: str, texts: list[str], rows: list[tuple[str, str]]) -> Fail:
    source = f"ethtool -m {one.netdev.label}"
    evidence = [Evidence(what, value, source) for what, value in dict.fromkeys(rows)]
    name = [Evidence("module", one.name, source)] if one.name else []
    return one.fail(
        summary="; ".join(texts[:4]) + (f"; and {len(texts) - 4} more" if len(texts) > 4 else ""),
        impact="Bit errors and link flaps follow: 3 dB less is half the light.",
        evidence=(*name, *evidence[:16]),
        severity=one.each.severity(severity),
        cause="spread" if severity == "info" else "",
    )
