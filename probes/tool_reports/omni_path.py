"""Ports of Omni-Path as `opainfo` prints them. Source: cornelisnetworks/opa-fastfabric opainfo, its public outputs."""

from __future__ import annotations

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.lines import short_lines

_LIMIT_LINE, _MOST_REPORTS = 300, 64
_PORT = lazy_pattern(r"(?P<port>hfi\d_\d{1,2}:\d)\b.*")
_STATE = lazy_pattern(r"[ \t]+PortState: +(?P<state>\w+)(?: \((?P<physical>[^)]{1,40})\))?.*")
_LANES = lazy_pattern(r"[ \t]+LinkWidthDnGrd +ActTx: (?P<sent>\d) +Rx: (?P<received>\d)\b.*")
_WIDTH = lazy_pattern(r"[ \t]+LinkWidth +Act: (?P<width>\d)\b.*")
_QUALITY = lazy_pattern(r"[ \t]+Link Quality: (?P<quality>\d)\b.*")
_POOR = 2  # of 5, which is the best


def list_omni_path_ports(text: str) -> list[ToolReport]:
    """Ports that are down or wait for the fabric manager, that lost lanes, or whose link is poor. Raises ParseError.

    >>> rows = "hfi1_0:1      PortGID:0x1\\n   PortState:     Init (LinkUp)\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_omni_path_ports(rows)]
    [('opa-waits', 'hfi1_0:1', (('what', 'Init'),))]
    """
    reports: list[ToolReport] = []
    port, width, is_known = "", "", False
    for line in short_lines(text, _LIMIT_LINE):
        if head := _PORT.fullmatch(line):
            port, width = head["port"], ""
        elif port and (state := _STATE.fullmatch(line)):
            is_known = True
            if state["state"] not in ("Active", "PortActive"):
                code = "opa-waits" if state["state"] in ("Init", "Armed") else "nic-ports-down"
                reports.append(_report(code, port, state["state"], line))
        elif port and (lanes := _WIDTH.fullmatch(line)):
            width = lanes["width"]
        elif port and (lanes := _LANES.fullmatch(line)):
            lost = {lanes["sent"], lanes["received"]} - {width}
            if width and lost:
                reports.append(_report("opa-lanes", port, f"{min(lost)} of {width} lanes", line))
        elif port and (quality := _QUALITY.fullmatch(line)) and int(quality["quality"]) <= _POOR:
            reports.append(_report("opa-lanes", port, f"link quality {quality['quality']} of 5", line))
    if not is_known:
        raise ParseError("no state of a port of Omni-Path")
    return reports[:_MOST_REPORTS]


def _report(code: str, port: str, what: str, line: str) -> ToolReport:
    return ToolReport(code, port, " ".join(line.split()), (("what", what),))
