"""A whole InfiniBand fabric as files of its tools tell it: nodes by GUID, and the links between their ports.

ibnetdiscover(8), iblinkinfo(8), ibhosts(8), ibswitches(8): rdma-core, infiniband-diags. ibdiagnet2.net_dump and
ibdiagnet2.db_csv: NVIDIA's ibdiagnet. GUIDs are 16 lower-case hex digits without "0x".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from probes.text import ESCAPES

LOOK_CHARACTERS = 64 << 10


class FabricNode(NamedTuple):
    """One switch, channel adapter or router. `name`: its NodeDescription as the file quotes it."""

    guid: str  # "lid 12" where the file names no GUID of it
    kind: str  # switch | ca | router | unknown
    name: str = ""
    ports: int | None = None
    lid: int | None = None  # of a switch; of a channel adapter each port has its own, in its link
    vendor_id: str | None = None  # "0x2c9"
    device_id: str | None = None
    system_image_guid: str | None = None
    guid_of_port: bool = False  # the file names no GUIDs of nodes: that of its first port (a switch's port 0) stands in


class FabricEnd(NamedTuple):
    """One port of a node."""

    guid: str  # of the node
    port: int
    port_guid: str | None = None
    lid: int | None = None


class FabricLink(NamedTuple):
    """Two ports and what runs between them. `b` is none where nothing is connected, or nothing was seen."""

    a: FabricEnd
    b: FabricEnd | None
    width: int | None = None  # lanes: 4
    speed: str | None = None  # of a lane, by its name: "NDR", "HDR", "EDR", "FDR"
    state: str | None = None  # Active | Initialize | Armed | Down
    phys_state: str | None = None  # LinkUp | Polling | Disabled | ..
    could_width: int | None = None  # what both ends could do, where the tool says that it is more
    could_speed: str | None = None
    could_told: bool | None = None  # whether the tool says what both ends could do, be it no more than what runs


class Fabric(NamedTuple):
    """What one file tells. Each link is there once, whichever end the file lists first, or both."""

    format_name: str  # one of FORMATS, or "unknown"
    nodes: Mapping[str, FabricNode]
    links: tuple[FabricLink, ...]
    problems: tuple[str, ...] = ()  # what could not be read, bounded, with the line
    listed: tuple[str, ...] = ()  # GUIDs of nodes with a block of their own, in order; () where the format has none
    cut: bool = False  # it ends before the end that its format has
    twice: tuple[FabricLink, ...] = ()  # links with an end that another link has already, bounded


# The first whose patterns are all found in the start of the file is its format
_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ibdiagnet db_csv", (r"^START_[A-Z_]{3,40}[ \t\r]*$",)),
    ("ibdiagnet net_dump_ext", (r"^Ty +: *# +: *#IB +:",)),
    ("ibdiagnet net_dump", (r"^ *# *: *IB# *:", r": *Neighbor Guid *:")),
    ("iblinkinfo", (r"==\( {0,20}\S", r"\)==> ")),
    ("ibnetdiscover", (r'^(?:Switch|Ca|Rt)\s+\d{1,3}\s+"[SHR?]-[0-9a-f]{16}"',)),
    ("ibnetdiscover", (r"^# Topology file: generated on ",)),
    ("ibnetdiscover -p", (r"^(?:CA|SW|RT) {1,5}\d{1,5} {1,2}\d{1,3} 0x[0-9a-f]{16} ",)),
    ("ibnodes", (r"^(?:Ca|Switch|Router)[ \t]{1,4}: 0x[0-9a-f]{16} ports \d",)),
)
FORMATS = tuple(dict.fromkeys(name for name, _ in _MARKS))


def fabric_format(text: str) -> str | None:
    """Which tool wrote it, of FORMATS, by its first LOOK_CHARACTERS; None: none of them.

    >>> fabric_format('Switch\\t36 "S-0000000000200001"\\t\\t# "leaf2" base port 0 lid 3 lmc 0\\n')
    'ibnetdiscover'
    >>> fabric_format("CA 'mlx5_0'\\n")
    """
    start = ESCAPES.sub("", text[:LOOK_CHARACTERS])
    for name, patterns in _MARKS:
        if all(re.search(pattern, start, re.MULTILINE) for pattern in patterns):
            return name
    return None


def read_fabric(text: str, name: str) -> Fabric:
    """The fabric that a file holds, recognized by its content. Never raises: what is not read stands in `problems`,
    each with `name`. Links and nodes are in the order of the file."""
    from probes.fabric import ib_lists, ibdiagnet_db_csv, ibdiagnet_net_dump, iblinkinfo, ibnetdiscover

    kind = fabric_format(text)
    text = ESCAPES.sub("", text) if "\x1b" in text else text
    if kind == "ibnetdiscover":
        return ibnetdiscover.parse(text, name)
    if kind == "iblinkinfo":
        return iblinkinfo.parse(text, name)
    if kind == "ibdiagnet net_dump":
        return ibdiagnet_net_dump.parse(text, name)
    if kind == "ibdiagnet db_csv":
        return ibdiagnet_db_csv.parse(text, name)
    if kind == "ibnetdiscover -p":
        return ib_lists.parse_ports(text, name)
    if kind == "ibnodes":
        return ib_lists.parse_nodes(text, name)
    if kind is not None:
        return Fabric(kind, {}, (), (f"{name}: {kind} is not read: how it names the far ends is not known for sure",))
    said = "neither ibnetdiscover, iblinkinfo, ibhosts, ibswitches nor ibdiagnet2.net_dump or .db_csv"
    return Fabric("unknown", {}, (), (f"{name}: is not recognized: {said}",))
