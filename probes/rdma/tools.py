"""RDMA devices from what tools print: the fallback where /sys/class/infiniband is not in the source.

Tools: infiniband-diags (ibstat, ibstatus), rdma-core (ibv_devinfo, ibv_devices), iproute2 (rdma), MLNX_OFED
(ibdev2netdev, show_gids). All of them read the same sysfs and verbs, so they may complete each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from probes.asking import Asking
from probes.host.commands import RDMA
from probes.host.interface import Absent, Failed, Host, Unanswered
from probes.probe import Reading
from probes.rdma import normalize as rdma_words
from probes.rdma.facts import Gid, RdmaDevice, RdmaFacts, RdmaPort
from probes.rdma.ibdev2netdev import parse_ibdev2netdev
from probes.rdma.ibstat import parse_ibstat
from probes.rdma.ibstatus import parse_ibstatus
from probes.rdma.ibv_devinfo import parse_ibv_devices, parse_ibv_devinfo
from probes.rdma.normalize import Parsed
from probes.rdma.rdma_link import parse_rdma_link
from probes.rdma.show_gids import parse_show_gids
from probes.text import Unparsable

Row = TypeVar("Row", RdmaDevice, RdmaPort, Gid)

# Where two tools say the same thing, the one above is believed: it prints more of it, or prints it rawer.
TOOLS: tuple[tuple[tuple[str, ...], Callable[[str], Parsed]], ...] = (
    (("ibstatus",), parse_ibstatus),
    (("ibv_devinfo", "-v"), parse_ibv_devinfo),
    (("ibv_devinfo",), parse_ibv_devinfo),
    (("ibstat",), parse_ibstat),
    (("rdma", "link"), parse_rdma_link),
    (("rdma", "link", "show"), parse_rdma_link),
    (("ibdev2netdev", "-v"), parse_ibdev2netdev),
    (("ibdev2netdev",), parse_ibdev2netdev),
    (("show_gids",), parse_show_gids),
    (("ibv_devices",), parse_ibv_devices),
)


def read(host: Host) -> Reading:
    """`RdmaFacts` of all outputs that there are. Raises Absent without any, Failed where none can be understood."""
    said: list[tuple[RdmaDevice, ...]] = []
    ask = Asking(host)
    for argv, parse in TOOLS:
        if argv not in RDMA and not host.has_output(*argv):
            continue
        try:
            parsed = _asked(host, argv, parse)
        except Absent:
            continue
        except Unanswered as why:
            ask.gap(why.reason)
            continue
        said.append(parsed.devices)
        ask.answered(" ".join(argv))
        for note in parsed.cut:
            ask.gap(note)
    if not said and ask.missing:
        raise Failed(ask.missing)
    if not said:
        raise Absent("no output of ibstat, ibstatus, ibv_devinfo, rdma link, ibdev2netdev or show_gids")
    return Reading(RdmaFacts(merged(said)), ask.sources, ask.missing)


def merged(said: Iterable[Iterable[RdmaDevice]]) -> tuple[RdmaDevice, ...]:
    """One row a device, what an earlier source lacks taken from a later one; sorted by name.

    >>> [device.firmware for device in merged([[RdmaDevice("a")], [RdmaDevice("a", firmware="1")]])]
    ['1']
    """
    devices: dict[str, RdmaDevice] = {}
    for device in (device for source in said for device in source):
        known = devices.get(device.name)
        devices[device.name] = _completed_device(known, device) if known else device
    return tuple(devices[name] for name in sorted(devices, key=rdma_words.in_order))


def _asked(host: Host, argv: tuple[str, ...], parse: Callable[[str], Parsed]) -> Parsed:
    completed = host.run(*argv)
    try:
        return parse(completed.stdout)
    except Unparsable as why:
        first = next(iter(completed.stderr.strip().splitlines()), "")
        said = f" (exit {completed.returncode}: {first[:100]})" if completed.returncode or first else ""
        raise Failed(f"{why}{said}") from why


def _completed_device(first: RdmaDevice, second: RdmaDevice) -> RdmaDevice:
    ports = {port.port: port for port in first.ports}
    for port in second.ports:
        ports[port.port] = _completed_port(ports[port.port], port) if port.port in ports else port
    return _completed(first, second)._replace(ports=tuple(port for _, port in sorted(ports.items())))


def _completed_port(first: RdmaPort, second: RdmaPort) -> RdmaPort:
    gids = {gid.index: gid for gid in first.gids}
    for gid in second.gids:
        gids[gid.index] = _completed(gids[gid.index], gid) if gid.index in gids else gid
    netdevs = sorted({*first.netdevs, *second.netdevs}, key=rdma_words.in_order)
    whole = _completed(first, second)
    return whole._replace(gids=tuple(gid for _, gid in sorted(gids.items())), netdevs=tuple(netdevs))


def _completed(first: Row, second: Row) -> Row:
    lacking = [name for name in first._fields if _lacks(getattr(first, name))]
    return first._replace(**{name: getattr(second, name) for name in lacking})


def _lacks(value: object) -> bool:
    return value is None or value is False or value == ()
