"""Parses `iblinkinfo`: a block a node, one line per port; and `iblinkinfo -l`: all of a link on one line.

infiniband-diags/iblinkinfo.c. It names GUIDs of ports, of far ends only with -l: else the far end is the node of that
LID and description. "Could be": what both ends support and the link does not use, by their capabilities.
"""

from __future__ import annotations

from probes.fabric.formatting import guid16, kind_in_name, lanes, lid_of, speed_signalled
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

_HEADER = lazy_pattern(r"(Switch|CA|Router):? +(?:0x([0-9a-f]{1,16}) +)?(.*?):? *")
_OWN = lazy_pattern(r'\s*(?:0x([0-9a-f]{1,16})\s+)?(?:"(.*)"\s+)?([0-9]{1,5})\s+([0-9]{1,3})\[[ 0-9]{0,4}\]\s*')
_FAR = lazy_pattern(r'\s*(?:0x([0-9a-f]{1,16})\s+)?([0-9]{1,5})\s+([0-9]{1,3})\[[ 0-9]{0,4}\]\s*"')
_NOTHING = lazy_pattern(r'\s*\[[ ]{0,4}\]\s*""')
_COULD_WIDTH = lazy_pattern(r"Could be ([0-9]{1,2}X)\b")
_COULD_SPEED = lazy_pattern(r"Could be ((?:FDR10|[0-9.]{3,8} Gbps))")
_SPEED = lazy_pattern(r"[0-9.]{3,8} Gbps(?: \(FDR10\))?")
_KINDS = {"Switch": "switch", "CA": "ca", "Router": "router"}


class _LinkRow(NamedTuple):
    """One line: a port and what it states of its far end. `far_port` is none where nothing is connected or seen."""

    number: int
    guid: str
    own: FabricEnd
    said: FabricLink  # without its ends
    far_guid: str | None = None
    far_lid: int | None = None
    far_port: int | None = None
    far_name: str = ""


def parse(text: str, name: str) -> Fabric:
    """Never raises."""
    wiring = FabricBuilder("iblinkinfo", name)
    rows: list[_LinkRow] = []
    here = FabricNode("", "unknown")
    for number, line in numbered_lines(text):
        if len(line) > LONGEST_LINE:
            wiring.problem(number, "too long for a line of iblinkinfo", line)
        elif line.startswith(("< ", "> ")):
            wiring.problem(number, "a line of a difference between two fabrics", line)
        elif "==(" in line:
            row = _row(wiring, number, line, here)
            if row is not None:
                rows.append(row)
                if here.kind == "ca" and not here.guid:
                    here = here._replace(guid=row.guid)
        elif match := _HEADER.fullmatch(line.strip()):
            guid = guid16(match[2]) if match[2] else ""
            here = FabricNode(guid, _KINDS[match[1]], match[3].strip(), guid_of_port=True)
            if here.guid:
                wiring.node(here)
                wiring.listed[here.guid] = None
        elif line.strip():
            wiring.problem(number, "not understood", line)
    _join(wiring, rows)
    return wiring.fabric()


def _row(wiring: FabricBuilder, number: int, line: str, here: FabricNode) -> _LinkRow | None:
    own, arrow = _OWN.match(line), line.find("==>")
    if own is None or arrow < 0 or line[own.end() : own.end() + 3] != "==(":
        wiring.problem(number, "no port of a link", line)
        return None
    lid, port = lid_of(own[3]), int(own[4])
    whole_line = own[2] is not None  # -l: every line stands for itself
    own_guid = guid16(own[1]) if own[1] else None
    if whole_line:
        here = FabricNode("", kind_in_name(own[2]), own[2].strip(), guid_of_port=True)
    elif own_guid and here.kind != "ca":
        here = FabricNode("", "ca", guid_of_port=True)  # the block's header is not in the file
    guid = here.guid or own_guid or (f"lid {lid}" if lid else "")
    if not guid:
        wiring.problem(number, "a port without a node", line)
        return None
    is_switch = here.kind == "switch" or (own_guid is None and here.kind != "ca")
    if not here.guid and own_guid is None:
        here = FabricNode(guid, "switch")  # of a channel adapter every line states the GUID
    if not _is_named(wiring, guid):
        wiring.node(here._replace(guid=guid, lid=lid if is_switch else None))
    end = FabricEnd(guid, port, None if is_switch else own_guid, lid)
    return _with_far(
        wiring, _LinkRow(number, guid, end, _parse_middle(line[own.end() + 3 : arrow])), line, line[arrow + 3 :]
    )


