"""Why ports have no link, or errors, as tools of NICs and Gaudi state it: mlxlink, manage_network_ifs.sh, ethtool,
opainfo.

Sources: NVIDIA MFT and Mellanox/mstflint (mlxlink); NVIDIA's list of link diagnostics per port (Monitor_opcode); the
status of Gaudi's script as public threads show it; cornelisnetworks/opa-fastfabric opainfo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.gpu.facts import normal_address
from probes.text import check_length, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_LIMIT_LINE = 300
_FIELD = lazy_pattern(r"(?P<name>[A-Z][\w ()/.-]{1,40}?(?: \[\w{1,8}\])?) {0,40}: (?P<value>\S.{0,200}?) {0,40}")
_JSON_FIELD = lazy_pattern(
    r'"(?P<name>[A-Z][\w ()/.-]{1,40}(?: \[\w{1,8}\])?)" ?: ?"?(?P<value>[^"{[]{1,200}?)"?[ \t},\]]{0,40}'
)
_JSON_LINE = lazy_pattern(r'^[ \t{,]{0,40}"[A-Z][\w ()/.-]{1,40}(?: \[\w{1,8}\])?" ?: ?["{\d]', re.MULTILINE)
_JSON_START = lazy_pattern(r'[{,]\s{0,40}(?=")')  # of an object or a member: each on a line of its own
_DEVICE = lazy_pattern(r"\b(?:mlxlink|mstlink)\b[^\n]{0,120}?(?: -d ?| --device[ =])(?P<device>[\w/.:-]{1,60})")
_DECIMAL = r"-?\d{1,6}(?:\.\d{1,6})?"
_MEASURED = lazy_pattern(
    rf"(?P<values>{_DECIMAL}(?:, ?{_DECIMAL}){{0,15}}) \[(?P<low>{_DECIMAL})\.\.(?P<high>{_DECIMAL})\]"
)
_CLOSED, _UNPLUGGED = "1", "1024"  # opcodes: closed by a command; nothing is plugged in
_NOT_ACTIVE = ("Physical LinkUp", "Polling", "Training", "Rx Disable", "Link error")
_NO_ISSUE = ("no issue was observed", "no issue observed")
_NO_LINK = lazy_pattern(r"^[ \t]*Link detected: (?:yes|no)(?: \((?P<reason>[^\n]{1,120})\))?[ \t\r]*$", re.MULTILINE)
_NOTHING_THERE = ("No cable", "Autoneg, No partner detected", "Autoneg, (No partner detected")  # netlink/settings.c
_RATES = ("Effective Physical BER", "Symbol BER")
_ERRORS_MATTER = 1e-12  # errors per bit behind the FEC: IEEE 802.3 and InfiniBand allow no more
_DEVLINK = lazy_pattern(
    r"(?:pci/(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])|auxiliary/\S{1,60})(?:/\d{1,6})?:"
)
_REPORTER_STATE = lazy_pattern(
    r"state (?P<state>healthy|error)(?: error (?P<errors>\d{1,12}))?(?: recover (?P<recoveries>\d{1,12}))?"
)
_GAUDI = lazy_pattern(r"(?P<device>(?:accel|hl)\d{1,3}):?")
_PORT = lazy_pattern(r"port {1,8}(?P<port>\d{1,3}):?\s{1,16}(?P<state>UP|DOWN)", re.IGNORECASE)
_COUNT = lazy_pattern(
    r"(?P<count>\d{1,3}) ports? (?P<state>up|down)\b(?: {0,4}\(\[?(?P<ports>[\w ,]{1,200})\]?\))?.{0,80}", re.IGNORECASE
)
_NIC_PORT = lazy_pattern(
    r"Port {0,20}: (?P<port>[\w:./-]{1,60})(?: .*)?|(?P<nic>PORT_\d{1,3}):|Device: (?P<cxi>cxi\d{1,3})"
)
_NIC_FIELD = lazy_pattern(
    r"(?P<name>Admin state|Operational status|Link FSM state|NETDEV|LINK_STATE|Link state|Network device) {0,60}: "
    r"(?P<value>\S{1,40})"
)
_NIC_WIRE = lazy_pattern(r"PCIE speed/width: (?P<value>(?P<speed>\d{1,3}(?:\.\d)?) GT/s PCIe x(?P<lanes>\d{1,2}))")
_NOT_UP = frozenset(("down", "starting"))  # the second: of cxi_stat, whose other end does not answer
_NIC_STATES = ("operational status", "link_state", "link state")  # the last: of cxi_stat
_NONE = "no interfaces were detected"
_OPA_PORT = lazy_pattern(r"(?P<port>hfi\d_\d{1,2}:\d)\b.*|(?P<renamed>[a-z]\w{1,30}:\d)[ \t]+PortGID:0x.*")
_OPA_STATE = lazy_pattern(r"[ \t]+PortState: +(?P<state>\w+)(?: \((?P<physical>[^)]{1,40})\))?.*")
_OPA_LANES = lazy_pattern(r"[ \t]+LinkWidthDnGrd +ActTx: (?P<sent>\d) +Rx: (?P<received>\d)\b.*")
_OPA_WIDTH = lazy_pattern(r"[ \t]+LinkWidth +Act: (?P<width>\d)\b.*")
_OPA_QUALITY = lazy_pattern(r"[ \t]+Link Quality: (?P<quality>\d)\b.*")
_POOR = 2  # of 5, which is the best


def list_link_states(text: str) -> list[ToolReport]:
    """Ports that `mlxlink`, with or without --json, states a reason for, or an error rate. Raises ParseError.

    >>> text = "$ mlxlink -d mlx5_3\\nOperational Info\\nState : Polling\\nRecommendation : Negotiation failure\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_link_states(text)]
    [('link-failure', 'mlx5_3', (('what', 'Negotiation failure'),))]
    """
    reports: list[ToolReport] = []
    known = False
    for device, fields in _split_ports(text):
        known = known or "State" in fields or any(name in fields for name in _RATES)
        reports += _report_port(device, fields)
    require(known, "no state of a port")
    return reports


def _split_ports(text: str) -> Iterator[tuple[str | None, dict[str, str]]]:
    """Each output of mlxlink: the device that its command names, and its fields."""
    device: str | None = None
    fields: dict[str, str] = {}
    check_length(text)
    is_json = '"Operational Info"' in text or _JSON_LINE.search(text) is not None
    for line in (_JSON_START.sub("\n", text) if is_json else text).splitlines():
        if len(line) > _LIMIT_LINE:
            continue
        if command := _DEVICE.search(line):
            yield device, fields
            device, fields = command["device"].rpartition("/")[2], {}
        elif line.strip(' ":{') == "Operational Info" and fields:
            yield device, fields
            device, fields = None, {}
        elif field := (_JSON_FIELD if is_json else _FIELD).fullmatch(line.strip()):
            fields.setdefault(field["name"].strip(), field["value"])
    yield device, fields


def _report_port(device: str | None, fields: dict[str, str]) -> Iterator[ToolReport]:
    state, opcode = fields.get("State", ""), fields.get("Status Opcode", "")
    reason = fields.get("Recommendation", "").rstrip(".")
    is_up = state.lower().startswith(("active", "port plu")) or not state  # of an excerpt
    has_reason = bool(reason) and not reason.lower().startswith((*_NO_ISSUE, "n/a"))
    line = ", ".join(
        f"{name}: {fields[name]}" for name in ("State", "Physical state", "Recommendation") if name in fields
    )
    if state and not is_up and opcode == _UNPLUGGED:
        yield state_fault("link-unplugged", device, reason or "no cable", line)
    elif state and not is_up and opcode == _CLOSED:
        yield state_fault("link-closed", device, reason or "closed by a command", line)
    elif state and has_reason:
        yield state_fault("link-suspect" if is_up else "link-failure", device, reason, line)
    elif state.startswith(_NOT_ACTIVE) and "Recommendation" not in fields:
        yield state_fault("link-inactive", device, f"state {state}", line)
    beyond = [text for name, value in fields.items() if is_up and (text := _describe_beyond(name, value))]
    if beyond:
        what = "; ".join(beyond[:3])
        yield state_fault("module-beyond", device, what, what)
    for name in _RATES:
        if is_up and (rate := _rate(fields.get(name))) > _ERRORS_MATTER:
            yield state_fault("link-errors", device, f"{name} {rate:.0e}", f"{name}: {fields[name]}")
            return


def _describe_beyond(name: str, value: str) -> str:
    """What of a measured value is beyond the limits behind it: `1.2,-9.8 [-8.4..4]`.

    >>> _describe_beyond("Rx Power Current [dBm]", "1.2,-9.8,1.1 [-8.4..4]")
    'Rx Power Current -9.8 dBm in lane 2, limits -8.4 to 4'
    >>> _describe_beyond("Temperature [C]", "46 [-10..80]")
    ''
    """
    match = _MEASURED.fullmatch(value)
    if match is None or not float(match["low"]) < float(match["high"]):
        return ""
    label, _, unit = name.partition(" [")
    values = match["values"].split(",")
    beyond = [
        f"{one.strip()} {unit.rstrip(']')}{f' in lane {lane}' if len(values) > 1 else ''}"
        for lane, one in enumerate(values, 1)
        if not float(match["low"]) <= float(one) <= float(match["high"])
    ]
    return f"{label} {', '.join(beyond)}, limits {match['low']} to {match['high']}" if beyond else ""


def _rate(value: str | None) -> float:
    """`15E-255`, which is none at all, `3E-9`."""
    try:
        return float(value or 0)
    except ValueError:
        return 0.0


def list_lost_link(text: str) -> list[ToolReport]:
    """Why an interface has no link, as `ethtool INTERFACE` states it behind "no". Raises ParseError.

    >>> list_lost_link("\\tLink detected: no (Bad signal integrity, (Remote Tx fault))\\n")[0].detail
    (('what', 'Bad signal integrity, Remote Tx fault'),)
    """
    match = require(_NO_LINK.search(check_length(text)), "no state of the link")
    reason = match["reason"]
    if not reason:
        return []
    code = "link-unplugged" if reason.startswith(_NOTHING_THERE) else "link-failure"
    what = reason.replace("(", "").replace(")", "")
    return [state_fault(code, None, what, match[0].strip())]


def list_fec_off(text: str) -> list[ToolReport]:
    """Whether `ethtool --show-fec` states that FEC is off, and whether it was asked for. Raises ParseError.

    >>> rows = "Configured FEC encodings: {}\\nActive FEC encoding: Off\\n"
    >>> [list_fec_off(rows.format(modes))[0].code for modes in ("RS", "Auto", "Off")]
    ['fec-not-active', 'fec-off', 'fec-off']
    """
    from probes.ethtool.saved import parse_fec  # lazy: it imports what reads interfaces

    fec = require(parse_fec(check_length(text)), "no FEC encoding")
    if fec.active != "off":
        return []
    modes = ", ".join([*(["auto"] if fec.auto else []), *fec.configured])
    is_asked = fec.configured and not fec.auto and "off" not in fec.configured
    line = f"Active FEC encoding: Off; configured: {modes or 'not stated'}"
    return [state_fault("fec-not-active" if is_asked else "fec-off", None, f"configured: {modes}", line)]


def list_failed_reporters(text: str) -> list[ToolReport]:
    """Health reporters of `devlink health show` whose state is an error. Raises ParseError.

    >>> text = "pci/0000:08:00.0:\\n  reporter fw_fatal\\n    state error error 3 recover 2\\n"
    >>> [(report.subject, report.detail) for report in list_failed_reporters(text)]
    [('0000:08:00.0', (('what', 'fw_fatal (errors 3, recoveries 2)'), ('reporter', 'fw_fatal')))]
    """
    device, name, states = None, None, 0
    reports = []
    for line in map(str.strip, short_lines(text)):
        if head := _DEVLINK.fullmatch(line):
            device, name = normal_address(head["address"]) if head["address"] else None, None
        elif line.startswith("reporter "):
            name = line.removeprefix("reporter ").strip()[:40]
        elif name and (state := _REPORTER_STATE.match(line)):
            states += 1
            if state["state"] == "error":
                what = f"{name} (errors {state['errors']}, recoveries {state['recoveries']})"
                reports.append(
                    ToolReport(
                        "reporter-error", device, f"reporter {name}: {line}", (("what", what), ("reporter", name))
                    )
                )
    require(states, "no state of a health reporter")
    return reports


def list_nic_ports(text: str) -> list[ToolReport]:
    """Ports that `nicctl show port` or amd-smi reports as down, though nobody closed them. Raises ParseError.

    >>> rows = "Port : {} (eth1/1)\\n Admin state : UP\\n Operational status : {}\\n"
    >>> [report[:2] for report in list_nic_ports(rows.format("a", "UP") + rows.format("b", "DOWN"))]
    [('nic-port-down', 'port b')]
    """
    ports: list[dict[str, str]] = []
    rates: dict[str, float] = {}  # of PCIe, in GT/s of all lanes
    for line in map(str.strip, short_lines(text)):
        if head := _NIC_PORT.fullmatch(line):
            ports.append({"name": f"port {head['port']}" if head["port"] else head["nic"] or head["cxi"]})
        elif ports and (row := _NIC_FIELD.fullmatch(line)):
            ports[-1].setdefault(row["name"].lower(), row["value"].lower())
        elif ports and (wire := _NIC_WIRE.fullmatch(line)):
            ports[-1].setdefault("pcie", wire["value"])
            rates[ports[-1]["name"]] = float(wire["speed"]) * int(wire["lanes"])
    shown = require([port for port in ports if any(state in port for state in _NIC_STATES)], "no state of a NIC's port")
    down = [port for port in shown if not _NOT_UP.isdisjoint(map(port.get, _NIC_STATES))]
    code = "nic-port-down" if len(down) < len(shown) else "nic-ports-down"
    most = max(rates.values(), default=0)
    usual = next((port["pcie"] for port in ports if rates.get(port["name"]) == most), "")
    narrow = [
        state_fault(
            "nic-pcie-narrow", port["name"], f"{port['pcie']}, others {usual}", f"{port['name']}: {port['pcie']}"
        )
        for port in ports
        if 0 < rates.get(port["name"], 0) < most
    ]
    return narrow + [
        ToolReport(
            code,
            port.get("netdev") or port.get("network device") or port["name"],
            ", ".join(f"{key}: {port[key]}" for key in port),
        )
        for port in down
        if port.get("admin state", "up") == "up"
    ]


def list_gaudi_ports(text: str) -> list[ToolReport]:
    """Ports of Gaudi cards that the script of the driver reports as down. Raises ParseError.

    >>> [(r.subject, r.detail) for r in list_gaudi_ports("accel0\\n0 ports down\\naccel1\\n1 ports down ([23])\\n")]
    [('accel1', (('what', '1 of 1 ports (23)'),))]
    """
    states: dict[str | None, list[tuple[str, str, int]]] = {}  # None: of `hl-smi -n link`, which names no card
    missing: list[str] = []
    device: str | None = None
    for line in map(str.strip, short_lines(text)):
        if head := _GAUDI.fullmatch(line):
            device = head["device"]
            states.setdefault(device, [])
        elif port := _PORT.fullmatch(line):
            states.setdefault(device, []).append((port["state"].lower(), f"port {port['port']}", 1))
        elif device is None:
            continue
        elif count := _COUNT.fullmatch(line):
            states[device].append((count["state"].lower(), count["ports"] or "", int(count["count"])))
        elif line.lower().startswith(_NONE):
            missing.append(device)
    require(missing or any(states.values()), "no port of a Gaudi card")
    down = {card for card, rows in states.items() if any(state == "down" and count for state, _, count in rows)}
    reports = [_report_card(card, rows) for card, rows in states.items() if card in down]
    none = [ToolReport("gaudi-no-interface", card, _NONE) for card in missing]
    if len(missing) == len(states) > 1:
        none = [state_fault("gaudi-no-interface", None, f"{len(missing)} cards", _NONE)]
    return reports + none


def _report_card(card: str | None, rows: list[tuple[str, str, int]]) -> ToolReport:
    down = [row for row in rows if row[0] == "down"]
    total, count = sum(row[2] for row in rows), sum(row[2] for row in down)
    names = ", ".join(name for _, name, _ in down if name)
    what = f"{count} of {total} ports{f' ({names})' if names else ''}"
    return state_fault("gaudi-ports-down", card, what, f"{card or 'card'}: {what} down")


def list_omni_path_ports(text: str) -> list[ToolReport]:
    """Ports that are down or wait for the fabric manager, that lost lanes, or whose link is poor. Raises ParseError.

    >>> rows = "hfi1_0:1      PortGID:0x1\\n   PortState:     Init (LinkUp)\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_omni_path_ports(rows)]
    [('opa-waits', 'hfi1_0:1', (('what', 'Init'),))]
    """
    reports: list[ToolReport] = []
    port, width, is_known = "", "", False
    for line in short_lines(text):
        if head := _OPA_PORT.fullmatch(line):
            port, width = head["port"] or head["renamed"], ""
        elif port and (state := _OPA_STATE.fullmatch(line)):
            is_known = True
            if state["state"] not in ("Active", "PortActive"):
                code = "opa-waits" if state["state"] in ("Init", "Armed") else "nic-ports-down"
                reports.append(state_fault(code, port, state["state"], line))
        elif port and (lanes := _OPA_WIDTH.fullmatch(line)):
            width = lanes["width"]
        elif port and (lanes := _OPA_LANES.fullmatch(line)):
            lost = {lanes["sent"], lanes["received"]} - {width}
            if width and lost:
                reports.append(state_fault("opa-lanes", port, f"{min(lost)} of {width} lanes", line))
        elif port and (quality := _OPA_QUALITY.fullmatch(line)) and int(quality["quality"]) <= _POOR:
            reports.append(state_fault("opa-lanes", port, f"link quality {quality['quality']} of 5", line))
    require(is_known, "no state of a port of Omni-Path")
    return reports
