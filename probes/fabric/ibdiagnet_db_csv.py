"""Parses three sections of `ibdiagnet2.db_csv`: NODES, PORTS and LINKS; the others are not read.

A section stands between START_NAME and END_NAME and begins with the names of its columns, by which it is read. Codes of
widths, speeds and states are those of PortInfo, as ibdm's Fabric.h packs them: the extended speeds in the second byte,
FDR10 in the third, XDR in the fourth.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping

from probes.fabric.builder import LONGEST_LINE, Wiring, numbered_lines
from probes.fabric.formatting import LANE_GBIT_S, guid16, lid_of
from probes.fabric.topology import Fabric, FabricEnd, FabricLink, FabricNode

_WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEEDS = {
    1: "SDR", 2: "DDR", 4: "QDR", 1 << 8: "FDR", 2 << 8: "EDR", 4 << 8: "HDR", 8 << 8: "NDR", 1 << 16: "FDR10",
    1 << 24: "XDR",
}  # fmt: skip
_KINDS = {"1": "ca", "2": "switch", "3": "router"}
_STATES = {"1": "Down", "2": "Initialize", "3": "Armed", "4": "Active"}
_PHYS_STATES = {
    "1": "Sleep", "2": "Polling", "3": "Disabled", "4": "PortConfigurationTraining", "5": "LinkUp",
    "6": "LinkErrorRecovery", "7": "PhyTest",
}  # fmt: skip
_GUID = re.compile(r"0x([0-9a-fA-F]{1,16})")
_NEEDED = {
    "NODES": {"NodeDesc", "NodeType", "NodeGUID"},
    "PORTS": {"NodeGuid", "PortNum"},
    "LINKS": {"NodeGuid1", "PortNum1", "NodeGuid2", "PortNum2"},
}
Row = Mapping[str, str]


class _Port:
    """A row of PORTS."""

    def __init__(self, row: Row, guid: str, number: int, is_switch: bool) -> None:
        port_guid = None if is_switch else _guid(row.get("PortGuid"))
        self.end = FabricEnd(guid, number, port_guid, lid_of(row.get("LID")))
        self.width = _WIDTHS.get(_code(row, "LinkWidthActv"))
        self.speed = _SPEEDS.get(_code(row, "LinkSpeedActv"))
        self.widths, self.speeds = _code(row, "LinkWidthSup"), _code(row, "LinkSpeedSup")
        self.state = _STATES.get(row.get("PortState", ""))
        self.phys_state = _PHYS_STATES.get(row.get("PortPhyState", ""))


class _Reader:
    def __init__(self, name: str) -> None:
        self.wiring = Wiring("ibdiagnet db_csv", name)
        self.ports: dict[tuple[str, int], _Port] = {}
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
                vendor_id=_hex(row, "VendorID"),
                device_id=_hex(row, "DeviceID"),
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
        port = _Port(row, *place, is_switch)
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
            told = bool(b and a.widths and b.widths and a.speeds and b.speeds) or None
            link = FabricLink(link.a, link.b, a.width, a.speed, a.state, a.phys_state, could_width, could_speed, told)
        self.wiring.link(link, number)

    def _end(self, place: tuple[str, int]) -> FabricEnd:
        """A port's LID is its switch's."""
        port, node = self.ports.get(place), self.wiring.nodes.get(place[0])
        end = port.end if port else FabricEnd(*place)
        return end._replace(lid=node.lid) if node and node.kind == "switch" else end


def parse(text: str, name: str) -> Fabric:
    """Never raises."""
    reader = _Reader(name)
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


def _could(a: _Port, b: _Port) -> tuple[int | None, str | None]:
    """What both ends support, where it is more than what runs."""
    widths = [lanes for code, lanes in _WIDTHS.items() if code & a.widths & b.widths]
    speeds = [name for code, name in _SPEEDS.items() if code & a.speeds & b.speeds]
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
    found = _GUID.fullmatch(text or "")
    return guid16(found[1]) if found else None


def _place(row: Row, guid: str, port: str) -> tuple[str, int] | None:
    said, number = _guid(row[guid]), row[port]
    return (said, int(number)) if said and number.isdecimal() and len(number) <= 3 else None


def _code(row: Row, name: str) -> int:
    text = row.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= 10 else 0


def _hex(row: Row, name: str) -> str | None:
    code = _code(row, name)
    return f"0x{code:x}" if code else None
