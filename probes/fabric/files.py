"""Files of a whole fabric: which tool wrote one, and the parser for it.

ibnetdiscover(8), iblinkinfo(8), ibhosts(8), ibswitches(8): rdma-core, infiniband-diags. ibdiagnet2.net_dump and
ibdiagnet2.db_csv: NVIDIA's ibdiagnet.
"""

from __future__ import annotations

import re

from probes.fabric.topology import Fabric
from probes.text import ESCAPES

LOOK_CHARACTERS = 64 << 10

# The first whose patterns are all found in the start of the file is its format
_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ibdiagnet db_csv", (r"^START_[A-Z_]{3,40}[ \t\r]*$",)),
    ("ibdiagnet net_dump_ext", (r"^Ty +: *# +: *#IB +:",)),
    ("ibdiagnet net_dump", (r"^ *# *: *IB# *:", r": *Neighbor Guid *:")),
    ("iblinkinfo", (r"==\( {0,20}\S", r"\)==> ")),
    ("ibnetdiscover", (r'^(?:Switch|Ca|Rt)\s*\d{1,3}\s*"[SHR?]-[0-9a-f]{16}"',)),
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
    """The fabric that a file holds, recognized by its content. Never raises: what is not read is in `problems`,
    each with `name`. Links and nodes are in the order of the file."""
    from probes.fabric import ibdiagnet, iblinkinfo, ibnetdiscover

    kind = fabric_format(text)
    text = ESCAPES.sub("", text) if "\x1b" in text else text
    if kind == "ibnetdiscover":
        return ibnetdiscover.parse(text, name)
    if kind == "iblinkinfo":
        return iblinkinfo.parse(text, name)
    if kind == "ibdiagnet net_dump":
        return ibdiagnet.parse_net_dump(text, name)
    if kind == "ibdiagnet db_csv":
        return ibdiagnet.parse_db_csv(text, name)
    if kind == "ibnetdiscover -p":
        return ibnetdiscover.parse_ports(text, name)
    if kind == "ibnodes":
        return ibnetdiscover.parse_nodes(text, name)
    if kind is not None:
        return Fabric(kind, {}, (), (f"{name}: {kind} is not read: how it names the far ends is not known for sure",))
    sources = "neither ibnetdiscover, iblinkinfo, ibhosts, ibswitches nor ibdiagnet2.net_dump or .db_csv"
    return Fabric("unknown", {}, (), (f"{name}: is not recognized: {sources}",))
