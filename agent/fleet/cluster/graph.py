"""The cluster as one graph: hosts by their rails on switches, switches on switches, and what NVLink joins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.model.labels import count_by_key

# Gbit/s of one lane as the field counts it: HDR 4x is "200". InfiniBand Architecture 1.7, and its roadmap
LANE_GBIT_S = {
    "SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0,
    "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0,
}  # fmt: skip


class Switch(NamedTuple):
    """`id`: its node GUID; of Ethernet what LLDP calls it. `name`: as people call it, "LG28-08".

    `by_hosts`: only hosts report it, so cables between switches are not known. `whole`: all its cables are reported; a
    file that is cut names switches that it does not list. `part`: of a chassis, "L03/U1"; "" where none is given.
    """

    id: str
    name: str
    ports: int | None = None
    by_hosts: bool = False
    whole: bool = True
    part: str = ""


class SwitchPort(NamedTuple):
    """One port of a switch. `port`: its number, of Ethernet the switch's own name of it."""

    switch: str
    port: str


class LinkRate(NamedTuple):
    """What a link runs at, and what both of its ends could, where a tool states that it is more."""

    width: int | None = None
    speed: str | None = None
    gbit_s: float | None = None
    could: str | None = None  # "4xNDR"
    best: bool = False  # a tool states that both ends could do no more

    @property
    def words(self) -> str:
        """ "4xHDR", "400 Gbit/s", "unknown"."""
        if self.width is not None and self.speed:
            return f"{self.width}x{self.speed}"
        return f"{self.gbit_s:g} Gbit/s" if self.gbit_s is not None else "unknown"


class HostLink(NamedTuple):
    """One port of a host on a port of a switch. `rail`: what it is compared by; "" where nothing names it."""

    host: str
    rail: str  # "rail 3" where the host's report states it, else the adapter's name: "mlx5_5", "HCA-6"
    device: str
    at: SwitchPort
    pace: LinkRate = LinkRate()
    guid: str = ""

    @property
    def called(self) -> str:
        """What its host calls it, and the rail where a report numbers it."""
        if self.rail.startswith("rail ") and self.device:
            return f"{self.rail} ({self.device})"
        return self.device or self.rail or "an adapter"


class SwitchLink(NamedTuple):
    """A cable between two switches."""

    a: SwitchPort
    b: SwitchPort
    pace: LinkRate = LinkRate()


def count_neighbors(links: Iterable[SwitchLink]) -> dict[str, Counter[str]]:
    """The cables of each switch, by the switch at their far end."""
    ends = [(link.a.switch, link.b.switch) for link in links]
    return count_by_key([*ends, *((b, a) for a, b in ends)])


class UnknownAdapter(NamedTuple):
    """An adapter that does not show which host it is in."""

    guid: str
    said: str
    at: SwitchPort
    pace: LinkRate = LinkRate()


class Domain(NamedTuple):
    """Hosts that one NVLink fabric joins. `id`: ClusterUUID.CliqueId. `gpus`: how many those hosts have in it."""

    id: str
    hosts: tuple[str, ...]
    gpus: int = 0


class PortMismatch(NamedTuple):
    """A port that a report and a fabric file disagree on. `why` states how."""

    host: str
    rail: str
    device: str
    why: str
    at: SwitchPort | None = None


class SharedPort(NamedTuple):
    """A port of a switch that several hosts report as theirs; `links`: the newest report first."""

    at: SwitchPort
    links: tuple[HostLink, ...]


