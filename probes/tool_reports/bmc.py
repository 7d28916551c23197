"""What the BMC of a server logs and measures: `ipmitool sel`, `ipmi-sel`, `racadm getsel`, Redfish, `ipmitool sdr`, the
logs of iLO, XCC and OpenBMC, check_ipmi_sensor.

Sources: the IPMI specification v2.0, tables 42-2 and 42-3 (names of events); ipmitool lib/ipmi_sel.c and
lib/ipmi_sdr.c; FreeIPMI ipmi-sel; Dell's message registry (PCI1318, PCI1360: bus numbers are decimal); DMTF
LogEntry; HPE iLO 5 scripting guide (records of the IML), Lenovo XCC messages (FQXS...: bus numbers are hexadecimal),
facebook/openbmc log-util, thomas-krenn/check_ipmi_sensor_v3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone

from probes.cut_json import list_whole_objects
from probes.named_tuple import NamedTuple
from probes.text import check_length, lazy_pattern, lazy_rows, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_LIMIT_TEXT = 200
_LIMIT_NAME = 60
_DATE = r"(?:\d\d/\d\d/\d{2,4}|\w{3}-\d\d-\d{4}|\d{4}-\d\d-\d\d|Pre-Init|PostInit|Unspecified) {0,8}\| {0,8}"
_ROW = lazy_pattern(
    rf"[ \t]{{0,20}}(?:[0-9a-fA-F]{{1,8}} {{0,8}}\| {{0,8}})?(?P<at>{_DATE}[\w:. +-]{{0,24}}?) {{0,8}}"
    r"\|(?P<sensor>[^|\n]{2,80})\|(?P<rest>[^\n]{2,300})"
)
_LINE = lazy_pattern(  # of logs with a record per line: when, how severe, what
    r"(?:(?P<xcc_at>[\d-]{10}[T ][\d:.]{8,12}\S{0,6})[ \t,|]{1,4})?\[?(?:FQXS[A-Z]{2}\w{4,8})\]?[ :,|\t]{1,4}"
    r"(?:\[?(?P<xcc>Informational|Information|Info|Warning|Error|Critical)\]?[ :,|\t]{1,4})?"
    r"(?P<xcc_what>[A-Z][^\n]{4,300})"
    r"|[^\n]{0,120}\bSEL Entry: FRU: \d{1,3}, Record: [^\n]{2,40}?, Time: (?P<util_at>[\d-]{10} [\d:]{8}), "
    r"Sensor: (?P<util>\w{2,40}) \(0x\w{1,4}\), Event Data: \(\w{2,12}\) (?P<util_what>[^\n]{2,200}?) ?"
    r"(?P<util_state>Assertion|Deassertion)[ \t]{0,8}"
    r"|[^\n]{0,40}?(?P<unified_at>[\d-]{10} [\d:]{8})[^\n]{0,60}\bSEL Entry: FRU: \d{1,3}, "
    r"Record: Facebook Unified SEL \(0xFB\), (?P<unified>[^\n]{8,300})"
)
_EVENT_TAG = lazy_pattern(r"<EVENT (?P<fields>[^<>\n]{20,600}?)/?>")  # of iLO
_ATTRIBUTE = lazy_pattern(r"\b(?P<name>[A-Z_]{4,20})=\"(?P<value>[^\"\n]{0,300})\"")
_STATE_LAST = lazy_pattern(  # a line or a row of CSV that ends with what became of the event
    r"[^|\n]{0,60}?(?P<at>\d{4}[/-]\d\d[/-]\d\d[ T][\d:]{8})[^\w\n]{1,8}(?P<what>[^|\n]{4,300}?)[ \t\",;-]{1,6}"
    r"(?P<state>(?:Dea|A)ssert(?:ed|ion))[\"\t ]{0,8}"
)
_STATED = lazy_pattern(  # by check_ipmi_sensor, one behind the other
    r"\((?P<part>[^()=\n]{2,60}?) = (?P<state>Critical|Warning|Nominal), (?P<what>[^()\n]{3,160})\)"
)
_SENSOR = lazy_pattern(
    r"(?P<name>\S[^|\n]{0,40}?) {0,40}\|(?P<values>(?:[^|\n]{0,40}\|){1,8}?) {0,8}"
    r"(?P<state>ok|[lu]?(?:nc|cr|nr)|ns)"  # `elist` adds which limit: ucr
    r"(?: {0,8}\|[^\n]{0,200})? {0,8}"
)
_SUPPLY = lazy_pattern(  # a discrete sensor of `ipmitool sensor`, with the offsets 0 to 7 of its type as bits
    r"^(?P<name>(?:PSU?|Power Supply)[ _]?\d{1,2}(?:[ _](?:Status|State))?) {0,24}\| {0,12}0x[0-9a-f]{1,4} {0,12}"
    r"\| {0,12}discrete {0,12}\| {0,12}0x(?P<state>[0-9a-f]{2})[0-9a-f]{2} {0,8}\|",
    re.MULTILINE,
)
_PRESENT, _SUPPLY_FAULTS = 1, {2: "failed", 4: "about to fail", 8: "no input", 16: "input out of range"}
_FIELD = lazy_pattern(
    r"[ \t]{0,8}(?P<name>[A-Z][A-Za-z/ ]{2,20}?) {0,12}[:=][ \t]{0,12}(?P<value>\S[^\n]{0,300}?)\s{0,8}"
)
_CHASSIS = lazy_pattern(
    r"[ \t]{0,8}(?P<name>Power Overload|Main Power Fault|Power Control Fault|Drive Fault|Cooling/Fan Fault) {0,20}: "
    r"(?P<value>true|false)[ \t\r]{0,8}"
)
_TYPES = (
    "Temperature|Voltage|Current|Fan|Power Supply|Power Unit|Memory|Critical Interrupt|Slot / Connector|Slot/Connector|"
    "Processor|Module / Board|Cooling Device|Drive Slot / Bay|Drive Slot|System Event|Other FRU|Add-in Card|Chip Set|"
    "Physical Security|Cable / Interconnect|System Firmwares|System Firmware Progress|Management Subsystem Health"
)
_TYPED = lazy_pattern(rf"(?:{_TYPES}) (?=[^#\s])")
_OVER = r"Upper (?:Critical|Non-recoverable)(?: -)? [Gg]oing [Hh]igh"
_UNDER = r"Lower (?:Critical|Non-recoverable)(?: -)? [Gg]oing [Ll]ow"
_CLASSES = lazy_rows((  # the first that fits the sensor, its type and the event
    ("bmc-pcie",
     r"Bus Fatal|Bus Uncorrectable|PCI SERR|PCI PERR|fatal error was detected on a component|Surprise Down Error|"
     r"Received ERR_(?:NON)?FATAL|"
     r"(?i:uncorrectable pci ?e(?:xpress)? error)"),
    ("bmc-slot", r"\bSlot\b.{0,80}Fault"),
    ("bmc-memory", r"Uncorrectable ECC|(?i:uncorrectable memory|memory uncorrectable)|[Mm]ulti-bit (?:memory )?error"),
    ("bmc-memory-off",
     r"Memory (?:Device Disabled|Scrub Failed)|(?:Memory|DIMM).{0,60}(?:Configuration error|disabled\b)"),
    ("bmc-corrected", r"Correctable ECC|Bus Correctable|correctable (?:memory )?error|Received ERR_COR\b"),
    ("bmc-leak", r"(?i:\bleak).{0,60}(?:State Asserted|[Ll]eak [Dd]etected|Critical|Fault)"),
    ("bmc-device", r"\bGPU\w{0,12}.{0,60}(?:internal error|Thermal Trip)"),
    ("bmc-watchdog", r"(?i:watchdog).{0,40}(?:Hard reset|Power (?:cycle|down))"),
    ("bmc-processor", r"\bIERR|Machine Check|(?:CPU|Processor).{0,60}(?:internal error|Thermal Trip)"),
    ("bmc-temperature", rf"(?:Temp|Thermal|Margin).{{0,80}}(?:{_OVER}|Thermal Trip)|Transition to (?:Critical|Non-r)"),
    ("bmc-temperature",
     r"degrees C.{0,40}(?:critical|exceed)|Overtemperature|temperature is greater than the (?:maximum|critical)"),
    ("bmc-fan", rf"(?i:fan|cooling).{{0,80}}(?:{_UNDER}|Redundancy Lost|Fault|RPM is less than)"),
    ("bmc-power",
     r"(?i:power supply|\bpsu|\bps\d|power unit).{0,80}(?:AC lost|[Ff]ailure [Dd]etected|Predictive failure|"
     r"[Rr]edundancy (?:is )?[Ll]ost|Non-redundant|input (?:lost|is lost)|[Ff]ailed|lost input|"
     r"\d is lost|Soft-power control failure)"),
    ("bmc-voltage", rf"(?:{_OVER}|{_UNDER})|\bVR_FAULT\b|\bPMIC_ERR\b"),
))  # fmt: skip
_CALM = lazy_pattern(r"(?i)Fully Redundant|Redundancy Regained|\bcleared\b|returned to normal|is operating normally")
_AT_BUS = lazy_pattern(r"bus (?P<bus>\d{1,3}) device (?P<device>\d{1,2}) function (?P<function>[0-7])\b")
_AT_HEX_BUS = lazy_pattern(  # of HPE, Lenovo and OpenBMC
    r"\bBus (?:0x)?(?P<bus>[0-9A-Fa-f]{2})[,/]? ?Dev(?:ice)? (?:0x)?(?P<device>[01]?[0-9A-Fa-f])[,/]? ?"
    r"Fun(?:ction)? (?:0x)?0?(?P<function>[0-7])\b"
)
_PART = lazy_pattern(
    r"(?i)\b(?:slot|fan|psu?|power supply|dimm|cpu|gpu)[ _]?#?[A-Z]{0,3}\d{1,3}[\w.-]{0,24}\b|\bDIMM_\w{1,12}"
)
_LIMITS = lazy_pattern(
    r"Reading (?P<is>-?[\d.]{1,12}) (?:[<>]=? )?Threshold (?P<limit>-?[\d.]{1,12}) ?(?P<unit>[\w /%]{0,12})"
)
_PAST_LIMIT = lazy_pattern(r"(?<!Non-)(?:Critical|Non-?[Rr]ecoverable) Threshold")
_SENSOR_ROW = lazy_pattern(rf"\d{{1,5}} {{1,8}}\| [^|\n]{{2,40}}\| (?:{_TYPES}|Other Units Based Sensor) {{1,40}}\|")
_SENSOR_COLUMNS = {
    6: ["ID", "Name", "Type", "Reading", "Units", "Event"],
    7: ["ID", "Name", "Type", "State", "Reading", "Units", "Event"],
}
_NUMBER = lazy_pattern(r"[0-9A-F]{2}h")
_DAYS = ("%m/%d/%Y", "%m/%d/%y", "%b-%d-%Y", "%Y-%m-%d", "%Y/%m/%d")
_GRAVE = ("critical", "non-recoverable", "error")
_UNCORRECTED = ("bmc-pcie", "bmc-memory", "bmc-processor")  # faults, whatever severity a maker gives them


class _Event(NamedTuple):
    """One record of a log."""

    part: str | None
    what: str
    line: str
    at: str = ""
    over: bool = False  # the state that it states has ended
    code: str | None = None
    is_calm: bool = False  # all is well with the part


def list_log_events(text: str) -> list[ToolReport]:
    """Faults that a log of a BMC holds and that no later record ends: one per part and kind. Raises ParseError.

    >>> row = "  2 | 02/19/2025 | 03:41:55 | Temperature GPU4 Temp | Upper Critical going high | {}\\n"
    >>> [(report.code, report.subject) for report in list_log_events(row.format("Asserted"))]
    [('bmc-temperature', 'GPU4 Temp')]
    >>> list_log_events(row.format("Asserted") + row.format("Deasserted"))
    []
    """
    is_json = '"Message"' in check_length(text)
    events = [*_read_rows(text), *(_read_json(text) if is_json else _read_records(text)), *_read_lines(text)]
    require(events, "no record of a BMC's log")
    open_events: dict[tuple[str | None, str], list[_Event]] = {}
    for event in events:
        code = event.code or _classify(f"{event.part or ''} {event.line}")
        if event.is_calm or _CALM.search(event.what):
            for key in [key for key in open_events if key[0] == event.part]:
                del open_events[key]
        elif code is not None and event.over:
            open_events.pop((event.part, code), None)
        elif code is not None:
            open_events.setdefault((event.part, code), []).append(event)
    newest = max((date for event in events if (date := _parse_date(event.at))), default=None)
    return [_report(code, rows, newest) for (_, code), rows in open_events.items()]


def list_sensor_states(text: str) -> list[ToolReport]:
    """Sensors that `ipmitool sdr` or `ipmitool sensor` reports outside of their critical limits. Raises ParseError.

    >>> rows = "GPU2 Temp        | 95 degrees C      | cr\\nFAN1             | 9800 RPM          | ok\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_sensor_states(rows)]
    [('sensor-critical', 'GPU2 Temp', (('what', '95 degrees C'),))]
    >>> rows = "ID | Name | Type | State | Reading | Units\\n7 | HBM3 | Temperature | Critical | 107 | C\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_sensor_states(rows)]
    [('sensor-critical', 'HBM3', (('what', '107 C'),))]
    >>> [report.subject for report in list_sensor_states("FAN_3_R | 47h | lcr | 29.4 | 0 RPM\\n")]
    ['FAN_3_R']
    """
    rows = [match for line in short_lines(text) if (match := _SENSOR.fullmatch(line.strip()))]
    states = [match for line in short_lines(text) if (match := _CHASSIS.fullmatch(line))]
    listed = list(_read_ipmi_sensors(text))
    require(rows or states or listed or _SUPPLY.search(text), "no state of a sensor")
    reports = [report for report in listed if report.code]
    reports += [
        ToolReport("sensor-failed", state["name"], _clean(state[0])) for state in states if state["value"] == "true"
    ]
    reports += _list_supplies(text)
    for row in rows:
        values = [value.strip() for value in row["values"].split("|") if value.strip()]
        shown = row[0].rpartition("|")[2].strip()
        if row["state"] == "ok" and (_classify(f"{row['name']} {shown}") or "bmc-corrected") != "bmc-corrected":
            reports.append(state_fault("sensor-failed", row["name"].strip(), shown, _clean(row[0])))
        if _NUMBER.fullmatch(values[0] if values else ""):  # of `sdr elist`: the sensor's number; the reading is last
            values = [shown]
        if row["state"][-2:] in ("cr", "nr") and any(character.isdigit() for character in "".join(values)):
            what = " ".join(values[:2])[:_LIMIT_TEXT]
            reports.append(state_fault("sensor-critical", row["name"].strip(), what, _clean(row[0])))
    return reports


def _list_supplies(text: str) -> Iterator[ToolReport]:
    """Power supplies of `ipmitool sensor` that are there and have a fault, by the bits of their state.

    >>> [report.detail for report in _list_supplies("PSU2 Status | 0x9 | discrete | 0x0900| na\\n")]
    [(('what', 'no input'),)]
    """
    for row in _SUPPLY.finditer(text):
        state = int(row["state"], 16)
        faults = [fault for bit, fault in _SUPPLY_FAULTS.items() if state & bit]
        if state & _PRESENT and faults:
            yield state_fault("sensor-failed", row["name"], ", ".join(faults), _clean(row[0]))


def _read_ipmi_sensors(text: str) -> Iterator[ToolReport]:
    """A report per row of `ipmi-sensors` of FreeIPMI; without a code where the sensor is within its limits."""
    names: list[str] = []
    for line in short_lines(text):
        cells = [cell.strip() for cell in line.split("|")]
        if cells[:3] == ["ID", "Name", "Type"]:
            names = cells
        elif not names and len(cells) in _SENSOR_COLUMNS and _SENSOR_ROW.match(line):  # the heading is cut off
            names = _SENSOR_COLUMNS[len(cells)]
        if cells == names:
            continue
        if len(cells) == len(names):
            row = dict(zip(names, cells, strict=True))
            event, reading = row.get("Event", ""), row.get("Reading", "N/A")
            is_measured = any(character.isdigit() for character in reading)
            kind = _classify(f"{row['Name']} {row['Type']} {event}") or "bmc-corrected"
            is_critical = is_measured and (row.get("State") == "Critical" or _PAST_LIMIT.search(event) is not None)
            code = "sensor-critical" if is_critical else "sensor-failed" if kind != "bmc-corrected" else ""
            what = f"{reading} {row.get('Units', '')}".strip() if is_measured else event.replace("'", "")
            yield state_fault(code, row["Name"], what[:_LIMIT_TEXT], _clean(line))


def _read_rows(text: str) -> Iterator[_Event]:
    """Rows of `ipmitool sel list`, `elist` and of `ipmi-sel`."""
    for line in short_lines(text):
        row = _ROW.fullmatch(line.rstrip()) if "|" in line else None
        if row is None:
            continue
        cells = [cell.strip() for cell in row["rest"].split("|")]
        over = any(cell.startswith(("Deasserted", "Deassertion")) for cell in cells)
        event = next((cell for cell in cells[::-1] if _classify(f"{row['sensor']} {cell}")), cells[0])
        part = row["sensor"].strip()
        what = event.partition(" ; ")[0]
        if limits := _LIMITS.search(line):
            what += f" ({limits['is']} {limits['unit'].strip()}, limit {limits['limit']})".replace(" ,", ",")
        at = " ".join(row["at"].replace("|", " ").split())
        yield _Event(_TYPED.sub("", part, count=1), what, line, at, over)


def _read_records(text: str) -> Iterator[_Event]:
    """Records of `racadm getsel` and `racadm lclog view`: those that are critical by themselves."""
    fields: dict[str, str] = {}
    for line in [*short_lines(text), "Record: end"]:
        field = _FIELD.fullmatch(line)
        name = field["name"].strip() if field else ""
        if name in ("Record", "SeqNumber"):
            what = fields.get("Description") or fields.get("Message")
            if what and "Severity" in fields:
                at = fields.get("Date/Time") or fields.get("Timestamp", "")
                yield _of_message(what, fields["Severity"], at)
            fields = {}
        elif field:
            fields.setdefault(name, field["value"])


def _read_lines(text: str) -> Iterator[_Event]:
    """Records of XCC, of OpenBMC's log-util, of iLO and of Supermicro, and what check_ipmi_sensor makes of a log."""
    fields: dict[str, str] = {}
    for line in [*short_lines(text), "number="]:
        name, _, value = line.strip().partition("=")
        if name == "number" and "severity" in fields and "description" in fields:
            at = f"{fields.get('date', '')} {fields.get('time', '')}".strip()
            yield _of_message(fields["description"], fields["severity"], at)
        fields = {} if name == "number" else {**fields, name: value}
        if tag := _EVENT_TAG.search(line):
            event = {field["name"]: field["value"] for field in _ATTRIBUTE.finditer(tag["fields"])}
            if "SEVERITY" in event and "DESCRIPTION" in event:
                yield _of_message(event["DESCRIPTION"], event["SEVERITY"], event.get("LAST_UPDATE", ""))
        elif not _LINE.fullmatch(line.strip()) and (row := _STATE_LAST.fullmatch(line)):
            what = " ".join(row["what"].replace('","', " ").split())
            part = _PART.search(_TYPED.sub("", what, count=1))
            yield _Event(part[0] if part else None, what, line, row["at"], row["state"].startswith("D"))
        elif (row := _LINE.fullmatch(line.strip())) and row["xcc_what"]:
            yield _of_message(row["xcc_what"].strip(), row["xcc"] or "Error", row["xcc_at"] or "")
        elif row and row["unified"]:  # which states no severity
            yield _of_message(row["unified"].strip(), "Info", row["unified_at"])
        elif row:
            is_over = row["util_state"] == "Deassertion"
            yield _Event(row["util"], row["util_what"], line, row["util_at"], is_over)
    for stated in _STATED.finditer(text) if "IPMI Status: " in text else ():
        if stated["state"] == "Critical":
            yield _Event(stated["part"].strip(), stated["what"], stated[0])


