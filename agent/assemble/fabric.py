"""The far end of each InfiniBand port, where saved outputs of a fabric hold the ports of this node: joined by GUIDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from agent.assemble.facts import Facts
from agent.model.nic import FabricNeighbor, Nic, Port
from probes.fabric.formatting import LANE_GBIT_S
from probes.fabric.probe import IbFabricFacts, SavedFabric
from probes.fabric.topology import FabricEnd, FabricLink, FabricNode

V = TypeVar("V", int, str)


class _Far(NamedTuple):
    """What one output says of one port's far end."""

    source: str
    node: FabricNode
    end: FabricEnd
    link: FabricLink


def with_far_ends(nics: Sequence[Nic], facts: Facts) -> list[Nic]:
    """The same NICs, each port with the neighbour that the outputs agree on."""
    told: IbFabricFacts | None = facts.told("ib_fabric")
    if told is None:
        return list(nics)
    far = _far_ends(told.saved, set(_places(nics)))
    return [_with_far_ends(nic, far) for nic in nics]


def _places(nics: Iterable[Nic]) -> Iterator[tuple[str, int]]:
    """(GUID of a port, 0) and (GUID of a node, port): what an end of a link may be told by."""
    for nic in nics:
        for port in nic.ports:
            yield from _of_port(nic, port)


def _of_port(nic: Nic, port: Port) -> Iterator[tuple[str, int]]:
    if port.link_layer not in ("InfiniBand", None) or nic.software:
        return
    if port.port_guid:
        yield _bare(port.port_guid), 0
    if nic.node_guid:
        yield _bare(nic.node_guid), port.port


def _far_ends(saved: Iterable[SavedFabric], wanted: set[tuple[str, int]]) -> dict[tuple[str, int], list[_Far]]:
    found: dict[tuple[str, int], list[_Far]] = {}
    for source, fabric in saved:
        for link in fabric.links:
            if link.b is None:
                continue
            for near, far in ((link.a, link.b), (link.b, link.a)):
                own = fabric.nodes[near.guid]
                by_node = () if own.guid_of_port else ((near.guid, near.port),)
                for place in ((near.port_guid or "", 0), *by_node):
                    if place in wanted:
                        found.setdefault(place, []).append(_Far(source, fabric.nodes[far.guid], far, link))
    return found


def _with_far_ends(nic: Nic, far: dict[tuple[str, int], list[_Far]]) -> Nic:
    ports = []
    for port in nic.ports:
        said = next((far[place] for place in _of_port(nic, port) if place in far), [])
        ports.append(msgspec.structs.replace(port, neighbor=_neighbor(said)) if said else port)
    return msgspec.structs.replace(nic, ports=ports)


def _neighbor(said: Sequence[_Far]) -> FabricNeighbor | None:
    """What the outputs say together; none where they name two far ends: a cable was moved between them."""
    first = said[0]
    if any(not _same(first, each) for each in said):
        return None
    lids, names = [each.end.lid for each in said], [each.node.name.strip() for each in said]
    widths, speeds = [each.link.width for each in said], [each.link.speed for each in said]
    could = [each.link for each in said if each.link.could_width or each.link.could_speed]
    width, speed = _agreed(widths), _agreed(speeds)
    could_width = next((link.could_width for link in could if link.could_width), None)
    could_speed = next((link.could_speed for link in could if link.could_speed), None)
    return FabricNeighbor(
        node_guid=next((_grouped(n.guid) for n in (e.node for e in said) if not n.guid_of_port and _is_guid(n)), None),
        name=next(filter(None, names), None),
        port=first.end.port,
        lid=_agreed(lids),
        width=f"{width}X" if width else None,
        speed=speed,
        rate_gbit_s=_rate(width, speed),
        could_width=f"{could_width}X" if could_width else None,
        could_speed=could_speed,
        could_rate_gbit_s=_rate(could_width or width, could_speed or speed) if could else None,
        source=", ".join(dict.fromkeys(each.source for each in said)),
    )


def _same(one: _Far, other: _Far) -> bool:
    """Whether two outputs mean one port: by its node's GUID, or where one does not name it, by its LID or name."""
    if one.end.port != other.end.port:
        return False
    same_name = one.node.name.strip() == other.node.name.strip()
    return one.end.guid == other.end.guid or same_name or (one.end.lid is not None and one.end.lid == other.end.lid)


def _agreed(values: Iterable[V | None]) -> V | None:
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


def _rate(width: int | None, speed: str | None) -> float | None:
    return width * LANE_GBIT_S[speed] if width and speed else None


def _is_guid(node: FabricNode) -> bool:
    return not node.guid.startswith("lid ")


def _grouped(guid: str) -> str:
    return ":".join(guid[at : at + 4] for at in range(0, 16, 4))


def _bare(guid: str) -> str:
    return guid.replace(":", "")