class FabricGraph(NamedTuple):
    """All that is known. `sources`: what it was read from; `notes`: what could not be read or joined."""

    switches: Mapping[str, Switch]
    host_links: tuple[HostLink, ...] = ()
    switch_links: tuple[SwitchLink, ...] = ()
    nameless: tuple[UnknownAdapter, ...] = ()
    domains: tuple[Domain, ...] = ()
    unseen: tuple[PortMismatch, ...] = ()
    rails: Mapping[str, int] = {}  # that a host has by its report
    racks: Mapping[str, str] = {}  # serial number of the rack that a host is in, by its report
    shared: tuple[SharedPort, ...] = ()
    aliases: Mapping[SwitchPort, str] = {}  # other names of switches' ports, in small letters
    cut: bool = False  # a file ends too early: what it does not show is not missing
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def displaced(self) -> frozenset[str]:
        """Hosts with a port that a newer report of another host names, too: what they do not have may be there."""
        return frozenset(link.host for port in self.shared for link in port.links[1:])

    def place(self, at: SwitchPort) -> str:
        """ "LG28-08/36", as people write it."""
        switch = self.switches.get(at.switch)
        return f"{switch.name if switch else at.switch}/{at.port}"


def make_link_rate(
    width: int | None, speed: str | None, could_width: int | None = None, could_speed: str | None = None
) -> LinkRate:
    """Rate of an InfiniBand link by the names of its width and speed.

    >>> make_link_rate(4, "HDR").gbit_s, make_link_rate(2, "HDR").words, make_link_rate(None, None).gbit_s
    (200.0, '2xHDR', None)
    >>> make_link_rate(4, "HDR", could_speed="NDR").could
    '4xNDR'
    """
    lane = LANE_GBIT_S.get(speed or "")
    could = None
    if could_width or could_speed:
        could = f"{could_width or width or '?'}x{could_speed or speed or '?'}"
    return LinkRate(width, speed, width * lane if width is not None and lane is not None else None, could)


def parse_guid(text: str | None) -> str:
    """A GUID in any writing as 16 hex digits; "" where it is none, or all zeros.

    >>> [parse_guid(text) for text in ("b83f:d203:0076:f96b", "0x2c90300a1b2c3", "0000:0000:0000:0000", "mlx5_0", None)]
    ['b83fd2030076f96b', '0002c90300a1b2c3', '', '', '']
    """
    digits = (text or "").strip().lower().removeprefix("0x").replace(":", "")
    if not 1 <= len(digits) <= 16 or not re.fullmatch(r"[0-9a-f]+", digits) or not digits.strip("0"):
        return ""
    return digits.zfill(16)


def switch_name(description: str) -> str:
    """A switch's NodeDescription as people call the switch.

    >>> switch_name("MF0;LG28-08:MQM8700/U1"), switch_name("SwitchX -  Mellanox Technologies"), switch_name(" a ; b:c ")
    ('LG28-08', 'SwitchX - Mellanox Technologies', 'a ; b:c')
    """
    description = " ".join(description.split()).strip("'")
    match = re.fullmatch(r"MF0;([^:;]+):.*", description)
    return (match[1] if match else description).strip()


def switch_part(description: str) -> str:
    """The board of a chassis that a switch's NodeDescription names.

    >>> switch_part("MF0;director-1:CS7520/L03/U1"), switch_part("leaf1")
    ('L03/U1', '')
    """
    match = re.fullmatch(r"MF0;[^:;]+:[^/]{1,64}/(\S{1,64})", " ".join(description.split()).strip("'"))
    return match[1] if match else ""


def shape(name: str) -> str:
    """A name without its numbers: switches of one role are mostly named alike.

    >>> shape("LG28-08"), shape("B09-P1-IBLEAF-04-05")
    ('LG#-#', 'B#-P#-IBLEAF-#-#')
    """
    return re.sub(r"[0-9]+", "#", name)


def make_names_distinct(switches: Iterable[Switch]) -> dict[str, Switch]:
    """By id; of a name that several have each gets its board, else its id into it: a name leads to one switch."""
    listed = list(switches)
    count = Counter(switch.name for switch in listed)
    boards = Counter(_strip_board(switch) for switch in listed)
    named = {}
    for guid in listed:
        name = guid.name or f"switch {guid.id}"
        if guid.name and count[guid.name] > 1:
            board = _strip_board(guid)
            name = board if guid.part and boards[board] == 1 and board not in count else f"{name} {guid.id}"
        named[guid.id] = guid._replace(name=name)
    return named


def _strip_board(switch: Switch) -> str:
    return f"{switch.name}/{switch.part}"
