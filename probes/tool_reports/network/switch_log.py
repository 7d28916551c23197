"""Lines of a switch's log about its ports, whichever vendor's, and of a history of one port's state.

Sources: sonic-net/sonic-swss orchagent/portsorch.cpp, countercheckorch.cpp, pfcactionhandler.cpp; messages of Cisco
NX-OS (ETHPORT), IOS and IOS XR (UPDOWN), Arista EOS (LINEPROTO, ETH), Juniper Junos (SNMP_TRAP_LINK), Huawei VRP
(IFNET, IFPDT, ERRDOWN), H3C Comware (IFNET), Dell OS10 (IFM_OSTATE), Ruckus ICX (ERR_DISABLE), Extreme EXOS (vlan).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.named_tuple import NamedTuple
from probes.switch_ports.names import PORT, find_command, find_port_of_command
from probes.text import lazy_pattern, lazy_rows
from probes.tool_reports.facts import ToolReport, state_fault

_OFTEN = 3  # losses of a port's link in one excerpt of a log
_FEW = 4  # a switch that starts loses the links of more ports
_PORT = rf"(?P<port>{PORT}|[Ee]thernet ?\d{{1,3}}(?:/\d{{1,3}}){{0,3}})"
_FAULTS = lazy_rows(
    (
        ("switch-storm", rf"PFC Watchdog detected PFC storm on port {_PORT}, queue index (?P<queue>\d)\b"),
        (
            "switch-lossy-pause",
            rf"Got PFC (?P<count>\d{{1,20}}) frame\(s\) on lossy queue (?P<queue>\d) port {_PORT}(?=\s|$)",
        ),
        ("switch-port-fault", rf"Port {_PORT} oper error event: (?P<what>\w{{2,40}}) occurred"),
        ("switch-disabled", rf"Interface {_PORT} is down \([Ee]rror disabled\. Reason: ?(?P<what>[^)]{{0,80}})"),
        ("switch-disabled", rf"ERR_?DISABLE: (?P<what>[\w-]{{2,40}}) error detected on {_PORT}"),
        (
            "switch-disabled",
            r"ERR_?DISABLE: (?P<what>Link flaps) on port (?P<port>(?:ethernet )?[\d/]{1,12}) exceeded threshold",
        ),
        ("switch-disabled", rf"status to error-down\. \(InterfaceName={_PORT}, ?Cause=(?P<what>[\w -]{{2,40}})"),
        (
            "switch-log-flaps",
            r"Port (?P<port>\d{1,3}(?::\d{1,3})?) link-flap detection .{0,80}?"
            r"(?P<what>more than \d{1,6} times in \d{1,6} s)",
        ),
    )
)
_IS_LOG = lazy_pattern(  # the name of a message, or of the program that wrote the line
    r"%\w[\w%-]{0,60}-\d-\w|[A-Z]\w{2,20}/\d/[A-Za-z_]{3,40}|SNMP_TRAP_LINK_|IFM_OSTATE_|orchagent: :- |ERR_DISABLE: "
    r"|<\w{4}:\w{2,20}\.\w"
)
_CHANGE = lazy_pattern(
    rf"(?:[Ii]nterface|[Pp]ort|ifName ?[= ]) ?{_PORT}\b(?:.{{0,120}}?\b(?:is|to|into)|.{{0,60}}?\bOperStatus=) ?"
    r"(?P<state>(?i:up|down))\b(?P<rest>.{0,120})"
)
_TRAP = lazy_pattern(rf"SNMP_TRAP_LINK_(?P<state>DOWN|UP)\b.{{0,160}}?\bifName {_PORT}(?P<rest>)")
_STATE = lazy_pattern(rf"Interface operational state is (?P<state>up|down) ?: ?{_PORT}(?P<rest>)")
_SLOT_STATE = lazy_pattern(r"\bPort (?P<port>\d{1,3}(?::\d{1,3})?) link (?P<state>up|down)\b(?P<rest>)")
_BY_PERSON = lazy_pattern(r"(?i)admin|initializing")
_HISTORY = lazy_pattern(r"[ \t]*\d{4}-\d\d-\d\d[ T][\d:.]{8,15} +(?P<state>up|down)[ \t]*")


class _Change(NamedTuple):
    """A port whose link came or went, and the line. One that a person closes is not lost."""

    port: str
    is_lost: bool
    line: str


def list_log_faults(lines: Sequence[str]) -> list[ToolReport]:
    """The faults of each port that its switch logs, each once; those of a link that came up again left out.

    >>> line = "Feb  3 04:05:06.1 leaf3 NOTICE swss#orchagent: :- f: Port Ethernet8 oper error event: {} occurred"
    >>> [(report.code, report.subject, report.detail) for report in list_log_faults([line.format("mac_local_fault")])]
    [('switch-port-fault', 'Ethernet8', (('what', 'mac local fault'),))]
    """
    faults: dict[tuple[str, str], ToolReport] = {}
    changes: dict[str, list[_Change]] = {}
    for line, change in _read_lines(lines):
        if change:
            rows = changes.setdefault(change.port, [])
            if not (rows and rows[-1].is_lost == change.is_lost and "rotocol on" in line):  # of the link, once more
                rows.append(change)
            if not change.is_lost:
                faults.pop(("switch-port-fault", change.port), None)
        elif report := _read_fault(line):
            faults[report.code, report.subject or ""] = report  # with the last count
    return [*faults.values(), *_list_lost(changes)]


def has_log_line(lines: Sequence[str]) -> bool:
    """Whether a text has a line of a switch's log about a port, or of the history of one.

    >>> has_log_line(["%ETHPORT-5-IF_UP: Interface Ethernet1/3 is up in mode access"]), has_log_line(["port 3 is up"])
    (True, False)
    """
    return any(change or _read_fault(line) for line, change in _read_lines(lines))


def _read_lines(lines: Sequence[str]) -> Iterator[tuple[str, _Change | None]]:
    """Lines of a log, and what each states of a link."""
    asked = ""
    for line in lines:
        if command := find_command(line):
            asked = find_port_of_command(command) or ""
        elif asked and (row := _HISTORY.fullmatch(line)):
            yield line, _Change(asked, row["state"] == "down", line)
        elif _IS_LOG.search(line):
            match = next(
                filter(None, (pattern.search(line) for pattern in (_CHANGE, _TRAP, _STATE, _SLOT_STATE))), None
            )
            is_lost = match and match["state"].lower() == "down" and not _BY_PERSON.search(match["rest"])
            is_change = match and "rror disabled" not in match["rest"]
            yield line, _Change(match["port"], bool(is_lost), line) if match and is_change else None


def _read_fault(line: str) -> ToolReport | None:
    for code, pattern in _FAULTS:
        if match := pattern.search(line):
            groups = match.groupdict()
            subject = f"{groups['port']}:{groups['queue']}" if "queue" in groups else groups["port"]
            words = groups.get("what") or (f"{groups['count']} frames" if "count" in groups else "")
            return state_fault(code, subject, words.replace("_", " "), line)
    return None


def _list_lost(changes: dict[str, list[_Change]]) -> Iterator[ToolReport]:
    """Ports that lost their link often, or that the log leaves without one. A history has the newest row first."""
    often = {port for port, rows in changes.items() if sum(row.is_lost for row in rows) >= _OFTEN}
    lost = {port for port, rows in changes.items() if rows[-1].is_lost and _HISTORY.fullmatch(rows[-1].line) is None}
    for port in [port for port in changes if port in often]:
        rows = [row for row in changes[port] if row.is_lost]
        code = "switch-log-flaps" if len(often) <= _FEW else "switch-flaps"
        yield state_fault(code, port, f"{len(rows)} times", rows[-1].line)
    for port in [port for port in changes if port in lost - often]:
        yield state_fault("switch-log-down", port, "", changes[port][-1].line)
