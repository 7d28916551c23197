"""RDMA devices from what tools print: the fallback where /sys/class/infiniband is not in the source.

Tools: infiniband-diags (ibstat, ibstatus), rdma-core (ibv_devinfo, ibv_devices), iproute2 (rdma: its lines are read
here), MLNX_OFED (ibdev2netdev, show_gids). All of them read the same sysfs and verbs, so they may complete each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from probes.host.commands import RDMA
from probes.host.interface import FILTERED, Absent, Failed, Host, ReadError
from probes.host_reader import HostReader
from probes.layout import Field, Layout, read_words
from probes.probe import Reading
from probes.rdma import normalize
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaFacts, RdmaPort
from probes.rdma.ibstat import parse_ibstat, parse_ibstatus
from probes.rdma.ibv_devinfo import parse_ibv_devices, parse_ibv_devinfo
from probes.rdma.normalize import ParsedTool
from probes.rdma.ofed_scripts import parse_ibdev2netdev, parse_show_gids
from probes.text import RDMA_DEVICE, ParseError, lazy_pattern, natural, require

_LINK = lazy_pattern(
    rf"(?:link|[0-9]{{1,4}}/[0-9]{{1,4}}:)\s{{1,80}}(?P<name>{normalize.NAME})/(?P<port>[0-9]{{1,4}}):?(?:\s(?P<rest>.*))?"
    rf"|(?:(?:CA|HCA|device|port)\s)?'?(?P<named>{RDMA_DEVICE})'?(?:/| port |:)"
    r"(?P<number>[0-9]{1,3})[:,]?\s(?P<stated>.*)"
)
_SEPARATORS = lazy_pattern(r"[,;=]|: ")  # as a person or a script writes the same words
_PORT = Layout(
    {
        "state": Field("state", normalize.state),
        "physical_state": Field("phys_state", normalize.physical_state),
        "phys_state": Field("phys_state", normalize.physical_state),
        "lid": Field("lid", normalize.number),
        "sm_lid": Field("sm_lid", normalize.number),
        "netdev": Field("netdevs", lambda name: (name,)),
    }
)


def parse_rdma_link(text: str) -> ParsedTool:
    """Every port that the text names, by device. Raises ParseError without any.

    >>> parse_rdma_link("link roceo1/1 state ACTIVE physical_state LINK_UP netdev eno1\\n").devices[0].ports[0].netdevs
    ('eno1',)
    >>> parse_rdma_link("link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 7 sm_lid 1 lmc 0 state INIT "
    ...                 "physical_state LINK_UP\\n").devices[0].ports[0].lid
    7
    """
    ports: dict[str, dict[int, RdmaPort]] = {}
    cut = []
    for name, number, words in _links(text):
        port = RdmaPort(
            number,
            link_layer="InfiniBand" if "subnet_prefix" in words else None,  # no other port has one
            **read_words(_PORT, words).values(),
        )
        ports.setdefault(name, {})[number] = port
        if port.state is None or port.phys_state is None:
            cut.append(f"rdma link: {name}/{number} is cut off")
    require(ports, 'rdma link: no line "link DEVICE/PORT ..."')
    return ParsedTool(normalize.devices_of_ports(ports), tuple(cut))


def _links(text: str) -> list[tuple[str, int, list[str]]]:
    """The words of each: mail programs wrap lines, and `-d` prints capabilities below. A blank line ends a link."""
    links: list[tuple[str, int, list[str]]] = []
    is_open = False
    for line in text.splitlines():
        bare = line.strip()
        if match := _LINK.fullmatch(bare):
            name, port = match["name"] or match["named"], match["port"] or match["number"]
            links.append((name, int(port), _SEPARATORS.sub(" ", match["rest"] or match["stated"] or "").split()))
        elif is_open:
            links[-1][2].extend(bare.split())
        is_open = bool(bare and links) and (match is not None or is_open)
    return links


Row = TypeVar("Row", RdmaDevice, RdmaPort, GidEntry)

# Where two tools state the same thing, the one above is trusted: it prints more of it, or prints it rawer.
TOOLS: tuple[tuple[tuple[str, ...], Callable[[str], ParsedTool]], ...] = (
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
    answers: list[tuple[RdmaDevice, ...]] = []
    whole = False
    ask = HostReader(host)
    for argv, parse in TOOLS:
        if argv not in RDMA and not host.has_output(*argv):
            continue
        try:
            parsed = _run_tool(host, argv, parse)
        except Absent:
            continue
        except ReadError as why:
            ask.gap(why.reason)
            continue
        answers.append(parsed.devices)
        ask.answered(" ".join(argv))
        whole = whole or not parsed.cut
        for note in parsed.cut:
            ask.gap(note)
    if not answers and ask.missing:
        raise Failed(ask.missing)
    if not answers:
        raise Absent("no output of ibstat, ibstatus, ibv_devinfo, rdma link, ibdev2netdev or show_gids")
    return Reading(RdmaFacts(merge_devices(answers), whole), ask.sources, ask.missing)


def merge_devices(answers: Iterable[Iterable[RdmaDevice]]) -> tuple[RdmaDevice, ...]:
    """One row a device, what an earlier source does not have taken from a later one; sorted by name.

    >>> [device.firmware for device in merge_devices([[RdmaDevice("a")], [RdmaDevice("a", firmware="1")]])]
    ['1']
    """
    devices: dict[str, RdmaDevice] = {}
    for device in (device for source in answers for device in source):
        known = devices.get(device.name)
        devices[device.name] = _completed_device(known, device) if known else device
    return tuple(devices[name] for name in sorted(devices, key=natural))


def _run_tool(host: Host, argv: tuple[str, ...], parse: Callable[[str], ParsedTool]) -> ParsedTool:
    completed = host.run(*argv)
    try:
        parsed = parse(completed.stdout)
    except ParseError as why:
        first = next(iter(completed.stderr.strip().splitlines()), "")
        problem = f" (exit {completed.returncode}: {first[:100]})" if completed.returncode or first else ""
        raise Failed(f"{why}{problem}") from why
    if completed.stderr.startswith(FILTERED):
        part = completed.stderr.removeprefix(FILTERED)
        return parsed._replace(cut=(*parsed.cut, f"{' '.join(argv)} may be cut: {part}"))
    return parsed


def _completed_device(first: RdmaDevice, second: RdmaDevice) -> RdmaDevice:
    ports = {port.port: port for port in first.ports}
    for port in second.ports:
        ports[port.port] = _completed_port(ports[port.port], port) if port.port in ports else port
    return _complete(first, second)._replace(ports=tuple(port for _, port in sorted(ports.items())))


def _completed_port(first: RdmaPort, second: RdmaPort) -> RdmaPort:
    gids = {gid.index: gid for gid in first.gids}
    for gid in second.gids:
        gids[gid.index] = _complete(gids[gid.index], gid) if gid.index in gids else gid
    netdevs = sorted({*first.netdevs, *second.netdevs}, key=natural)
    whole = _complete(first, second)
    return whole._replace(gids=tuple(gid for _, gid in sorted(gids.items())), netdevs=tuple(netdevs))


def _complete(first: Row, second: Row) -> Row:
    lacking = [name for name in first._fields if _lacks(getattr(first, name))]
    return first._replace(**{name: getattr(second, name) for name in lacking})


def _lacks(value: object) -> bool:
    return value is None or value is False or value == ()