def _with_far(wiring: FabricBuilder, row: _LinkRow, line: str, right: str) -> _LinkRow | None:
    far, end = _FAR.match(right), right.rfind('" (')
    if far is None or end < far.end():
        if not _NOTHING.match(right) and '"Port not available"' not in right:
            wiring.problem(row.number, "no far end of a link", line)
            return None
        return row._replace(said=row.said._replace(width=None, speed=None))
    hints = right[end + 3 :]
    width, speed = _COULD_WIDTH.search(hints), _COULD_SPEED.search(hints)
    return row._replace(
        said=row.said._replace(
            could_width=lanes(width[1]) if width else None,
            could_speed=speed_signalled(speed[1]) if speed else None,
            could_told=True,
        ),
        far_guid=guid16(far[1]) if far[1] else None,
        far_lid=lid_of(far[2]),
        far_port=int(far[3]),
        far_name=right[far.end() : end].strip(),
    )


def _parse_middle(middle: str) -> FabricLink:
    """What is between "==(" and "==>": "4X 25.78125 Gbps Active/  LinkUp)", or without what runs if it is down."""
    state, _, phys = middle.partition(") (HOQ")[0].rstrip().removesuffix(")").rpartition("/")
    words, speed = state.split(), _SPEED.search(state)
    down = words[-1:] == ["Down"]  # all but the states means nothing then
    return FabricLink(
        FabricEnd("", 0),
        None,
        width=lanes(words[0]) if words and not down else None,
        speed=speed_signalled(speed[0]) if speed and not down else None,
        state=words[-1] if words and words[-1].isalpha() else None,
        phys_state=phys.strip() if phys.strip().isalpha() else None,
    )


def _join(wiring: FabricBuilder, rows: list[_LinkRow]) -> None:
    """Every far end, by its GUID, or by its LID and description."""
    known: dict[tuple[int | None, str], str | None] = {}
    guids: dict[tuple[str, int], str | None] = {}  # of channel adapters' ports
    ports: dict[str, set[int]] = {}
    for row in rows:
        place = row.own.lid, wiring.nodes[row.guid].name
        known[place] = row.guid if known.get(place, row.guid) == row.guid else None
        guids[row.guid, row.own.port] = row.own.port_guid
        ports.setdefault(row.guid, set()).add(row.own.port)
    for port, numbers in ports.items():
        if len(numbers) > 1 and wiring.nodes[port].kind == "unknown":  # ports of a channel adapter have a GUID each
            wiring.nodes[port] = wiring.nodes[port]._replace(kind="switch")
    for row in rows:
        far: FabricEnd | None = None
        if row.far_port is not None:
            by_place = known.get((row.far_lid, row.far_name)) or known.get((row.far_lid, ""))
            guid = row.far_guid or by_place or (f"lid {row.far_lid}" if row.far_lid else "")
            if not guid:
                wiring.problem(row.number, f"which node {row.far_name[:64]!r} is unknown: it has no LID")
                continue
            if not _is_named(wiring, guid):
                wiring.node(FabricNode(guid, kind_in_name(row.far_name), row.far_name, guid_of_port=True))
            is_switch = wiring.nodes[guid].kind == "switch"
            far_guid = guids.get((guid, row.far_port)) or (None if is_switch else row.far_guid)
            far = FabricEnd(guid, row.far_port, far_guid, row.far_lid)
        own = row.own._replace(port_guid=None) if wiring.nodes[row.guid].kind == "switch" else row.own
        wiring.link(row.said._replace(a=own, b=far), row.number)


def _is_named(wiring: FabricBuilder, guid: str) -> bool:
    known = wiring.nodes.get(guid)
    return known is not None and known.name != "" and (known.lid is not None or known.kind != "switch")
