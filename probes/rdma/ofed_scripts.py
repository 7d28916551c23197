"""Outputs of `ibdev2netdev`, plain or with -v, and of `show_gids` (MLNX_OFED, DOCA): interfaces and GIDs of ports."""

from __future__ import annotations

import re

from probes.layout import Layout, read_layout
from probes.rdma import normalize
from probes.rdma.facts import GidEntry, RdmaPort
from probes.rdma.normalize import NAME, ParsedTool
from probes.text import PCI_ADDRESS, lazy_pattern, natural, require

_PORT = Layout(
    row=lazy_pattern(
        rf"(?:(?P<address>{PCI_ADDRESS})\s{{1,8}})?"
        rf"(?P<name>{NAME})\s(?P<more>.{{0,200}}?)\bport\s{{1,8}}(?P<port>[0-9]{{1,3}})\s(?P<state>[^=]{{0,80}})==>\s{{0,8}}(?P<end>.*)"
    )
)
_END = lazy_pattern(r"(?:(\S{1,64})\s{1,8})?\((Up|Down)\)(?:\s.*)?")
_STATE = lazy_pattern(r"\s{0,8}\((\w{1,20})\s{0,8}\)\s{0,8}")  # with -v, of the port
_NOT_FIRST = lazy_pattern(r"ib|\S{0,60}?f[1-9]\d{0,2}(?:np\d{1,2}|d\d{1,2}|v\d{1,3})?$")
_FEW = 4  # ports, of which one may be down
_RAILS = 8  # interfaces of InfiniBand, which run IP where seven of eight do
_OF_INTERFACE = {"Up": "ACTIVE", "Down": "DOWN"}
_FIRMWARE = lazy_pattern(r"\bfw\s{1,8}(\S{1,64})")


def parse_ibdev2netdev(text: str) -> ParsedTool:
    """Devices with the interface of each port. With -v the port's state is before the arrow. What it prints in the
    end is the interface's state. An interface of Ethernet, by its name, that is up has an active port. One that is down
    counts as the port's state where few of its kind are; of InfiniBand, whose ports need no IP, where all others are
    up. Raises ParseError without any line of it.

    >>> parse_ibdev2netdev("mlx5_1 port 1 ==> bond0 (Up)\\n").devices[0].ports[0].netdevs
    ('bond0',)
    """
    address: dict[str, str | None] = {}
    firmware: dict[str, str | None] = {}
    ports: dict[str, dict[int, RdmaPort]] = {}
    cut = []
    rows = read_layout(_PORT, text).rows
    states = {end[1]: end[2] for row in rows if (end := _END.fullmatch(row["end"])) and end[1]}
    # Second ports of a card are often left without a cable
    ethernet = {name for name in states if not _NOT_FIRST.match(name)}
    infiniband = {name for name in states if name.startswith("ib")}
    down = {name for name, state in states.items() if state == "Down"}
    counted = ethernet if len(ethernet & down) * _FEW <= len(ethernet) else ethernet - down
    if len(infiniband & down) == 1 and len(infiniband) >= _RAILS:
        counted |= infiniband
    for row in rows:
        name, end, version = row["name"], _END.fullmatch(row["end"]), _FIRMWARE.search(row["more"])
        address[name], firmware[name] = row["address"], version[1] if version else None
        own = _STATE.fullmatch(row["state"])
        by_name = _OF_INTERFACE[states[end[1]]] if end and end[1] in counted else None
        state = normalize.state(own[1]) if own else by_name
        port = RdmaPort(int(row["port"]), state=state, netdevs=(end[1],) if end and end[1] else ())
        ports.setdefault(name, {})[port.port] = port
        if not end:
            cut.append(f"ibdev2netdev: the line of {name} port {port.port} is cut off")
    require(ports, 'ibdev2netdev: no line "DEVICE port N ==> INTERFACE (Up)"')
    return ParsedTool(normalize.devices_of_ports(ports, address=address, firmware=firmware), tuple(cut))


_TYPES = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
_GIDS = Layout(
    row=lazy_pattern(  # the address and the interface can be missing
        rf"(?P<name>{NAME})\s{{1,40}}(?P<port>[0-9]{{1,4}})\s{{1,40}}(?P<index>[0-9]{{1,6}})\s{{1,40}}(?P<gid>[0-9a-fA-F:.]{{2,48}})"
        r"\s{1,60}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}\s{1,60})?(?P<type>v[12])(?:\s{1,60}(?P<netdev>\S{1,64})(?:\s.*)?)?"
    ),
    whole=lazy_pattern(r"n_gids_found=[0-9]{1,6}"),
)
_BROKEN = lazy_pattern(
    r"(?<=[0-9a-f]{4})[ \t\r]{0,40}\n[ \t]{0,60}(?=(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}\s{1,60})?v[12]\b)"
)
_COUNT = lazy_pattern(r"^[ \t]{0,40}n_gids_found=([0-9]{1,6})[ \t\r]{0,40}$", re.MULTILINE)
_HEAD = lazy_pattern(r"^[ \t]{0,40}DEV\s{1,40}PORT\s{1,40}INDEX\s{1,40}GID(?!\S)[^\n]*\n", re.MULTILINE)


def parse_show_gids(text: str) -> ParsedTool:
    """Devices with the GIDs of each port. The tables are known to be whole only where the closing count states it.

    Raises ParseError where there is neither a row nor the table's head.

    >>> said = parse_show_gids("mlx5_1\\t1\\t0\\tfe80:0000:0000:0000:9440:c9ff:ffd6:9c9d\\tv1\\nn_gids_found=1\\n")
    >>> said.devices[0].ports[0].gids[0].type, said.devices[0].ports[0].gids_known
    ('IB/RoCE v1', True)
    """
    tables: dict[str, dict[int, dict[int, GidEntry]]] = {}
    row_count = 0
    for row in read_layout(_GIDS, _BROKEN.sub(" ", text)).rows:  # where a terminal broke it
        if gid := normalize.gid(row["gid"]):
            entry = GidEntry(int(row["index"]), gid, _TYPES[row["type"]], row["netdev"])
            tables.setdefault(row["name"], {}).setdefault(int(row["port"]), {})[entry.index] = entry
            row_count += 1
    require(tables or _HEAD.search(text), "show_gids: no table of GIDs")
    counts = _COUNT.findall(text)
    whole = bool(counts) and int(counts[-1]) == row_count
    ports = {
        name: {number: _port(number, gids, whole) for number, gids in of_ports.items()}
        for name, of_ports in tables.items()
    }
    devices = normalize.devices_of_ports(ports)
    return ParsedTool(devices, () if whole else (_describe_gap(row_count, int(counts[-1]) if counts else None),))


def _port(number: int, gids: dict[int, GidEntry], whole: bool) -> RdmaPort:
    netdevs = {gid.netdev for gid in gids.values() if gid.netdev}
    return RdmaPort(
        port=number,
        link_layer="Ethernet" if any(gid.type == _TYPES["v2"] for gid in gids.values()) else None,  # has no other
        gids=tuple(gid for _, gid in sorted(gids.items())),
        gids_known=whole,
        netdevs=tuple(sorted(netdevs, key=natural)),
    )


def _describe_gap(row_count: int, count: int | None) -> str:
    if count is None:
        return "show_gids: the closing count is missing, the table may be cut off"
    return f"show_gids: {count} GIDs were found, the text holds {row_count}"
