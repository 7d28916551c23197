"""The topology file of `ibnetdiscover` (with -g, -f, -m too), and lists: `ibnetdiscover -p` (one line per port),
`ibhosts`, `ibswitches`, `ibnodes`, `ibnetdiscover -l` (one line per node, no links).

infiniband-diags/ibnetdiscover.c. In the topology file a node is its ids, a line with its GUID and description, one line
per connected port. What runs on a link is what the port in front states. Ports without a cable are not in the file.
"""

from __future__ import annotations

import re

from probes.fabric.formatting import KINDS, guid16, lanes, lid_of, speed_named
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

_ID = lazy_pattern(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x([0-9a-f]{1,16})\b")
_NODE = lazy_pattern(r'(?:Switch|Ca|Rt)\s*([0-9]{1,3})\s*"([SHR])-([0-9a-f]{16})"')
_PORT = lazy_pattern(
    r"\[([0-9]{1,3})\](?:\[ext [0-9]{1,4}\])?(?:\(([0-9a-f]{1,16})\))?\s*"  # the tool writes tabs; some lose them
    r'"([SHR])-([0-9a-f]{16})"\[([0-9]{1,3})\](?:\[ext [0-9]{1,4}\])?(?:\s*\(([0-9a-f]{1,16})\))?'
)
_OWN_LID = lazy_pattern(r"lid ([0-9]{1,5}) lmc [0-9]")
_SWITCH_LID = lazy_pattern(r" port 0 lid ([0-9]{1,5})\b")
_RUNS = lazy_pattern(r"\s*lid ([0-9]{1,5}) ([0-9?]{1,2}x?)([A-Z]{2,3}[0-9]{0,2}|\?\?\?)?(?![A-Za-z])")
_HEADINGS = ("Chassis ", "Non-Chassis Nodes", "Spine Nodes", "Line Nodes", "Hostname: ", "#")


class _Tail(NamedTuple):
    """What is behind "#" on a port's line."""

    own_lid: int | None = None
    name: str = ""
    far_lid: int | None = None
    width: int | None = None
    speed: str | None = None


def parse(text: str, name: str) -> Fabric:
    """Never raises; a file that was cut gives the links up to its cut, with nodes as their far ends name them."""
    wiring = FabricBuilder("ibnetdiscover", name)
    ids: dict[str, str] = {}
    here: FabricNode | None = None
    for number, line in numbered_lines(text):
        line = line.strip()
        if len(line) > LONGEST_LINE:
            wiring.problem(number, "too long for a line of ibnetdiscover", line)
        elif line.startswith("["):
            if here is None:
                wiring.problem(number, "a port without a node", line)
            else:
                _port(wiring, here, number, line)
        elif match := _ID.match(line):
            ids[match[1]] = match[2]
        elif node := _NODE.fullmatch(line.partition("#")[0].rstrip()):
            here, ids = _node(node, line.partition("#")[2], ids), {}
            wiring.node(here)
            wiring.listed[here.guid] = None
        elif line and not line.startswith(_HEADINGS):
            here = None if line.startswith(("Switch", "Ca", "Rt")) else here
            wiring.problem(number, "not understood", line)
    return wiring.fabric()


def _node(match: re.Match[str], comment: str, ids: dict[str, str]) -> FabricNode:
    name, rest = _split_quoted(comment)
    lid = _SWITCH_LID.match(rest.removeprefix(" enhanced").removeprefix(" base"))
    image = ids.get("sysimgguid")
    return FabricNode(
        guid=match[3],
        kind=KINDS[match[2]],
        name=name,
        ports=int(match[1]),
        lid=lid_of(lid[1]) if lid else None,
        system_image_guid=guid16(image) if image else None,
    )


def _port(wiring: FabricBuilder, here: FabricNode, number: int, line: str) -> None:
    head, _, comment = line.partition("#")
    match = _PORT.fullmatch(head.rstrip())
    if match is None:
        wiring.problem(number, "no far end of a port", line)
        return
    tail = _tail(comment.lstrip())
    kind, guid = KINDS[match[3]], match[4]
    far_lid = tail.far_lid if kind == "switch" else None
    wiring.node(FabricNode(guid, kind, tail.name, lid=far_lid))
    own = FabricEnd(here.guid, int(match[1]), _guid(match[2]), here.lid if here.kind == "switch" else tail.own_lid)
    far = FabricEnd(guid, int(match[5]), _guid(match[6]), tail.far_lid)
    wiring.link(FabricLink(own, far, tail.width, tail.speed), number)


def _tail(comment: str) -> _Tail:
    own = _OWN_LID.match(comment)
    name, rest = _split_quoted(comment)
    runs = _RUNS.match(rest)
    return _Tail(
        lid_of(own[1]) if own else None,
        name,
        lid_of(runs[1]) if runs else None,
        lanes(runs[2]) if runs else None,
        speed_named(runs[3] or "") if runs else None,
    )


def _split_quoted(comment: str) -> tuple[str, str]:
    """The description between the first and the last quote, and what follows it."""
    begin, end = comment.find('"'), comment.rfind('"')
    return (comment[begin + 1 : end], comment[end + 1 :]) if 0 <= begin < end else ("", "")


def _guid(digits: str | None) -> str | None:
    return guid16(digits) if digits else None


_END = r"(CA|SW|RT) {1,5}([0-9]{1,5}) {1,2}([0-9]{1,3}) 0x([0-9a-f]{16}) "
_OWN = lazy_pattern(_END + r"(\S{2,3}) (\S{3,5})")
_FAR = lazy_pattern(r" - " + _END + r"\( '")
_LISTED_NODE = lazy_pattern(
    r"(Ca|Switch|Router)[ \t]{1,4}: 0x([0-9a-f]{16}) ports ([0-9]{1,3})"
    r"(?: devid (0x[0-9a-f]{1,8}) vendid (0x[0-9a-f]{1,8}))? \""
)
_LISTED_LID = lazy_pattern(r" (?:base|enhanced) port 0 lid ([0-9]{1,5})\b")


def parse_ports(text: str, name: str) -> Fabric:
    """The ports report. It names GUIDs of ports only: one stands for its node. Never raises."""
    wiring = FabricBuilder("ibnetdiscover -p", name)
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
    wiring = FabricBuilder("ibnodes", name)
    for number, line in numbered_lines(text):
        match = _LISTED_NODE.match(line.strip()) if len(line) <= LONGEST_LINE else None
        if match is None:
            if line.strip():
                wiring.problem(number, "no node of the list", line)
            continue
        comment = line.strip()[match.end() :]
        end = comment.rfind('"')
        lid = _LISTED_LID.match(comment[end + 1 :]) if end >= 0 else None
        wiring.node(
            FabricNode(
                guid=match[2],
                kind={"Ca": "ca", "Switch": "switch"}.get(match[1], "router"),
                name=comment[:end] if end >= 0 else comment,
                ports=int(match[3]),
                lid=lid_of(lid[1]) if lid else None,
            )
        )
    return wiring.fabric()


def _names(comment: str) -> tuple[str, str]:
    """The two of "a' - 'b' )"."""
    near, _, far = comment.partition("' - '")
    return near, far.removesuffix(")").rstrip().removesuffix("'")


def _end(wiring: FabricBuilder, match: re.Match[str], name: str) -> FabricEnd:
    kind, lid, guid = KINDS[match[1]], lid_of(match[2]), match[4]
    wiring.node(FabricNode(guid, kind, name, lid=lid if kind == "switch" else None, guid_of_port=True))
    return FabricEnd(guid, int(match[3]), None if kind == "switch" else guid, lid)
