"""Parses the outputs of `ibv_devinfo`, plain or with -v, and of `ibv_devices` (rdma-core)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from probes.rdma import normalize as rdma_words
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaPort
from probes.rdma.normalize import ParsedTool, rate_text
from probes.text import ParseError

_REFUSED = re.compile(r"^[ \t]{0,8}Failed to open device", re.MULTILINE)
_GID = re.compile(r"GID\[\s*([0-9]{1,4})\]")
_GID_TYPES = ("IB/RoCE v1", "RoCE v2", "IB", "RoCE v1")
_ACTIVE_WIDTH = re.compile(r"([0-9]{1,2})X")
_CODE = re.compile(r"\(([0-9]{1,4})\)")
_LISTED = re.compile(rf"({rdma_words.NAME})\s+([0-9a-fA-F]{{16}})")
_MELLANOX, _AMAZON = "0x02c9", "0x1d0f"
_SOFTWARE_VENDORS = frozenset({"0xffffff", "0x626d74"})  # what soft RoCE and soft iWARP give as vendor_id


@dataclass
class _DevinfoPort:
    said: dict[str, str] = field(default_factory=dict)
    gids: dict[int, GidEntry] = field(default_factory=dict)


@dataclass
class _Device:
    name: str
    said: dict[str, str] = field(default_factory=dict)
    ports: dict[int, _DevinfoPort] = field(default_factory=dict)
    homeless: bool = False  # lines of a port whose own line is missing


def parse_ibv_devinfo(text: str) -> ParsedTool:
    """Every device that the text names. With -v also rates and GIDs. Raises ParseError without any.

    >>> port = parse_ibv_devinfo("hca_id:\\tmlx5_0\\n\\tphys_port_cnt:\\t1\\n\\t\\tport:\\t1\\n"
    ...     "\\t\\t\\tstate:\\t\\tPORT_ACTIVE (4)\\n\\t\\t\\tactive_mtu:\\t1024 (3)\\n").devices[0].ports[0]
    >>> port.state, port.active_mtu
    ('ACTIVE', 1024)
    """
    lines, rest = rdma_words.whole_lines(text)
    devices = _devices([*lines, *_if_whole(rest)])
    if not devices:
        raise ParseError('ibv_devinfo: no line "hca_id: ..."')
    unended = next(reversed(devices)) if rest or lines[-1].strip() else None  # a blank line ends each device
    cut = [note for device in devices.values() for note in _cut(device)]
    if refused := len(_REFUSED.findall(text)):
        cut.append(f"ibv_devinfo: {refused} device{'s'[: refused != 1]} could not be opened")
    return ParsedTool(tuple(_build_devices(device, device.name != unended) for device in devices.values()), tuple(cut))


def parse_ibv_devices(text: str) -> ParsedTool:
    """Names and node GUIDs. Raises ParseError where there is neither a device nor the table's head.

    >>> parse_ibv_devices("    device\\t node GUID\\n    mlx5_0\\t ec0d9a0300d3730b\\n").devices[0].node_guid
    'ec0d:9a03:00d3:730b'
    """
    rows = [match for line in text.splitlines() if (match := _LISTED.fullmatch(line.strip()))]
    if not rows and "node GUID" not in text:
        raise ParseError("ibv_devices: no table of devices")
    return ParsedTool(
        tuple(
            RdmaDevice(row[1], node_guid=rdma_words.guid(row[2]), software=rdma_words.is_software(row[1]))
            for row in rows
        )
    )


def _devices(lines: list[str]) -> dict[str, _Device]:
    devices: dict[str, _Device] = {}
    device: _Device | None = None
    port: _DevinfoPort | None = None
    for line in lines:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        if key == "hca_id" and re.fullmatch(rdma_words.NAME, value):
            device, port = devices.setdefault(value, _Device(value)), None
        elif device is None:
            continue
        elif key == "port" and (number := rdma_words.number(value)) is not None:
            port = device.ports.setdefault(number, _DevinfoPort())
        elif match := _GID.fullmatch(key):
            device.homeless |= port is None
            entry = _gid(int(match[1]), value)
            if port and entry:
                port.gids.setdefault(entry.index, entry)
        else:
            device.homeless |= port is None and key == "phys_state"
            (port or device).said.setdefault(key, value)
    return devices


def _if_whole(line: str) -> list[str]:
    """The unended last line, where its own form shows that it is whole."""
    key, _, value = (part.strip() for part in line.partition(":"))
    typed = _GID.fullmatch(key) and value.endswith(("IB/RoCE v1", "RoCE v2"))
    return [line] if typed or (key == "link_layer" and rdma_words.link_layer(value)) else []


def _gid(index: int, value: str) -> GidEntry | None:
    address, _, kind = (part.strip() for part in value.partition(","))
    gid = rdma_words.gid(address)
    return GidEntry(index, gid, kind if kind in _GID_TYPES else None) if gid else None


def _cut(device: _Device) -> list[str]:
    notes = [
        f"ibv_devinfo: {device.name} port {number} is cut off"
        for number, port in device.ports.items()
        if rdma_words.link_layer(port.said.get("link_layer")) is None
    ]
    ports = rdma_words.number(device.said.get("phys_port_cnt"))
    if ports is None or ports > len(device.ports):
        notes.append(f"ibv_devinfo: {device.name} has {ports or 'more'} ports, the text holds {len(device.ports)}")
    if device.homeless:
        notes.append(f"ibv_devinfo: {device.name} has GIDs of a port whose number is cut off")
    return notes


def _build_devices(device: _Device, ended: bool) -> RdmaDevice:
    fields = device.said
    part = rdma_words.number(fields.get("vendor_part_id"))
    soft = fields.get("vendor_id") in _SOFTWARE_VENDORS or rdma_words.is_software(device.name)
    last = next(reversed(device.ports), None)
    # EFA: older versions print the link layer of its ports as InfiniBand
    unspecified = fields.get("transport", "").startswith("unspecified") or fields.get("vendor_id") == _AMAZON
    ports = tuple(_port(number, port, ended or number != last) for number, port in sorted(device.ports.items()))
    return RdmaDevice(
        name=device.name,
        node_type="RNIC" if fields.get("transport", "").startswith("iWARP") else None,
        firmware=fields.get("fw_ver") or None,
        board_id=fields.get("board_id") or None,
        hca_type=f"MT{part}" if part and fields.get("vendor_id") == _MELLANOX else None,
        node_guid=rdma_words.guid(fields.get("node_guid")),
        system_image_guid=rdma_words.guid(fields.get("sys_image_guid")),
        software=soft,
        ports=tuple(port._replace(link_layer="Unknown") for port in ports) if unspecified else ports,
    )


def _port(number: int, port: _DevinfoPort, ended: bool) -> RdmaPort:
    fields = port.said
    return RdmaPort(
        port=number,
        link_layer=rdma_words.link_layer(fields.get("link_layer")),
        state=rdma_words.state(fields.get("state")),
        phys_state=rdma_words.physical_state(fields.get("phys_state")),
        rate_text=_rate(fields.get("active_width", ""), fields.get("active_speed", "")),
        lid=rdma_words.number(fields.get("port_lid")),
        sm_lid=rdma_words.number(fields.get("sm_lid")),
        active_mtu=rdma_words.number(fields.get("active_mtu")),
        gids=tuple(gid for _, gid in sorted(port.gids.items())),
        gids_known=ended and "gid_tbl_len" in fields,
    )


def _rate(width: str, speed: str) -> str | None:
    """Width and speed of -v as sysfs would print them."""
    lanes, code = _ACTIVE_WIDTH.match(width), _CODE.search(speed)
    return rate_text(int(lanes[1]), int(code[1])) if lanes and code else None