def _read_json(text: str) -> Iterator[_Event]:
    """Entries of a log that Redfish lists, the oldest first; also where the list is cut."""
    entries = list(list_whole_objects(text, lambda row: isinstance(row.get("Message"), str)))
    if all(isinstance(entry.get("Created"), str) for entry in entries):
        entries.sort(key=lambda entry: str(entry["Created"]))
    for entry in entries:
        origin = (entry.get("Links") or {}).get("OriginOfCondition") if isinstance(entry.get("Links"), dict) else None
        address = origin.get("@odata.id") if isinstance(origin, dict) else None
        part = address.rstrip("/").rpartition("/")[2] if isinstance(address, str) else None
        words = entry.get("MessageArgs")
        if part is None and isinstance(words, list) and words and isinstance(words[0], str):
            part = words[0][:_LIMIT_NAME]
        event = _of_message(entry["Message"], str(entry.get("Severity")), str(entry.get("Created", "")))
        sensor = entry.get("SensorType"), entry.get("SensorNumber")
        if part is None and event.part is None and isinstance(sensor[0], str) and isinstance(sensor[1], int):
            part = f"{sensor[0][:_LIMIT_NAME]} {sensor[1]}"
        is_calm = _CALM.search(str(entry.get("EntryCode"))) is not None
        over = event.over or entry.get("Resolved") is True
        yield event._replace(part=part or event.part, over=over, is_calm=is_calm)


