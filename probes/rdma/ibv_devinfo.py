"""Outputs of `ibv_devinfo`, plain or with -v, and of `ibv_devices` (rdma-core)."""

from __future__ import annotations

import re

from probes.layout import Block, Field, Layout, read_layout
from probes.rdma import normalize
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaPort
from probes.rdma.lost_heading import restore_heading
from probes.rdma.normalize import NAME, ParsedTool
from probes.text import lazy_pattern, require

_GID_TYPES = ("IB/RoCE v1", "RoCE v2", "IB", "RoCE v1")
_PORT = Layout(
    {
        "port": Field("port", int),
        "link_layer": Field("link_layer", normalize.link_layer),
        "state": Field("state", normalize.state),
        "phys_state": Field("phys_state", normalize.physical_state),
        "port_lid": Field("lid", normalize.number),
        "sm_lid": Field("sm_lid", normalize.number),
        "active_mtu": Field("active_mtu", normalize.number),
    },
    lazy_pattern(r"port:\s{0,80}(?P<port>[0-9]{1,10})"),
    row=lazy_pattern(r"GID\[\s{0,8}([0-9]{1,4})\]:([^,]*)(?:,(.*))?"),
)
_DEVICE = Layout(
    {
        "name": Field("name"),
        "fw_ver": Field("firmware"),
        "board_id": Field("board_id"),
        "node_guid": Field("node_guid", normalize.guid),
        "sys_image_guid": Field("system_image_guid", normalize.guid),
        "transport": Field("node_type", lambda text: "RNIC" if text.startswith("iWARP") else None),
    },
    lazy_pattern(rf"hca_id:\s{{0,80}}(?P<name>{NAME})"),
    inner=_PORT,
    row=_PORT.row,
)
_OUTPUT = Layout(
    inner=_DEVICE,
    whole=lazy_pattern(rf"{normalize.LINK_LAYER_LINE}|GID\[\s{{0,8}}[0-9]{{1,4}}\]:.{{0,200}}(?:IB/RoCE v1|RoCE v2)"),
    resumed=True,
)
LABELS = frozenset((*_DEVICE.fields, *_PORT.fields))
_REFUSED = lazy_pattern(r"^[ \t]{0,8}Failed to open device", re.MULTILINE)
_ACTIVE_WIDTH = lazy_pattern(r"([0-9]{1,2})X")
_CODE = lazy_pattern(r"\(([0-9]{1,4})\)")
_LISTED = lazy_pattern(rf"({NAME})\s+([0-9a-fA-F]{{16}})")
_MELLANOX, _AMAZON = "0x02c9", "0x1d0f"
_SOFTWARE_VENDORS = frozenset({"0xffffff", "0x626d74"})  # what soft RoCE and soft iWARP give as vendor_id


def parse_ibv_devinfo(text: str) -> ParsedTool:
    """Every device that the text names. With -v also rates and GIDs. Raises ParseError without any.

    >>> port = parse_ibv_devinfo("hca_id:\\tmlx5_0\\n\\tphys_port_cnt:\\t1\\n\\t\\tport:\\t1\\n"
    ...     "\\t\\t\\tstate:\\t\\tPORT_ACTIVE (4)\\n\\t\\t\\tactive_mtu:\\t1024 (3)\\n").devices[0].ports[0]
    >>> port.state, port.active_mtu
    ('ACTIVE', 1024)
    """
    text = restore_heading("ibv_devinfo", text)
    devices = list(read_layout(_OUTPUT, text).sections.values())
    require(devices, 'ibv_devinfo: no line "hca_id: ..."')
    cut = []
    for device in devices:
        cut += normalize.describe_cut("ibv_devinfo", device, "phys_port_cnt")
        if device.rows or "phys_state" in device.texts:
            cut.append(f"ibv_devinfo: {device.texts['name']} has GIDs of a port whose number is cut off")
    if refused := len(_REFUSED.findall(text)):
        cut.append(f"ibv_devinfo: {refused} device{'s'[: refused != 1]} could not be opened")
    ended = text.endswith(("\n", "\r")) and not text.splitlines()[-1].strip()  # a blank line ends each device
    return ParsedTool(tuple(_device(device, ended or device is not devices[-1]) for device in devices), tuple(cut))


def parse_ibv_devices(text: str) -> ParsedTool:
    """Names and node GUIDs. Raises ParseError where there is neither a device nor the table's head.

    >>> parse_ibv_devices("    device\\t node GUID\\n    mlx5_0\\t ec0d9a0300d3730b\\n").devices[0].node_guid
    'ec0d:9a03:00d3:730b'
    """
    rows = read_layout(Layout(row=_LISTED), text).rows
    require(rows or "node GUID" in text, "ibv_devices: no table of devices")
    return ParsedTool(
        tuple(
            RdmaDevice(row[1], node_guid=normalize.guid(row[2]), software=normalize.is_software(row[1])) for row in rows
        )
    )


def _device(block: Block, ended: bool) -> RdmaDevice:
    vendor, part = block.texts.get("vendor_id"), normalize.number(block.texts.get("vendor_part_id"))
    device = normalize.build_device(block)
    last = next(reversed(block.sections.values()), None)
    ports = [_port(port, ended or port is not last) for port in block.sections.values()]
    # EFA: older versions print the link layer of its ports as InfiniBand
    if block.texts.get("transport", "").startswith("unspecified") or vendor == _AMAZON:
        ports = [port._replace(link_layer="Unknown") for port in ports]
    return device._replace(
        hca_type=f"MT{part}" if part and vendor == _MELLANOX else None,
        software=vendor in _SOFTWARE_VENDORS or device.software,
        ports=tuple(sorted(ports, key=lambda port: port.port)),
    )


def _port(block: Block, ended: bool) -> RdmaPort:
    gids: dict[int, GidEntry] = {}
    for row in block.rows:
        kind = (row[3] or "").strip()
        if gid := normalize.gid(row[2]):
            gids.setdefault(int(row[1]), GidEntry(int(row[1]), gid, kind if kind in _GID_TYPES else None))
    return RdmaPort(
        **block.values(),
        rate_text=_rate(block.texts.get("active_width", ""), block.texts.get("active_speed", "")),
        gids=tuple(gid for _, gid in sorted(gids.items())),
        gids_known=ended and "gid_tbl_len" in block.texts,
    )


def _rate(width: str, speed: str) -> str | None:
    """Width and speed of -v as sysfs would print them."""
    lanes, code = _ACTIVE_WIDTH.match(width), _CODE.search(speed)
    return normalize.rate_text(int(lanes[1]), int(code[1])) if lanes and code else None
