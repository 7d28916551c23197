"""Error counters of InfiniBand ports: `ibqueryerrors`, `perfquery`, and lines of ibdiagnet about ports and links.

Source: linux-rdma/rdma-core infiniband-diags (ibqueryerrors.c, perfquery.c). Counters are cumulative since someone
reset them. Not taken: counters of data, packets and waiting, sums over all ports of a switch, and tables of details.
"""

from __future__ import annotations

import re
from collections import Counter

from probes.fabric.iblinkinfo import parse
from probes.fabric.topology import Fabric, FabricEnd
from probes.named_tuple import NamedTuple
from probes.text import check_length, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

MOST_REPORTS = 512
_ENDS = 2
_SUM = "port ALL "  # of a node
_WAITING = ("Initialize", "Armed")  # states of a link that the subnet manager ends
_ENOUGH_LINKS = 3  # of one width, beside which another one is odd
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
_INFO = lazy_pattern(r"# Port info: (?P<place>Lid \d{1,5}|DR path .{1,120}?) port (?P<port>\d{1,3})")
_INFO_LINE = lazy_pattern(
    r"(?P<name>LinkState|PhysLinkState|LinkWidthEnabled|LinkWidthActive|LinkSpeedActive):\.{1,40}(?P<value>\S.{0,60})"
)
_OLD_PORT = lazy_pattern(  # ibdiagnet 1: above a table of counters
    r"-W- lid=0x(?P<lid>[0-9a-f]{1,8}) guid=0x(?P<guid>[0-9a-f]{1,16}) dev=\d{1,6}(?: (?P<node>\S{1,60}))?/? ?"
    r"P(?:ort=?)?(?P<port>\d{1,3})"
)
_OLD_COUNTER = lazy_pattern(r"(?P<name>[a-z][a-z_]{4,50}?)(?:_counter)?\s{1,30}: 0x(?P<count>[0-9a-f]{1,16})\b.{0,40}")
_OLD_LINK = lazy_pattern(r"-W- link with (?P<what>LOG|PHY|SPD|WID)=(?P<value>\S{1,16}) found at direct path .{0,80}")
_OLD_END = lazy_pattern(
    r'(?:From|To): {1,8}(?:a |an )?(?P<kind>\S{1,10}) "?(?P<name>\S{0,60}?)"? ?'
    r"PortGUID=0x(?P<guid>[0-9a-f]{1,16}) Port=(?P<port>\d{1,3}).{0,40}"
)
_OLD_KINDS = {"SPD": "speed", "WID": "width"}
_DOWN = ("Disabled", "Polling", "Sleep", "PortConfigurationTraining", "LinkErrorRecovery")
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
UNNAMED_PORT = "the port that perfquery was asked about"
_DISCOVERED_NODE = lazy_pattern(
    r'(?:Switch|Ca|Rt)\s{1,8}\d{1,3}\s{1,8}"[SHR]-[0-9a-f]{16}"\s{1,8}# "(?P<name>[^"\n]{1,64})"'
)
_DISCOVERED = lazy_pattern(
    r'\[(?P<port>\d{1,3})\](?:\[ext \d{1,4}\])?(?:\((?P<guid>[0-9a-f]{1,16})\))?\s{0,8}"[SHR]-[0-9a-f]{16}"'
    r'\[(?P<far>\d{1,3})\][^#"\n]{0,60}#[^"\n]{0,40}"(?P<name>[^"\n]{1,64})" lid \d{1,5} (?P<lanes>\d{1,2})x[A-Z]{2,3}'
)


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
    check_length(text, _LIMIT_CHARACTERS)
    ports: list[_Port] = []
    reports: list[ToolReport] = []
    infos: list[tuple[str, dict[str, str]]] = []
    link: re.Match[str] | None = None
    ends: list[str] = []
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
        elif match := _INFO.fullmatch(bare):
            known = True
            infos.append((f"port {match['port']} of {match['place'].replace('Lid', 'LID')}", {}))
        elif infos and (match := _INFO_LINE.fullmatch(bare)):
            infos[-1][1][match["name"]] = match["value"]
        elif (ports or not known) and (match := _QUERY_LINE.fullmatch(bare)):
            if not ports:  # an excerpt that begins below the heading
                known = True
                ports.append(_Port(UNNAMED_PORT, {}, bare))
            ports[-1].counters[match["name"]] = int(match["count"])
        elif match := _OLD_PORT.fullmatch(bare):
            known = True
            ports.append(_Port(f"port {match['port']} of LID {int(match['lid'], 16)}", {}, bare))
        elif ports and (match := _OLD_COUNTER.fullmatch(bare)):
            ports[-1].counters[COUNTERS.get(match["name"], match["name"])] = int(match["count"], 16)
        elif match := _OLD_LINK.fullmatch(bare):
            known, link = True, match
        elif link is not None and (match := _OLD_END.match(bare)):
            ends.append(f"port {match['port']} of {match['name'] or match['guid']}")
            if len(ends) == _ENDS:
                reports += _read_old_link(link, ends)
                link, ends = None, []
        elif _OF_DIAGNET.search(line) and (match := _DIAGNET.search(line) or _UNEXPECTED.search(line)):
            known = True
            reports += _read_diagnet(match, bare)
        elif match := _STAGE.match(bare):
            known = True
            if match["level"] == "E":
                stages.append(state_fault("ibdiagnet-errors", None, match["stage"], bare))
    require(known, "no port in the output")
    is_sum = not node and all(row.name.startswith(_SUM) for row in ports)  # of a card, which alone was pasted
    found = (
        [port for row in ports if (port := _report_port(row, is_sum)) is not None]
        + [report for name, fields in infos for report in _report_info(name, fields)]
        + reports
    )
    return found or stages