def _of_message(what: str, severity: str, at: str) -> _Event:
    bus = _AT_BUS.search(what)
    part = _PART.search(what)
    name = part[0] if part else None
    if at_hex := _AT_HEX_BUS.search(what):
        name = f"0000:{at_hex['bus'].lower()}:{int(at_hex['device'], 16):02x}.{at_hex['function']}"
    elif bus and int(bus["bus"]) < 256 and int(bus["device"]) < 32:
        name = f"0000:{int(bus['bus']):02x}:{int(bus['device']):02x}.{bus['function']}"
    grave = severity.strip().lower() in _GRAVE
    code = _classify(what) or ("bmc-critical" if grave else None)
    line = f"{severity.strip()}: {what}"
    return _Event(name, what.rstrip("."), line, at, not grave and code not in _UNCORRECTED, code)


def _classify(text: str) -> str | None:
    return next((code for code, pattern in _CLASSES if pattern.search(text)), None)


def _parse_date(at: str) -> datetime | None:
    """The day of a record; None where the BMC had no clock yet."""
    for form in _DAYS:
        with suppress(ValueError):
            return datetime.strptime(at[:19].replace("T", " ").partition(" ")[0], form).replace(tzinfo=timezone.utc)
    return None


def _report(code: str, events: list[_Event], newest: datetime | None) -> ToolReport:
    dates = [(day, number) for number, event in enumerate(events) if (day := _parse_date(event.at))]
    day, number = max(dates, default=(None, -1))
    last = events[number]
    age = (("days_before", str((newest - day).days)),) if newest and day else ()
    times = f"{len(events)} times" if len(events) > 1 else ""
    when = f"{times}, last {last.at}" if times and last.at else times or last.at
    what = f"{_clean(last.what)}{f', {when}' if when else ''}"
    return ToolReport(code, last.part, _clean(last.line), (("what", what), *age))


def _clean(text: str) -> str:
    return " ".join(text.split())[:_LIMIT_TEXT]
