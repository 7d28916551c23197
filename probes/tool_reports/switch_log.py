"""The log of a switch's operating system (SONiC): faults of ports that its programs state.

Sources: sonic-net/sonic-swss orchagent/portsorch.cpp, countercheckorch.cpp, pfcactionhandler.cpp.
"""

from __future__ import annotations

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.lines import short_lines

_LIMIT_LINE, _LIMIT_TEXT, _MOST_REPORTS = 2000, 300, 64
_PORT = r"(?P<port>[A-Za-z][\w/-]{1,40}?)"
_SENTENCES = (  # behind the program, "swss#orchagent: :- function: "
    ("switch-storm", lazy_pattern(rf"PFC Watchdog detected PFC storm on port {_PORT}, queue index (?P<queue>\d)\b")),
    (
        "switch-lossy-pause",
        lazy_pattern(rf"Got PFC (?P<count>\d{{1,20}}) frame\(s\) on lossy queue (?P<queue>\d) port {_PORT}(?=\s|$)"),
    ),
    ("switch-port-fault", lazy_pattern(rf"Port {_PORT} oper error event: (?P<what>\w{{2,40}}) occurred")),
)
_NEEDLES = ("PFC storm on port", " on lossy queue ", " oper error event: ")
_UP = lazy_pattern(rf"Port {_PORT} oper state set from down to up")


def list_switch_log(text: str) -> list[ToolReport]:
    """The faults of each port, each once, those of a link that came up again left out. Raises ParseError.

    >>> line = "Feb  3 04:05:06.1 leaf3 NOTICE swss#orchagent: :- f: Port Ethernet8 oper error event: {} occurred\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_switch_log(line.format("mac_local_fault"))]
    [('switch-port-fault', 'Ethernet8', (('what', 'mac local fault'),))]
    """
    reports: dict[tuple[str, str], ToolReport] = {}
    for line in short_lines(text, _LIMIT_LINE):
        if up := _UP.search(line):
            reports.pop(("switch-port-fault", up["port"]), None)
        if not any(needle in line for needle in _NEEDLES):
            continue
        for code, pattern in _SENTENCES:
            if match := pattern.search(line):
                groups = match.groupdict()
                subject = f"{groups['port']}:{groups['queue']}" if "queue" in groups else groups["port"]
                words = groups.get("what") or ("" if code == "switch-storm" else f"{groups['count']} frames")
                detail = (("what", words.replace("_", " ")),) if words else ()
                key = code, subject
                if key in reports or len(reports) < _MOST_REPORTS:
                    reports[key] = ToolReport(code, subject, " ".join(line.split())[:_LIMIT_TEXT], detail)
    if not reports and _UP.search(text) is None:
        raise ParseError("no line of a switch that states a fault of a port")
    return list(reports.values())