def _report_info(name: str, fields: dict[str, str]) -> list[ToolReport]:
    """A port of smpquery or ibportstate: a link that no subnet manager configured, that lost lanes, or that is down."""
    state, width = fields.get("LinkState", ""), fields.get("LinkWidthActive", "")
    physical = fields.get("PhysLinkState", "")
    line = ", ".join(f"{key}: {value}" for key, value in fields.items())[:_LIMIT_TEXT]
    if physical == "LinkUp" and state in ("Initialize", "Armed"):
        return [ToolReport("state", name, line, (("runs", state),), KIND)]
    if state == "Down" and physical in _DOWN:
        return [
            ToolReport("disabled" if physical == "Disabled" else "polling", name, line, (("runs", physical),), KIND)
        ]
    if state == "Active" and width == "1X" and "4X" in fields.get("LinkWidthEnabled", "4X"):
        return [ToolReport("width", name, line, (("runs", width), ("could", "4X")), KIND)]
    return []


def _read_old_link(link: re.Match[str], ends: list[str]) -> list[ToolReport]:
    """A link of ibdiagnet 1 that is slower than it can be, or that the subnet manager did not configure."""
    kind = _OLD_KINDS.get(link["what"])
    detail = (("runs", link["value"]), ("far", ends[1]))
    return [ToolReport(kind or "state", ends[0], link[0], detail, KIND)]


def list_slow_links(text: str) -> list[ToolReport]:
    """Active links of `iblinkinfo` narrower or slower than both ends support ("Could be"), and links that are up and
    wait for the subnet manager. Raises ParseError."""
    fabric = parse(text[:_LIMIT_CHARACTERS], "iblinkinfo")
    require(fabric.links, "no link in the output of iblinkinfo")
    active = [link for link in fabric.links if link.state == "Active" and link.b is not None]
    reports = []
    for link in fabric.links:
        if link.state in _WAITING and link.b is not None:
            own, waits = _name_end(fabric, link.a), (("runs", link.state), ("far", _name_end(fabric, link.b)))
            reports.append(ToolReport("state", own, f"{own}: {link.state}/{link.phys_state}", waits, KIND))
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


def list_narrow_links(text: str) -> list[ToolReport]:
    """Links of `ibnetdiscover`, or of a part of it, with one lane, where most have more. Raises ParseError."""
    node = ""
    rows: list[tuple[str, str, int]] = []  # both ends, and the lanes
    for line in short_lines(text, _LIMIT_LINE, _LIMIT_CHARACTERS):
        bare = line.strip()
        if heading := _DISCOVERED_NODE.match(bare):
            node = heading["name"]
        elif row := _DISCOVERED.match(bare):
            near = f"port {row['port']} of {row['guid'] or node or 'a switch'}"
            rows.append(
                (near, f"port {row['far']} of {row['name'].partition(';')[2] or row['name']}", int(row["lanes"]))
            )
    require(rows or node, "no width of a link in the output of ibnetdiscover")
    if not rows:  # a node without a cable sees itself alone
        return []
    usual, count = Counter(lanes for _, _, lanes in rows).most_common(1)[0]
    seen: set[str] = set()  # each link is below both of its nodes
    reports = []
    for near, far, lanes in rows if usual > 1 and count >= _ENOUGH_LINKS else ():
        if lanes == 1 and far not in seen and near not in seen:
            seen |= {near, far}
            detail = (("runs", "1X"), ("usual", f"{usual}X"), ("far", near))
            reports.append(ToolReport("width", far, f"{far}: 1X, most links {usual}X", detail, KIND))
    return reports[:MOST_REPORTS]


def _name_end(fabric: Fabric, end: FabricEnd) -> str:
    node = fabric.nodes.get(end.guid)
    return f"port {end.port} of {node.name if node and node.name else end.guid}"


def _report_port(port: _Port, is_sum: bool) -> ToolReport | None:
    """The port where it counted an error; the sum over all ports is none, unless nothing else `is_sum`."""
    counters = [(name, str(count)) for printed, name in _BY_NAME.items() if (count := port.counters.get(printed, 0))]
    if not counters or (port.name.startswith(_SUM) and not is_sum):
        return None
    far = [("far", port.far)] if port.far else []
    shown = port.line if "[" in port.line else ", ".join(f"{COUNTERS[name]}: {count}" for name, count in counters)
    return ToolReport("counters", port.name, shown[:_LIMIT_TEXT], (*counters, *far), KIND)


def _read_diagnet(match: re.Match[str], line: str) -> list[ToolReport]:
    """A line of ibdiagnet about a counter that grew, or about a link that is slower than both ends allow."""
    groups = match.groupdict()
    if "what" in groups:
        detail = (("runs", groups["value"]), ("far", groups["b"]))
        return [ToolReport(groups["what"], groups["a"], line[:_LIMIT_TEXT], detail, KIND)]
    name = groups["name"].removesuffix("_counter")
    grown = ((name, groups["count"]),)
    return [ToolReport("growing", groups["port"], line[:_LIMIT_TEXT], grown, KIND)] if name in COUNTERS else []
