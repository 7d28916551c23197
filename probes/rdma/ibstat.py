"""Parses the output of `ibstat` (infiniband-diags): every channel adapter with its ports.

Parses the output of `ibstatus` (infiniband-diags): a paragraph a port, values as sysfs prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from probes.rdma import normalize as rdma_words
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaPort
from probes.rdma.normalize import ParsedTool
from probes.text import ParseError

_ADAPTER = re.compile(rf"CA '({rdma_words.NAME})'")
_PORT = re.compile(r"Port ([0-9]{1,3}):")
_ENDED = re.compile(r"^[ \t]{0,8}ibpanic: ?(?:\[[0-9]{1,10}\] ?)?([^\n]{1,300})", re.MULTILINE)
_FIELDS = frozenset({"CA type", "Node GUID", "State", "Physical state", "Rate", "Base lid", "Port GUID", "Link layer"})
_COMMENT = re.compile(r"\s#")


@dataclass
class _IbstatAdapter:
    name: str
    said: dict[str, str] = field(default_factory=dict)
    ports: dict[int, dict[str, str]] = field(default_factory=dict)


def parse_ibstat(text: str) -> ParsedTool:
    """Every adapter that the text names; of one that is named twice, the later. Raises ParseError without any.

    >>> said = parse_ibstat("CA 'mlx5_0'\\n\\tNumber of ports: 1\\n\\tPort 1:\\n\\t\\tState: Active\\n")
    >>> said.devices[0].ports[0].state, said.cut
    ('ACTIVE', ('ibstat: mlx5_0 port 1 is cut off',))
    """
    adapters = _adapters(text)
    if not adapters:
        raise ParseError("ibstat: no line \"CA '...'\"")
    cut = [note for adapter in adapters.values() for note in _cut(adapter)]
    cut += _ends(text, _ADAPTER, _FIELDS, _if_last_of_port, "ibstat") if not cut else []
    if ended := _ENDED.search(text):  # at a device that it could not read: those behind it are not told
        cut.append(f"ibstat: it ended early: {ended[1].strip()[:160]}")
    return ParsedTool(tuple(_device(adapter) for adapter in adapters.values()), tuple(cut))


def _adapters(text: str) -> dict[str, _IbstatAdapter]:
    """The indentation says nothing: mail programs lose it."""
    adapters: dict[str, _IbstatAdapter] = {}
    current: _IbstatAdapter | None = None
    fields: dict[str, str] = {}
    lines, rest = rdma_words.whole_lines(text)
    for line in [*lines, *_if_last_of_port(rest)]:
        bare = line.strip()
        if match := _ADAPTER.fullmatch(bare):
            current = adapters[match[1]] = _IbstatAdapter(match[1])
            fields = current.said
        elif current and (match := _PORT.fullmatch(bare)):
            fields = current.ports[int(match[1])] = {}
        elif current:
            key, colon, value = bare.partition(":")
            if colon:
                fields.setdefault(key.strip(), _COMMENT.split(value, maxsplit=1)[0].strip())
    return adapters


def _if_last_of_port(line: str) -> list[str]:
    """The unended last line, where it is the one that ends a port and is itself whole."""
    key, _, value = line.strip().partition(":")
    return [line] if key == "Link layer" and rdma_words.link_layer(value) else []


def _ends(
    text: str, head: re.Pattern[str], fields: frozenset[str], if_whole: Callable[[str], list[str]], tool: str
) -> list[str]:
    """Notes where the text begins among the fields of a device, or ends within a line: it does not list all."""
    notes = []
    lines, rest = rdma_words.whole_lines(text)
    for line in lines:
        if head.fullmatch(line.strip()):
            break
        if line.partition(":")[0].strip() in fields:
            notes.append(f"{tool}: the text begins within a device")
            break
    if rest.strip() and not if_whole(rest):
        notes.append(f"{tool}: the text ends within a line")
    return notes


def _cut(adapter: _IbstatAdapter) -> list[str]:
    notes = [
        f"ibstat: {adapter.name} port {number} is cut off"
        for number, fields in adapter.ports.items()
        if rdma_words.link_layer(fields.get("Link layer")) is None and not fields.get("Port GUID")
    ]
    ports = rdma_words.number(adapter.said.get("Number of ports"))
    if ports is None or ports > len(adapter.ports):
        notes.append(f"ibstat: {adapter.name} has {ports or 'more'} ports, the text holds {len(adapter.ports)}")
    return notes


def _device(adapter: _IbstatAdapter) -> RdmaDevice:
    fields = adapter.said
    return RdmaDevice(
        name=adapter.name,
        firmware=fields.get("Firmware version") or None,
        hca_type=fields.get("CA type") or None,
        node_guid=rdma_words.guid(fields.get("Node GUID")),
        system_image_guid=rdma_words.guid(fields.get("System image GUID")),
        software=rdma_words.is_software(adapter.name),
        ports=tuple(_port(number, port) for number, port in sorted(adapter.ports.items())),
    )


def _port(number: int, fields: dict[str, str]) -> RdmaPort:
    return RdmaPort(
        port=number,
        link_layer=rdma_words.link_layer(fields.get("Link layer")),
        state=rdma_words.state(fields.get("State")),
        phys_state=rdma_words.physical_state(fields.get("Physical state")),
        rate_text=fields.get("Rate") or None,
        lid=rdma_words.number(fields.get("Base lid")),
        sm_lid=rdma_words.number(fields.get("SM lid")),
        port_guid=rdma_words.guid(fields.get("Port GUID")),
    )


_HEADER = re.compile(rf"[Ii]nfini[Bb]and device '({rdma_words.NAME})' port ([0-9]{{1,3}}) status:")

_STATUS_FIELDS = frozenset({"default gid", "base lid", "state", "phys state", "rate", "link_layer"})


def parse_ibstatus(text: str) -> ParsedTool:
    """Every port that the text names, by device. Raises ParseError without any.

    >>> parse_ibstatus("Infiniband device 'mlx5_0' port 1 status:\\n\\trate:\\t\\t 100 Gb/sec (4X EDR)\\n"
    ...                "\\tlink_layer:\\t InfiniBand\\n").devices[0].ports[0].rate_text
    '100 Gb/sec (4X EDR)'
    """
    paragraphs = _paragraphs(text)
    if not paragraphs:
        raise ParseError("ibstatus: no line \"Infiniband device '...' port N status:\"")
    ports: dict[str, list[RdmaPort]] = {}
    for (name, number), fields in sorted(paragraphs.items()):
        ports.setdefault(name, []).append(_port_of_status(number, fields))
    devices = [RdmaDevice(name, software=rdma_words.is_software(name), ports=tuple(of)) for name, of in ports.items()]
    cut = [
        f"ibstatus: {name} port {number} is cut off"
        for (name, number), fields in paragraphs.items()
        if rdma_words.link_layer(fields.get("link_layer")) is None
    ]
    cut += _ends(text, _HEADER, _STATUS_FIELDS, _if_last_of_status, "ibstatus") if not cut else []
    return ParsedTool(tuple(devices), tuple(cut))


def _paragraphs(text: str) -> dict[tuple[str, int], dict[str, str]]:
    paragraphs: dict[tuple[str, int], dict[str, str]] = {}
    fields: dict[str, str] | None = None
    lines, rest = rdma_words.whole_lines(text)
    for line in [*lines, *_if_last_of_status(rest)]:
        bare = line.strip()
        if match := _HEADER.fullmatch(bare):
            fields = paragraphs[match[1], int(match[2])] = {}
        elif fields is not None:
            key, colon, value = bare.partition(":")
            if colon:
                fields.setdefault(key.strip(), value.strip())
    return paragraphs


def _if_last_of_status(line: str) -> list[str]:
    """The unended last line, where it is the one that ends a port and is itself whole."""
    key, _, value = line.strip().partition(":")
    return [line] if key == "link_layer" and rdma_words.link_layer(value) else []


def _port_of_status(number: int, fields: dict[str, str]) -> RdmaPort:
    default = rdma_words.gid(fields.get("default gid"))
    return RdmaPort(
        port=number,
        link_layer=rdma_words.link_layer(fields.get("link_layer")),
        state=rdma_words.state(fields.get("state")),
        phys_state=rdma_words.physical_state(fields.get("phys state")),
        rate_text=fields.get("rate") or None,
        lid=rdma_words.number(fields.get("base lid")),
        sm_lid=rdma_words.number(fields.get("sm lid")),
        gids=(GidEntry(0, default),) if default else (),
    )
