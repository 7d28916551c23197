"""Two files of ibdiagnet: three sections of `ibdiagnet2.db_csv` (NODES, PORTS and LINKS), and `ibdiagnet2.net_dump`.

A section is between START_NAME and END_NAME and begins with the names of its columns, by which it is read. Codes of
widths, speeds and states are those of PortInfo, as ibdm's Fabric.h packs them: the extended speeds in the second byte,
FDR10 in the third, XDR in the fourth.

net_dump has a block a switch, in it one line per port, reported or free. Columns are found by their names, which differ
by version: "# : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : Neighbor
Description". Words: ibdm's Fabric.h. A far port is named by its label ("1/7/2"): of a switch it is looked up in that
switch's own block.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping

from probes.fabric.formatting import LANE_GBIT_S, guid16, kind_in_name, lanes, lid_of, speed_named
from probes.fabric.topology import (
    LONGEST_LINE,
    Fabric,
    FabricBuilder,
    FabricEnd,
    FabricLink,
    FabricNode,
    numbered_lines,
)
from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

_WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEED_CODES = {
    1: "SDR", 2: "DDR", 4: "QDR", 1 << 8: "FDR", 2 << 8: "EDR", 4 << 8: "HDR", 8 << 8: "NDR", 1 << 16: "FDR10",
    1 << 24: "XDR",
}  # fmt: skip
_KINDS = {"1": "ca", "2": "switch", "3": "router"}
_STATE_CODES = {"1": "Down", "2": "Initialize", "3": "Armed", "4": "Active"}
_PHYS_STATE_CODES = {
    "1": "Sleep", "2": "Polling", "3": "Disabled", "4": "PortConfigurationTraining", "5": "LinkUp",
    "6": "LinkErrorRecovery", "7": "PhyTest",
}  # fmt: skip
_GUID = lazy_pattern(r"0x([0-9a-fA-F]{1,16})")
_NEEDED = {
    "NODES": {"NodeDesc", "NodeType", "NodeGUID"},
    "PORTS": {"NodeGuid", "PortNum"},
    "LINKS": {"NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"},
}
Row = Mapping[str, str]


class _CsvPort:
    """A row of PORTS."""

    def __init__(self, row: Row, guid: str, number: int, is_switch: bool) -> None:
        port_guid = None if is_switch else _guid(row.get("PortGuid"))
        self.end = FabricEnd(guid, number, port_guid, lid_of(row.get("LID")))
        self.width = _WIDTHS.get(_code(row, "LinkWidthActv"))
        self.speed = _SPEED_CODES.get(_code(row, "LinkSpeedActv"))
        self.widths, self.speeds = _code(row, "LinkWidthSup"), _code(row, "LinkSpeedSup")
        self.state = _STATE_CODES.get(row.get("PortState", ""))
        self.phys_state = _PHYS_STATE_CODES.get(row.get("PortPhyState", ""))


class _CsvReader:
    def __init__(self, name: str) -> None:
        self.wiring = FabricBuilder("ibdiagnet db_csv", name)
        self.ports: dict[tuple[str, int], _CsvPort] = {}
        self.links: list[tuple[int, tuple[str, int], tuple[str, int]]] = []

    def node(self, number: int, row: Row) -> bool:
        guid = _guid(row["NodeGUID"])
        if guid is None:
            return False
        self.wiring.node(
            FabricNode(
                guid=guid,
                kind=_KINDS.get(row["NodeType"], "unknown"),
                name=row["NodeDesc"].strip().strip('"'),
                ports=_code(row, "NumPorts") or None,
                system_image_guid=_guid(row.get("SystemImageGUID")),
            )
        )
        return True

    def port(self, number: int, row: Row) -> bool:
        place = _place(row, "NodeGuid", "PortNum")
        if place is None:
            return False
        node = self.wiring.nodes.get(place[0])
        is_switch = node is not None and node.kind == "switch"
        port = _CsvPort(row, *place, is_switch)
        if node is not None and is_switch and place[1] == 0:
            self.wiring.nodes[place[0]] = node._replace(lid=port.end.lid)
        self.ports[place] = port
        return True

    def link(self, number: int, row: Row) -> bool:
        ends = _place(row, "NodeGuid1", "PortNum1"), _place(row, "NodeGuid2", "PortNum2")
        if ends[0] is None or ends[1] is None:
            return False
        self.links.append((number, ends[0], ends[1]))
        return True

    def fabric(self) -> Fabric:
        linked = set()
        for number, *places in self.links:
            for here, there in (places, places[::-1]):
                linked.add(here)
                self._end_of_link(number, here, there)
        for place, port in self.ports.items():
            if place not in linked and place[1]:
                self.wiring.node(FabricNode(place[0], "unknown"))
                free = FabricLink(self._end(place), None, state=port.state, phys_state=port.phys_state)
                self.wiring.link(free, 0)
        return self.wiring.fabric()

    def _end_of_link(self, number: int, here: tuple[str, int], there: tuple[str, int]) -> None:
        for guid, _ in (here, there):
            self.wiring.node(FabricNode(guid, "unknown"))
        a, b = self.ports.get(here), self.ports.get(there)
        link = FabricLink(self._end(here), self._end(there))
        if a is not None:
            could_width, could_speed = _could(a, b) if b else (None, None)
            can_compare = bool(b and a.widths and b.widths and a.speeds and b.speeds) or None
            link = FabricLink(
                link.a, link.b, a.width, a.speed, a.state, a.phys_state, could_width, could_speed, can_compare
            )
        self.wiring.link(link, number)

    def _end(self, place: tuple[str, int]) -> FabricEnd:
        """A port's LID is its switch's."""
        port, node = self.ports.get(place), self.wiring.nodes.get(place[0])
        end = port.end if port else FabricEnd(*place)
        return end._replace(lid=node.lid) if node and node.kind == "switch" else end


def parse_db_csv(text: str, name: str) -> Fabric:
    """Never raises."""
    reader = _CsvReader(name)
    takes: dict[str, Callable[[int, Row], bool]] = {
        "NODES": reader.node,
        "PORTS": reader.port,
        "LINKS": reader.link,
    }
    section, columns = "", list[str]()
    for number, line in numbered_lines(text):
        if line.startswith("START_"):
            section, columns = line[6:].strip(), []
        elif line.startswith("END_"):
            section = ""
        elif section in takes and line.strip():
            fields = _fields(line)
            if not columns:
                columns = fields
                if missing := sorted(_NEEDED[section] - set(columns)):
                    reader.wiring.problem(number, f"section {section} is not read: it has no {', '.join(missing)}")
                    section = ""
            elif len(fields) != len(columns) or not takes[section](number, dict(zip(columns, fields, strict=True))):
                reader.wiring.problem(number, f"no row of {section}", line)
    if section in takes:
        reader.wiring.problem(number, f"section {section} has no end: the file is cut")
        reader.wiring.cut = True
    return reader.fabric()


def _could(a: _CsvPort, b: _CsvPort) -> tuple[int | None, str | None]:
    """What both ends support, where it is more than what runs."""
    widths = [lanes for code, lanes in _WIDTHS.items() if code & a.widths & b.widths]
    speeds = [name for code, name in _SPEED_CODES.items() if code & a.speeds & b.speeds]
    width = max(widths, default=0)
    speed = max(speeds, key=LANE_GBIT_S.__getitem__, default=None)
    return (
        width if a.width and width > a.width else None,
        speed if a.speed and speed and LANE_GBIT_S[speed] > LANE_GBIT_S[a.speed] else None,
    )


def _fields(line: str) -> list[str]:
    if len(line) > LONGEST_LINE:
        return []
    if '"' not in line:
        return [field.strip() for field in line.split(",")]
    try:
        return [field.strip() for field in next(csv.reader([line], skipinitialspace=True), [])]
    except csv.Error:
        return []


def _guid(text: str | None) -> str | None:
    match = _GUID.fullmatch(text or "")
    return guid16(match[1]) if match else None


def _place(row: Row, guid: str, port: str) -> tuple[str, int] | None:
    guid_value, number = _guid(row[guid]), row[port]
    return (guid_value, int(number)) if guid_value and number.isdecimal() and len(number) <= 3 else None


def _code(row: Row, name: str) -> int:
    text = row.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= 10 else 0


_BLOCK = lazy_pattern(r'"(.{0,256})",[^,"]{0,40},\s*0x([0-9a-fA-F]{1,16}),\s*LID\s+([0-9]{1,5})')
_WANTED = ("IB#", "Sta", "PhysSta", "LWA", "LSA", "Neighbor Guid", "N#", "NLID", "Neighbor Description")
_SPEED_WORDS = {
    "2.5": "SDR",
    "5": "DDR",
    "10": "QDR",
    "14": "FDR",
    "25": "EDR",
    "50": "HDR",
    "100": "NDR",
    "200": "XDR",
}
_STATE_WORDS = {"ACT": "Active", "ARM": "Armed", "INI": "Initialize", "DOWN": "Down"}
_PHYS_STATE_WORDS = {
    "LINK UP": "LinkUp",
    "POLL": "Polling",
    "DISABLE": "Disabled",
    "SLEEP": "Sleep",
    "PORT CONF TRAIN": "PortConfigurationTraining",
    "LINK ERR RECOVER": "LinkErrorRecovery",
    "PHY TEST": "PhyTest",
}


class _DumpRow(NamedTuple):
    number: int
    own: FabricEnd
    said: FabricLink  # without its far end
    far_guid: str | None
    far_label: str
    far_lid: int | None


def parse_net_dump(text: str, name: str) -> Fabric:
    """Never raises."""
    wiring = FabricBuilder("ibdiagnet net_dump", name)
    here: FabricNode | None = None
    columns: dict[str, int] = {}
    labels: dict[tuple[str, str], int] = {}  # of a switch: what is written on a port -> its number
    rows: list[_DumpRow] = []
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


def _row(
    wiring: FabricBuilder, number: int, line: str, here: FabricNode | None, columns: dict[str, int]
) -> _DumpRow | None:
    fields = [field.strip() for field in line.split(":")]
    last = columns["Neighbor Description"]
    if here is None or len(fields) <= last:
        return None
    values = {word: fields[at] for word, at in columns.items()}
    port = values["IB#"]
    if not port.isdecimal() or len(port) > 3:
        return None
    guid = _GUID.fullmatch(values["Neighbor Guid"])
    description = ":".join(line.split(":")[last:]).strip().strip('"').strip()
    if guid:
        far = guid16(guid[1])
        wiring.node(FabricNode(far, kind_in_name(description), description))
    up = values["Sta"] != "DOWN" and guid is not None
    speed = _SPEED_WORDS.get(values["LSA"]) or speed_named(values["LSA"])
    link = FabricLink(
        FabricEnd(here.guid, int(port), None, here.lid),
        None,
        width=lanes(values["LWA"]) if up else None,
        speed=speed if up else None,
        state=_STATE_WORDS.get(values["Sta"]),
        phys_state=_PHYS_STATE_WORDS.get(values["PhysSta"].replace("_", " ")),
    )
    return _DumpRow(number, link.a, link, guid16(guid[1]) if guid else None, values["N#"], lid_of(values["NLID"]))


def _link(wiring: FabricBuilder, row: _DumpRow, labels: dict[tuple[str, str], int]) -> None:
    far = None
    if row.far_guid is not None:
        port = labels.get((row.far_guid, row.far_label))
        if port is None and row.far_label.isdecimal() and len(row.far_label) <= 3:
            port = int(row.far_label)
        if port is None:
            wiring.problem(row.number, f"which port of 0x{row.far_guid} {row.far_label[:16]!r} is unknown")
            return
        far = FabricEnd(row.far_guid, port, None, row.far_lid)
    wiring.link(row.said._replace(b=far), row.number)
