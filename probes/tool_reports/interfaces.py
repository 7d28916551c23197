"""Members of a bond in /proc/net/bonding, and ports that a switch closed or counts errors on.

Sources: Linux drivers/net/bonding/bond_procfs.c; sonic-utilities scripts/portstat; manuals of Arista EOS and Cisco
NX-OS (`show interfaces counters errors`, `show interfaces status errdisabled`) and of NVUE (`nv show interface`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.lines import short_lines

_LIMIT_LINE = 400
_MOST_REPORTS = 128
_BOND_LINE = lazy_pattern(
    r"(?P<name>Slave Interface|MII Status|Link Failure Count|Aggregator ID|Bonding Mode|Partner Churn State): "
    r"(?P<value>\S.{0,80})"
)
_MANY_FAILURES = 20  # of a member's link, since the bond was made
_LACP = "802.3ad"
_ERROR_COLUMNS = frozenset(
    {"RX_ERR", "FCS", "FCS-Err", "FcsErr", "Align", "Align-Err", "Symbol", "Symbol-Err", "CRC", "RX_CRC"}
)
_FRAME_COLUMNS = ("RX_OK", "InUcastPkts")
_MANY, _ONE_IN = 1000, 10_000_000  # received frames
_HEADER = lazy_pattern(r"[ \t]{0,12}(?:IFACE|Port|Interface)(?:[ \t]+[A-Za-z][\w/-]{0,15}){2,20}[ \t]*")
_PORT = lazy_pattern(r"(?:Ethernet|Eth?|Po|swp|xe-|et-|mgmt)\d{1,4}(?:[/:s]\d{1,3}){0,4}")
_NUMBER = lazy_pattern(r"\d{1,3}(?:,\d{3}){1,6}|\d{1,20}")
_DISABLED = lazy_pattern(r"\berr-?[dD]is\w{2,12}\b")  # between the name of the port and the reason
_NVUE = lazy_pattern(r"[>$ \t]{0,8}nv show interface (?P<port>\S{2,24})(?: .*)?")
_NVUE_ROW = lazy_pattern(
    r"[ \t]{0,12}(?P<name>in-errors|in-pkts|rx-(?:crc|fcs|symbol)-errors)[ \t]{1,40}(?P<value>\d{1,20})[ \t]*"
)


_SHOWN = lazy_pattern(r"(?P<port>[A-Z][\w./-]{2,30}) is (?:up|down|administratively down)\b")
_INPUT = lazy_pattern(r"\s{1,12}(?P<count>\d{1,20}) (?:packets input|input packets)\b")
_INPUT_ERRORS = lazy_pattern(r"(?m)^[ \t]{1,12}(?P<count>\d{1,20}) input errors?\b")
_ERROR_COUNT = lazy_pattern(r"\b(\d{1,20}) (CRC|symbol)\b")
_STORM_HEAD = "STORM DETECTED/RESTORED"
_STORM = lazy_pattern(r" *(?P<queue>Ethernet\d{1,4}:\d) +stormed +(?P<count>\d{1,9})/\d{1,9} .*")
_LIGHT_HEAD = "(Celsius)"
_LIGHT = lazy_pattern(  # port, temperature, voltage, current, light sent and received
    r"(?P<port>Et\d{1,3}(?:/\d{1,3}){0,2})(?: +[\d.]{1,8}){3} +-?[\d.]{1,8} +(?P<rx>-?\d{1,3}\.\d{1,3}) .*"
)
_STATUS_HEAD = lazy_pattern(r"(?m)^ *Interface +Lanes +Speed +MTU ")
_STATUS = lazy_pattern(  # with and without FEC before the alias
    r" *(?P<port>Ethernet\d{1,4}) +[\d,]{1,60} +\S+ +\d+(?: +\S+){2,3} +(?P<oper>up|down) +(?P<admin>up|down) +"
    r"(?P<type>\S.*)"
)
_CHANGES = lazy_pattern(r"[ \t]{1,12}(?P<count>\d{1,9}) link status changes since last clear[ \t]*")
_PEERS, _LESS_DB, _DIM_DBM, _FEW = 3, 6.0, -10.0, 4
_BUSY = 1_000_000  # frames of a port whose drops are judged
_DROPS = (  # dropped, sent or taken, one in how many
    ("TX_DRP", "TX_OK", 1000),
    ("RX_DRP", "RX_OK", 100),
    ("Drop/pkts", "Counter/pkts", 1000),
)
_MULTICAST = "MC"  # queues of it drop what no port wants
_UNCORRECTED = "FEC_UNCORR"
_PFC_HEAD = "Global PFC : Enabled"
_PFC_ROW = lazy_pattern(r"(?P<port>(?:Et|Ma|Po)\d[\d/]{0,10}) +(?P<status>[EDAW-](?: [EDAW-]){2}) .*")
_FLAG_PORT = lazy_pattern(r"(?P<port>(?:Ethernet|Et|swp|sw)\d{1,4}(?:[/s]\d{1,3}){0,3}):[ \t]*")
_FLAG = lazy_pattern(
    r"(?P<name>[A-Z][\w. /-]{2,60}?(?:alarm|warning|fault|loss of signal|loss of lock|LOS|LOL)(?: flag)?)"
    r"(?: ?\(?(?:on|in|for)?(?: media| host)? ?(?:lane|channel) ?(?P<lane>\d{1,2})\)?)? {0,40}: (?P<value>True|False)",
    re.IGNORECASE,
)


def list_bond_faults(text: str) -> list[ToolReport]:
    """Members of a bond without a link, that lost it often, or that LACP did not join. Raises ParseError.

    >>> rows = "Slave Interface: {}\\nMII Status: {}\\nLink Failure Count: {}\\n"
    >>> reports = list_bond_faults(rows.format("eth2", "up", 0) + rows.format("eth3", "down", 41))
    >>> [(report.code, report.subject, report.detail) for report in reports]
    [('bond-member-down', 'eth3', (('what', 'link failures: 41'),))]
    """
    members: list[dict[str, str]] = []
    mode = ""
    for line in _lines(text):
        row = _BOND_LINE.fullmatch(line.strip())
        if row is None:
            continue
        if row["name"] == "Slave Interface":
            members.append({row["name"]: row["value"]})
        elif members:
            members[-1].setdefault(row["name"], row["value"].strip())
        elif row["name"] == "Bonding Mode":
            mode = row["value"]
    if not members:
        raise ParseError("no member of a bond")
    used = [member.get("Aggregator ID") for member in members if _LACP in mode and member.get("MII Status") == "up"]
    usual = max(used, key=used.count, default=None)
    return [report for member in members if (report := _report_member(member, usual)) is not None][:_MOST_REPORTS]


def _report_member(member: Mapping[str, str], aggregator: str | None) -> ToolReport | None:
    name, state = member["Slave Interface"], member.get("MII Status", "")
    failures = member.get("Link Failure Count", "0")
    line = ", ".join(f"{key}: {value}" for key, value in member.items())
    if state == "down":
        return ToolReport("bond-member-down", name, line, (("what", f"link failures: {failures}"),))
    if failures.isdecimal() and int(failures) >= _MANY_FAILURES:
        return ToolReport("bond-flaps", name, line, (("what", f"{failures} times"),))
    if member.get("Partner Churn State") == "churned" and state == "up":
        return ToolReport("bond-no-partner", name, line, (("what", "Partner Churn State: churned"),))
    if aggregator is not None and member.get("Aggregator ID", aggregator) != aggregator:
        what = f"aggregator {member['Aggregator ID']}, that of others is {aggregator}"
        return ToolReport("bond-not-joined", name, line, (("what", what),))
    return None


def list_switch_ports(text: str) -> list[ToolReport]:
    """Ports that a switch closed, or of which it counts damaged, lost or dropped frames. Raises ParseError.

    >>> rows = "    IFACE  STATE   RX_OK  RX_ERR\\nEthernet0   U  912,381   0\\nEthernet8   U  912,381  91,231\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_switch_ports(rows)]
    [('switch-errors', 'Ethernet8', (('what', '91231 RX_ERR'),))]
    >>> [report[:2] for report in list_switch_ports("Et12/1  gpu-22  errdisabled  link-flap\\n")]
    [('switch-disabled', 'Et12/1')]
    """
    reports: list[ToolReport] = []
    columns: list[str] = []
    known, named = False, None
    counts: dict[str, int] = {}
    for line in _lines(text):
        cells = line.split()
        if command := _NVUE.fullmatch(line):
            named, counts = command["port"], {}
        elif row := _NVUE_ROW.fullmatch(line):
            known = True
            counts[row["name"]] = int(row["value"])
        elif _HEADER.fullmatch(line):
            columns = cells
            known = known or not _ERROR_COLUMNS.isdisjoint(columns)
        elif cells and _PORT.fullmatch(cells[0]):
            if closed := _DISABLED.search(line):
                known = True
                reason = " ".join(word for word in line[closed.end() :].split() if word[0].isalpha())
                detail = (("what", reason),) if reason else ()
                reports.append(ToolReport("switch-disabled", cells[0], " ".join(cells), detail))
            elif len(values := _read_row(columns, line)) > 1 and not cells[1].startswith(_MULTICAST):
                queue = f" {cells[1]}" if "TxQ" in columns else ""
                reports += _report_counts(f"{cells[0]}{queue}", values, line)
    if _INPUT_ERRORS.search(text) or _STORM_HEAD in text:
        return [*_list_shown_ports(text), *_list_storms(text)][:_MOST_REPORTS]
    if _LIGHT_HEAD in text or _STATUS_HEAD.search(text):
        return [*_list_dim_ports(text), *_list_idle_ports(text)][:_MOST_REPORTS]
    if _PFC_HEAD in text:
        return _list_ports_without_pfc(text)
    if flags := _list_module_flags(text):
        return flags[:_MOST_REPORTS]
    known = (
        known
        or _UNCORRECTED in text
        or "Drop/pkts" in text
        or any(_FLAG.fullmatch(line.strip()) for line in _lines(text))
    )
    if not known:
        raise ParseError("no port of a switch")
    errors = {name: count for name, count in counts.items() if name != "in-pkts"}
    return [*reports, *_report_damaged(named, errors, counts.get("in-pkts"), str(counts))][:_MOST_REPORTS]


def _list_shown_ports(text: str) -> Iterator[ToolReport]:
    """Ports of `show interfaces` (EOS, IOS, NX-OS) with damaged frames."""
    port, frames = "", None
    for line in _lines(text):
        if head := _SHOWN.match(line):
            port, frames = head["port"], None
        elif count := _INPUT.match(line):
            frames = int(count["count"])
        elif (changes := _CHANGES.fullmatch(line)) and int(changes["count"]) >= _MANY_FAILURES:
            yield ToolReport("switch-flaps", port, line.strip(), (("what", f"{changes['count']} times"),))
        elif errors := _INPUT_ERRORS.match(line):
            counts = {name: int(value) for value, name in _ERROR_COUNT.findall(line)}
            damaged = {name: counts[name] for name in ("CRC", "symbol") if name in counts} or {
                "input errors": int(errors["count"])
            }
            yield from _report_damaged(port, damaged, frames, line.strip())


def _list_storms(text: str) -> Iterator[ToolReport]:
    """Queues of `show pfcwd stats` that the watchdog stopped."""
    for line in _lines(text):
        if row := _STORM.fullmatch(line):
            yield ToolReport(
                "switch-storm", row["queue"], " ".join(line.split()), (("what", f"{row['count']} storms"),)
            )


def _list_dim_ports(text: str) -> Iterator[ToolReport]:
    """Ports of `show interfaces transceiver` that receive far less light than the others."""
    rows = [row for line in _lines(text) if (row := _LIGHT.fullmatch(line))]
    levels = sorted(float(row["rx"]) for row in rows)
    if len(levels) < _PEERS:
        return
    usual = levels[len(levels) // 2]
    for row in rows:
        if float(row["rx"]) <= min(usual - _LESS_DB, _DIM_DBM):
            what = f"{row['rx']} dBm, others {usual:g}"
            yield ToolReport("switch-dim", row["port"], " ".join(row[0].split()), (("what", what),))


def _list_idle_ports(text: str) -> Iterator[ToolReport]:
    """Ports of SONiC's `show interfaces status` that are on, have a module, and no link, where most others have one, or
    where one port was asked about."""
    rows = [row for line in _lines(text) if (row := _STATUS.fullmatch(line))]
    down = [row for row in rows if (row["oper"], row["admin"]) == ("down", "up") and not row["type"].startswith("N/A")]
    if len(rows) == 1 or _FEW * len(down) <= len(rows):
        for row in down:
            yield ToolReport("switch-port-down", row["port"], " ".join(row[0].split()))


def _read_row(columns: list[str], line: str) -> dict[str, int]:
    """Numbers by column, counted from the end: a rate before them has a unit of its own."""
    cells = re.split(r"[ \t]{2,}", line.strip())
    if len(cells) != len(columns):
        cells = line.split()
    if len(cells) != len(columns):
        return {}
    pairs = zip(columns, cells, strict=True)
    return {name: int(cell.replace(",", "")) for name, cell in pairs if _NUMBER.fullmatch(cell)}


def _report_counts(port: str, values: Mapping[str, int], line: str) -> Iterator[ToolReport]:
    errors = {name: values[name] for name in values if name in _ERROR_COLUMNS}
    frames = next((values[name] for name in _FRAME_COLUMNS if name in values), None)
    yield from _report_damaged(port, errors, frames, " ".join(line.split()))
    for dropped, passed, one_in in _DROPS:
        count, others = values.get(dropped, 0), values.get(passed, 0)
        if count + others >= _BUSY and count * one_in >= count + others:
            what = f"{count} {dropped}, {others} {passed}"
            yield ToolReport("switch-drops", port, " ".join(line.split())[:_LIMIT_LINE], (("what", what),))
    if lost := values.get(_UNCORRECTED, 0):
        code = "switch-uncorrected" if lost >= _MANY else "switch-uncorrected-few"
        detail = (("what", f"{lost} {_UNCORRECTED}"),)
        yield ToolReport(code, port, " ".join(line.split())[:_LIMIT_LINE], detail)


def _list_ports_without_pfc(text: str) -> list[ToolReport]:
    """That EOS has PFC on, and each port that it lists has it off."""
    rows = [row for line in _lines(text) if (row := _PFC_ROW.fullmatch(line))]
    if not rows or any(row["status"][0] != "D" for row in rows):
        return []
    ports = ", ".join(row["port"] for row in rows)
    return [ToolReport("switch-pfc-nowhere", None, f"{_PFC_HEAD}; D: {ports}"[:_LIMIT_LINE], (("what", ports[:80]),))]


def _list_module_flags(text: str) -> list[ToolReport]:
    """Alarms that modules state of themselves, one report for each port; a note where many ports have them.

    >>> text = "Ethernet8:\\n    Rx power low alarm flag on lane 2: True\\n    Tx fault flag on lane 2: False\\n"
    >>> [report[:2] for report in _list_module_flags(text)]
    [('module-flags', 'Ethernet8')]
    """
    ports: dict[str | None, dict[str, list[str]]] = {}
    port: str | None = None
    for line in map(str.strip, _lines(text)):
        if head := _FLAG_PORT.match(line):
            port = head["port"]
        elif flag := _FLAG.fullmatch(line):
            alarms = ports.setdefault(port, {})
            if flag["value"].lower() == "true":
                alarms.setdefault(flag["name"].removesuffix(" flag"), []).append(flag["lane"] or "")
    flagged = {name: alarms for name, alarms in ports.items() if alarms}
    code = "module-flags" if len(flagged) == 1 or _FEW * len(flagged) <= len(ports) else "modules-flags"
    reports = []
    for name, alarms in flagged.items():
        parts = [f"{alarm} (lanes {', '.join(lanes)})" if all(lanes) else alarm for alarm, lanes in alarms.items()]
        reports.append(ToolReport(code, name, "; ".join(parts)[:_LIMIT_LINE], (("what", "; ".join(parts[:3])),)))
    return reports


def _report_damaged(port: str | None, errors: Mapping[str, int], frames: int | None, line: str) -> Iterator[ToolReport]:
    many = {name: count for name, count in errors.items() if count >= _MANY and count * _ONE_IN >= (frames or 0)}
    if many:
        what = ", ".join(f"{count} {name}" for name, count in many.items())
        yield ToolReport("switch-errors", port, line[:_LIMIT_LINE], (("what", what),))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in short_lines(text, _LIMIT_LINE)]
