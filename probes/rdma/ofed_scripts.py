"""Parses the output of `ibdev2netdev` (MLNX_OFED, DOCA), plain or with -v: which interface a port has.

Parses the output of `show_gids` (MLNX_OFED, DOCA): the used GIDs of every port.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address

from probes.layout import whole_lines
from probes.rdma import normalize as rdma_words
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaPort
from probes.rdma.normalize import ParsedTool
from probes.text import ParseError

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NETDEV = re.compile(r"(\S{1,64})\s+\((?:Up|Down)\)(?:\s.*)?")
_ARROW = "==>"


def parse_ibdev2netdev(text: str) -> ParsedTool:
    """Devices with the interface of each port. What it prints in the end is the interface's state: it is left out,
    because the port has one of its own. Raises ParseError without any line of it.

    >>> parse_ibdev2netdev("mlx5_1 port 1 ==> bond0 (Up)\\n").devices[0].ports[0].netdevs
    ('bond0',)
    """
    addresses: dict[str, str | None] = {}
    firmware: dict[str, str | None] = {}
    ports: dict[str, dict[int, RdmaPort]] = {}
    cut = []
    for line in text.splitlines():
        left, arrow, right = line.partition(_ARROW)
        words = left.split()
        address = words.pop(0) if words and _ADDRESS.fullmatch(words[0]) else None
        at = _port_at(words)
        if not arrow or at is None or not re.fullmatch(rdma_words.NAME, words[0]):
            continue
        name, number, interface = words[0], int(words[at + 1]), _NETDEV.fullmatch(right.strip())
        addresses[name] = address
        firmware[name] = words[words.index("fw") + 1] if "fw" in words[:at] else None
        ports.setdefault(name, {})[number] = RdmaPort(number, netdevs=(interface[1],) if interface else ())
        if not interface and right.strip() not in ("(Up)", "(Down)"):
            cut.append(f"ibdev2netdev: the line of {name} port {number} is cut off")
    if not ports:
        raise ParseError('ibdev2netdev: no line "DEVICE port N ==> INTERFACE (Up)"')
    return ParsedTool(
        tuple(
            RdmaDevice(
                name,
                address=addresses[name],
                firmware=firmware[name],
                software=rdma_words.is_software(name),
                ports=tuple(port for _, port in sorted(of.items())),
            )
            for name, of in ports.items()
        ),
        tuple(cut),
    )


def _port_at(words: list[str]) -> int | None:
    """Where "port N" stands, after the name."""
    for at in range(1, len(words) - 1):
        if words[at] == "port" and re.fullmatch(r"[0-9]{1,3}", words[at + 1]):
            return at
    return None


_COUNT = re.compile(r"n_gids_found=([0-9]{1,6})")
_TYPES = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}


def parse_show_gids(text: str) -> ParsedTool:
    """Devices with the GIDs of each port. The tables are known to be whole only where the closing count says so.

    Raises ParseError where there is neither a row nor the table's head.

    >>> said = parse_show_gids("mlx5_1\\t1\\t0\\tfe80:0000:0000:0000:9440:c9ff:ffd6:9c9d\\tv1\\nn_gids_found=1\\n")
    >>> said.devices[0].ports[0].gids[0].type, said.devices[0].ports[0].gids_known
    ('IB/RoCE v1', True)
    """
    lines, rest = whole_lines(text)
    rows: dict[str, dict[int, dict[int, GidEntry]]] = {}
    row_count = 0
    count: int | None = None
    head = False
    for line in [*lines, *([rest] if _COUNT.fullmatch(rest.strip()) else [])]:
        words = line.split()
        head |= words[:4] == ["DEV", "PORT", "INDEX", "GID"]
        if match := _COUNT.fullmatch(line.strip()):
            count = int(match[1])
        elif row := _row(words):
            name, port, gid = row
            rows.setdefault(name, {}).setdefault(port, {})[gid.index] = gid
            row_count += 1
    if not rows and not head:
        raise ParseError("show_gids: no table of GIDs")
    devices = [_device(name, ports, row_count == count) for name, ports in rows.items()]
    return ParsedTool(tuple(devices), () if row_count == count else (_describe_gap(row_count, count),))


def _row(words: list[str]) -> tuple[str, int, GidEntry] | None:
    """DEV PORT INDEX GID [IPv4] VER [DEV]: the address and the interface can be missing."""
    if len(words) < 5 or not re.fullmatch(rdma_words.NAME, words[0]):
        return None
    port, index, gid = rdma_words.number(words[1]), rdma_words.number(words[2]), rdma_words.gid(words[3])
    rest = words[5:] if _is_ipv4(words[4]) else words[4:]
    if port is None or index is None or gid is None or not rest or rest[0] not in _TYPES:
        return None
    return words[0], port, GidEntry(index, gid, _TYPES[rest[0]], rest[1] if len(rest) > 1 else None)


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def _device(name: str, ports: dict[int, dict[int, GidEntry]], whole: bool) -> RdmaDevice:
    return RdmaDevice(
        name,
        software=rdma_words.is_software(name),
        ports=tuple(_port(number, gids, whole) for number, gids in sorted(ports.items())),
    )


def _port(number: int, gids: dict[int, GidEntry], whole: bool) -> RdmaPort:
    netdevs = {gid.netdev for gid in gids.values() if gid.netdev}
    return RdmaPort(
        port=number,
        link_layer="Ethernet" if any(gid.type == _TYPES["v2"] for gid in gids.values()) else None,  # has no other
        gids=tuple(gid for _, gid in sorted(gids.items())),
        gids_known=whole,
        netdevs=tuple(sorted(netdevs, key=rdma_words.in_order)),
    )


def _describe_gap(row_count: int, count: int | None) -> str:
    if count is None:
        return "show_gids: the closing count is missing, the table may be cut off"
    return f"show_gids: {count} GIDs were found, the text holds {row_count}"
