"""Parses `ibdiagnet2.net_dump`: a block a switch, in it a line a port, told or free.

Columns are found by their names, which differ by version: "# : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode :
Retran : Neighbor Guid : N# : NLID : Neighbor Description". Words: ibdm's Fabric.h. A far port is named by its label
("1/7/2"): of a switch it is looked up in that switch's own block.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from probes.fabric.builder import LONGEST_LINE, Wiring, numbered_lines
from probes.fabric.formatting import guid16, kind_in_name, lanes, lid_of, speed_named
from probes.fabric.topology import Fabric, FabricEnd, FabricLink, FabricNode

_BLOCK = re.compile(r'"(.{0,256})",[^,"]{0,40},\s*0x([0-9a-fA-F]{1,16}),\s*LID\s+([0-9]{1,5})')
_GUID = re.compile(r"0x([0-9a-fA-F]{1,16})")
_WANTED = ("IB#", "Sta", "PhysSta", "LWA", "LSA", "Neighbor Guid", "N#", "NLID", "Neighbor Description")
_SPEEDS = {"2.5": "SDR", "5": "DDR", "10": "QDR", "14": "FDR", "25": "EDR", "50": "HDR", "100": "NDR", "200": "XDR"}
_STATES = {"ACT": "Active", "ARM": "Armed", "INI": "Initialize", "DOWN": "Down"}
_PHYS_STATES = {
    "LINK UP": "LinkUp",
    "POLL": "Polling",
    "DISABLE": "Disabled",
    "SLEEP": "Sleep",
    "PORT CONF TRAIN": "PortConfigurationTraining",
    "LINK ERR RECOVER": "LinkErrorRecovery",
    "PHY TEST": "PhyTest",
}


class _Row(NamedTuple):
    number: int
    own: FabricEnd
    said: FabricLink  # without its far end
    far_guid: str | None
    far_label: str
    far_lid: int | None


def parse(text: str, name: str) -> Fabric:
    """Never raises."""
    wiring = Wiring("ibdiagnet net_dump", name)
    here: FabricNode | None = None
    columns: dict[str, int] = {}
    labels: dict[tuple[str, str], int] = {}  # of a switch: what is written on a port -> its number
    rows: list[_Row] = []
    for number, line in numbered_lines(text):
        if len(line) > LONGEST_LINE:
            wiring.problem(number, "too long for a line of net_dump", line)
        elif block := _BLOCK.match(line.strip()):
            here = FabricNode(guid16(block[2]), "switch", block[1], lid=lid_of(block[3]))
            wiring.node(here)
            wiring.listed[here.guid] = None
        elif line.lstrip().startswith("#"):
            fields = [field.strip() for field in line.split(":")]
            if "IB#" in fields:
                columns = {word: fields.index(word) for word in _WANTED if word in fields}
        elif line.strip():
            row = _row(wiring, number, line, here, columns) if len(columns) == len(_WANTED) else None
            if row is None or here is None:
                wiring.problem(number, "no port of a switch", line)
                continue
            labels[here.guid, line.partition(":")[0].strip()] = row.own.port
            rows.append(row)
    for row in rows:
        _link(wiring, row, labels)
    return wiring.fabric()


def _row(wiring: Wiring, number: int, line: str, here: FabricNode | None, columns: dict[str, int]) -> _Row | None:
    fields = [field.strip() for field in line.split(":")]
    last = columns["Neighbor Description"]
    if here is None or len(fields) <= last:
        return None
    said = {word: fields[at] for word, at in columns.items()}
    port = said["IB#"]
    if not port.isdecimal() or len(port) > 3:
        return None
    guid = _GUID.fullmatch(said["Neighbor Guid"])
    description = ":".join(line.split(":")[last:]).strip().strip('"').strip()
    if guid:
        far = guid16(guid[1])
        wiring.node(FabricNode(far, kind_in_name(description), description))
    up = said["Sta"] != "DOWN" and guid is not None
    speed = _SPEEDS.get(said["LSA"]) or speed_named(said["LSA"])
    link = FabricLink(
        FabricEnd(here.guid, int(port), None, here.lid),
        None,
        width=lanes(said["LWA"]) if up else None,
        speed=speed if up else None,
        state=_STATES.get(said["Sta"]),
        phys_state=_PHYS_STATES.get(said["PhysSta"].replace("_", " ")),
    )
    return _Row(number, link.a, link, guid16(guid[1]) if guid else None, said["N#"], lid_of(said["NLID"]))


def _link(wiring: Wiring, row: _Row, labels: dict[tuple[str, str], int]) -> None:
    far = None
    if row.far_guid is not None:
        port = labels.get((row.far_guid, row.far_label))
        if port is None and row.far_label.isdecimal() and len(row.far_label) <= 3:
            port = int(row.far_label)
        if port is None:
            wiring.problem(row.number, f"which port of 0x{row.far_guid} {row.far_label[:16]!r} is cannot be told")
            return
        far = FabricEnd(row.far_guid, port, None, row.far_lid)
    wiring.link(row.said._replace(b=far), row.number)
