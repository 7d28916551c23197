"""Parses lists of a fabric: `ibnetdiscover -p` (a line a port), and `ibhosts`, `ibswitches`, `ibnodes`,
`ibnetdiscover -l` (a line a node, no links). infiniband-diags/ibnetdiscover.c."""

from __future__ import annotations

import re

from probes.fabric.builder import LONGEST_LINE, Wiring, numbered_lines
from probes.fabric.formatting import KINDS, lanes, lid_of, speed_named
from probes.fabric.topology import Fabric, FabricEnd, FabricLink, FabricNode

_END = r"(CA|SW|RT) {1,5}([0-9]{1,5}) {1,2}([0-9]{1,3}) 0x([0-9a-f]{16}) "
_OWN = re.compile(_END + r"(\S{2,3}) (\S{3,5})")
_FAR = re.compile(r" - " + _END + r"\( '")
_NODE = re.compile(
    r"(Ca|Switch|Router)[ \t]{1,4}: 0x([0-9a-f]{16}) ports ([0-9]{1,3})"
    r"(?: devid (0x[0-9a-f]{1,8}) vendid (0x[0-9a-f]{1,8}))? \""
)
_SWITCH_LID = re.compile(r" (?:base|enhanced) port 0 lid ([0-9]{1,5})\b")


def parse_ports(text: str, name: str) -> Fabric:
    """The ports report. It names GUIDs of ports only: one stands for its node. Never raises."""
    wiring = Wiring("ibnetdiscover -p", name)
    for number, line in numbered_lines(text):
        own = _OWN.match(line)
        if len(line) > LONGEST_LINE or (own is None and line.strip()):
            wiring.problem(number, "no port of the report", line)
        elif own is not None:
            rest = line[own.end() :].rstrip()
            far = _FAR.match(rest)
            if far is None and rest.lstrip().startswith("- "):
                wiring.problem(number, "no far end of a port", line)
                continue
            names = _names(rest[far.end() :]) if far else ("", "")
            a = _end(wiring, own, names[0] if far else rest.strip().strip("'"))
            b = _end(wiring, far, names[1]) if far else None
            runs = (lanes(own[5]), speed_named(own[6])) if far else (None, None)  # without a cable it is a default
            wiring.link(FabricLink(a, b, *runs), number)
    return wiring.fabric()


def parse_nodes(text: str, name: str) -> Fabric:
    """A list of nodes; the GUIDs are those of nodes. Never raises."""
    wiring = Wiring("ibnodes", name)
    for number, line in numbered_lines(text):
        found = _NODE.match(line.strip()) if len(line) <= LONGEST_LINE else None
        if found is None:
            if line.strip():
                wiring.problem(number, "no node of the list", line)
            continue
        said = line.strip()[found.end() :]
        end = said.rfind('"')
        lid = _SWITCH_LID.match(said[end + 1 :]) if end >= 0 else None
        wiring.node(
            FabricNode(
                guid=found[2],
                kind={"Ca": "ca", "Switch": "switch"}.get(found[1], "router"),
                name=said[:end] if end >= 0 else said,
                ports=int(found[3]),
                lid=lid_of(lid[1]) if lid else None,
                vendor_id=found[5],
                device_id=found[4],
            )
        )
    return wiring.fabric()


def _names(said: str) -> tuple[str, str]:
    """The two of "a' - 'b' )"."""
    near, _, far = said.partition("' - '")
    return near, far.removesuffix(")").rstrip().removesuffix("'")


def _end(wiring: Wiring, found: re.Match[str], name: str) -> FabricEnd:
    kind, lid, guid = KINDS[found[1]], lid_of(found[2]), found[4]
    wiring.node(FabricNode(guid, kind, name, lid=lid if kind == "switch" else None, guid_of_port=True))
    return FabricEnd(guid, int(found[3]), None if kind == "switch" else guid, lid)
