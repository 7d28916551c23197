"""Outputs of `ibstat` and `ibstatus` (infiniband-diags): channel adapters with their ports, or a paragraph per port."""

from __future__ import annotations

import re

from probes.layout import Field, Layout, complete_lines, read_layout, whole_lines
from probes.rdma import normalize
from probes.rdma.facts import GidEntry, RdmaPort
from probes.rdma.lost_heading import restore_heading
from probes.rdma.normalize import NAME, ParsedTool
from probes.text import lazy_pattern, require

_PORT = Layout(
    {
        "port": Field("port", int),
        "Link layer": Field("link_layer", normalize.link_layer),
        "State": Field("state", normalize.state),
        "Physical state": Field("phys_state", normalize.physical_state),
        "Rate": Field("rate_text"),
        "Base lid": Field("lid", normalize.number),
        "SM lid": Field("sm_lid", normalize.number),
        "Port GUID": Field("port_guid", normalize.guid),
    },
    lazy_pattern(r"Port (?P<port>[0-9]{1,3}):"),
)
_ADAPTER = Layout(
    {
        "name": Field("name"),
        "CA type": Field("hca_type"),
        "Firmware version": Field("firmware"),
        "Node GUID": Field("node_guid", normalize.guid),
        "System image GUID": Field("system_image_guid", normalize.guid),
    },
    lazy_pattern(rf"CA '(?P<name>{NAME})'"),
    inner=_PORT,
)
LABELS = frozenset((*_ADAPTER.fields, *_PORT.fields))
_IBSTAT = Layout(inner=_ADAPTER, whole=lazy_pattern(normalize.LINK_LAYER_LINE))
_STATUS = Layout(
    {
        "port": Field("port", int),
        "default gid": Field("gids", lambda text: (GidEntry(0, gid),) if (gid := normalize.gid(text)) else None),
        "base lid": Field("lid", normalize.number),
        "sm lid": Field("sm_lid", normalize.number),
        "state": Field("state", normalize.state),
        "phys state": Field("phys_state", normalize.physical_state),
        "rate": Field("rate_text"),
        "link_layer": Field("link_layer", normalize.link_layer),
    },
    lazy_pattern(rf"[Ii]nfini[Bb]and device '(?P<name>{NAME})' port (?P<port>[0-9]{{1,3}}) status:"),
)
_IBSTATUS = Layout(inner=_STATUS, whole=lazy_pattern(normalize.LINK_LAYER_LINE))
_ENDED = lazy_pattern(r"^[ \t]{0,8}ibpanic: ?(?:\[[0-9]{1,10}\] ?)?([^\n]{1,300})", re.MULTILINE)
_PORT_LINE = lazy_pattern(r"^[ \t]{0,8}Port \d{1,3}:", re.MULTILINE)
_COMMENT = lazy_pattern(r"[^\S\n]#[^\n]*")


def parse_ibstat(text: str) -> ParsedTool:
    """Every adapter that the text names; of one that is named twice, the later. Raises ParseError without any.

    >>> said = parse_ibstat("CA 'mlx5_0'\\n\\tNumber of ports: 1\\n\\tPort 1:\\n\\t\\tState: Active\\n")
    >>> said.devices[0].ports[0].state, said.cut
    ('ACTIVE', ('ibstat: mlx5_0 port 1 is cut off',))
    >>> filtered = parse_ibstat("CA 'mlx5_0'\\n\\t\\tState: Down\\n\\t\\tState: Active\\n")  # by grep
    >>> [(port.port, port.state) for port in filtered.devices[0].ports]
    [(1, 'DOWN'), (2, 'ACTIVE')]
    """
    text = _number_ports(restore_heading("ibstat", _COMMENT.sub("", text)))
    adapters = require(read_layout(_IBSTAT, text).sections.values(), "ibstat: no line \"CA '...'\"")
    cut = [note for adapter in adapters for note in normalize.describe_cut("ibstat", adapter, "Number of ports")]
    cut = cut or _describe_ends("ibstat", _IBSTAT, text)
    if ended := _ENDED.search(text):  # at a device that it could not read: those behind it are not reported
        cut.append(f"ibstat: it ended early: {ended[1].strip()[:160]}")
    return ParsedTool(tuple(map(normalize.build_device, adapters)), tuple(cut))


def _number_ports(text: str) -> str:
    """The same, with the lines "Port N:" that a filter left out: a field that is there again is of the next port."""
    if not text.startswith("CA '") or _PORT_LINE.search(text):
        return text
    lines, number, seen = list[str](), 0, set[str]()
    for line in text.splitlines(keepends=True):
        label = line.strip().partition(":")[0]
        if line.startswith("CA '"):
            number, seen = 0, set()
        elif label in _PORT.fields:
            if label in seen or not number:
                number, seen = number + 1, set()
                lines.append(f"\tPort {number}:\n")
            seen.add(label)
        lines.append(line)
    return "".join(lines)


def _describe_ends(tool: str, output: Layout, text: str) -> list[str]:
    """Notes where the text begins among the fields of a device, or ends within a line: it does not list all."""
    notes = []
    device = output.inner or output
    labels = {*device.fields, *(device.inner or device).fields} - {"name", "port"}
    for line in whole_lines(text)[0]:
        if device.heading and device.heading.fullmatch(line.strip()):
            break
        if line.partition(":")[0].strip() in labels:
            notes.append(f"{tool}: the text begins within a device")
            break
    if len(complete_lines(output, text)) < len(text.splitlines()) and text.splitlines()[-1].strip():
        notes.append(f"{tool}: the text ends within a line")
    return notes


def parse_ibstatus(text: str) -> ParsedTool:
    """Every port that the text names, by device. Raises ParseError without any.

    >>> parse_ibstatus("Infiniband device 'mlx5_0' port 1 status:\\n\\trate:\\t\\t 100 Gb/sec (4X EDR)\\n"
    ...                "\\tlink_layer:\\t InfiniBand\\n").devices[0].ports[0].rate_text
    '100 Gb/sec (4X EDR)'
    """
    text = restore_heading("ibstatus", text)
    paragraphs = read_layout(_IBSTATUS, text).sections.values()
    require(paragraphs, "ibstatus: no line \"Infiniband device '...' port N status:\"")
    ports: dict[str, dict[int, RdmaPort]] = {}
    cut = []
    for paragraph in sorted(paragraphs, key=lambda paragraph: paragraph.texts["name"]):
        name, port = paragraph.texts["name"], RdmaPort(**paragraph.values())
        ports.setdefault(name, {})[port.port] = port
        if port.link_layer is None:
            cut.append(f"ibstatus: {name} port {port.port} is cut off")
    return ParsedTool(normalize.devices_of_ports(ports), tuple(cut or _describe_ends("ibstatus", _IBSTATUS, text)))
