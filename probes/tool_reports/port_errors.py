"""Error counters of InfiniBand ports: `ibqueryerrors`, `perfquery`, and lines of ibdiagnet about ports and links.

Source: linux-rdma/rdma-core infiniband-diags (ibqueryerrors.c, perfquery.c). Counters are cumulative since someone
reset them. Not taken: counters of data, packets and waiting, sums over all ports of a switch, and tables of details.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from probes.fabric.iblinkinfo import parse
from probes.fabric.topology import Fabric, FabricEnd
from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport

MOST_REPORTS = 512
_LIMIT_CHARACTERS = 16 << 20
_LIMIT_LINE = 2048
_LIMIT_TEXT = 300
_NODE = lazy_pattern(r'(?:Errors|Data Counters) for (?:0x[0-9a-f]{1,16} )?"(?P<name>[^"\n]{0,64})"')
_PORT = lazy_pattern(r"GUID 0x(?P<guid>[0-9a-f]{1,16}) port (?P<port>\d{1,3}|ALL):(?P<rest>.*)")
_COUNTER = lazy_pattern(r"\[(?P<name>\w{2,48}) == (?P<count>\d{1,20})")
_LINK = lazy_pattern(
    r'Link info:.*?\)==> {1,4}(?:0x[0-9a-f]{1,16})?\s+\d{1,5}\s+(?P<port>\d{1,3})\[[^\]]{0,4}\] "(?P<name>[^"]{0,64})"'
)
_QUERY = lazy_pattern(r"# Port (?:extended )?counters: Lid (?P<lid>\d{1,5}) port (?P<port>\d{1,3})\b.*")
_QUERY_LINE = lazy_pattern(r"(?P<name>[A-Za-z]\w{2,40}):\.{1,40}(?P<count>\d{1,20})\s*")
_DIAGNET = lazy_pattern(
    r'(?:-[EW]- )?(?P<port>\S{1,120}/P\d{1,3}) - "(?P<name>[a-z_]{5,60})" increased during the run '
    r"\(difference value=(?P<count>\d{1,18})\b"
)
_OF_DIAGNET = lazy_pattern(r"increased during the run|Unexpected actual link")  # few lines have either
_UNEXPECTED = lazy_pattern(
    r"(?:-[EW]- )?Link: (?P<a>\S{1,120}?)<-->(?P<b>\S{1,120}) - Unexpected actual link "
    r"(?P<what>speed|width) (?P<value>\S{1,16})"
)
_STAGE = lazy_pattern(r"-(?P<level>[IEW])- (?P<stage>[A-Z][\w ./-]{3,60}?) finished (?:successfully|with errors)")
COUNTERS = {  # as ibqueryerrors and perfquery print them, by the names of the kernel's files, which ibdiagnet prints
    "symbol_error": "SymbolErrorCounter",
    "link_error_recovery": "LinkErrorRecoveryCounter",
    "link_downed": "LinkDownedCounter",
    "port_rcv_errors": "PortRcvErrors",
    "port_rcv_remote_physical_errors": "PortRcvRemotePhysicalErrors",
    "port_xmit_discards": "PortXmitDiscards",
    "local_link_integrity_errors": "LocalLinkIntegrityErrors",
    "excessive_buffer_overrun_errors": "ExcessiveBufferOverrunErrors",
}
_BY_NAME = {printed: name for name, printed in COUNTERS.items()}
KIND = "ib_port"


class _Port(NamedTuple):
    """A port of a line, and its far end where the next line names it."""

    name: str
    counters: dict[str, int]
    line: str
    far: str | None = None


def list_port_errors(text: str) -> list[ToolReport]:
    """Ports with an error counter that is not zero, and what is at their other end. Raises ParseError.

    >>> lines = 'Errors for "leaf1"\\n   GUID 0x10 port 12: [SymbolErrorCounter == 65535] [PortXmitWait == 9]\\n'
    >>> port = list_port_errors(lines + '   Link info: 4 12[  ] ==( 4X )==>  0x01  41  1[  ] "gpu07 mlx5_0" ( )\\n')[0]
    >>> port.subject, port.detail
    ('port 12 of leaf1', (('symbol_error', '65535'), ('far', 'port 1 of gpu07 mlx5_0')))
    """
    if len(text) > _LIMIT_CHARACTERS:
        raise ParseError(f"longer than {_LIMIT_CHARACTERS} characters")
    ports: list[_Port] = []
    reports: list[ToolReport] = []
    stages: list[ToolReport] = []  # of ibdiagnet that ended with errors
    node, known = "", text.lstrip().startswith("## Summary")
    for line in text.splitlines():
        bare = line.strip()
        if len(line) > _LIMIT_LINE or len(ports) + len(reports) >= MOST_REPORTS:
            continue
        if match := _NODE.match(bare):
            node, known = match["name"].strip(), True
        elif match := _PORT.fullmatch(bare):
            known = True
            counters = {c["name"]: int(c["count"]) for c in _COUNTER.finditer(match["rest"])}
            ports.append(_Port(f"port {match['port']} of {node or match['guid']}", counters, bare))
        elif ports and ports[-1].far is None and (match := _LINK.match(bare)):
            ports[-1] = ports[-1]._replace(far=f"port {match['port']} of {match['name'].strip()}")
        elif match := _QUERY.fullmatch(bare):
            known = True
            ports.append(_Port(f"port {match['port'].replace('255', 'ALL')} of LID {match['lid']}", {}, bare))
        elif ports and (match := _QUERY_LINE.fullmatch(bare)):
            ports[-1].counters[match["name"]] = int(match["count"])
        elif _OF_DIAGNET.search(line) and (match := _DIAGNET.search(line) or _UNEXPECTED.search(line)):
            known = True
            reports += _read_diagnet(match, bare)
        elif match := _STAGE.match(bare):
            known = True
            if match["level"] == "E":
                stages.append(ToolReport("ibdiagnet-errors", None, bare, (("what", match["stage"]),)))
    if not known:
        raise ParseError("no port in the output")
    found = [port for row in ports if (port := _report_port(row)) is not None] + reports
    return found or stages


def list_slow_links(text: str) -> list[ToolReport]:
    """Active links of `iblinkinfo` narrower or slower than both ends support ("Could be"). Raises ParseError."""
    fabric = parse(text[:_LIMIT_CHARACTERS], "iblinkinfo")
    if not fabric.links:
        raise ParseError("no link in the output of iblinkinfo")
    active = [link for link in fabric.links if link.state == "Active" and link.b is not None]
    reports = []
    for link in active:
        lanes = (link.could_width or 0) > (link.width or 0)
        if not (lanes or link.could_speed):
            continue
        runs, could = (
            (f"{link.width}X", f"{link.could_width}X") if lanes else (link.speed or "?", link.could_speed or "?")
        )
        own, far = _name_end(fabric, link.a), _name_end(fabric, link.b) if link.b else ""
        detail = (("runs", runs), ("could", could), ("far", far), ("links", str(len(active))))
        line = f"{own}: {runs}, could be {could}"
        reports.append(ToolReport("width" if lanes else "speed", own, line, detail, KIND))
    return reports[:MOST_REPORTS]


def _name_end(fabric: Fabric, end: FabricEnd) -> str:
    node = fabric.nodes.get(end.guid)
    return f"port {end.port} of {node.name if node and node.name else end.guid}"


def _report_port(port: _Port) -> ToolReport | None:
    """The port where it counted an error; the sum over all ports of a switch is none."""
    counters = [(name, str(count)) for printed, name in _BY_NAME.items() if (count := port.counters.get(printed, 0))]
    if not counters or port.name.startswith("port ALL "):
        return None
    far = [("far", port.far)] if port.far else []
    return ToolReport("counters", port.name, port.line[:_LIMIT_TEXT], (*counters, *far), KIND)


def _read_diagnet(match: re.Match[str], line: str) -> list[ToolReport]:
    """A line of ibdiagnet about a counter that grew, or about a link that is slower than both ends allow."""
    groups = match.groupdict()
    if "what" in groups:
        detail = (("runs", groups["value"]), ("far", groups["b"]))
        return [ToolReport(groups["what"], groups["a"], line[:_LIMIT_TEXT], detail, KIND)]
    name = groups["name"].removesuffix("_counter")
    grown = ((name, groups["count"]),)
    return [ToolReport("growing", groups["port"], line[:_LIMIT_TEXT], grown, KIND)] if name in COUNTERS else []
