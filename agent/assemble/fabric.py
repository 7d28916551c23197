"""The far end of each InfiniBand port, from saved fabric outputs that hold this node's ports: joined by GUID."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from agent.assemble.facts import ProbeFacts
from agent.model.nic import FabricNeighbor, Nic, Port

if TYPE_CHECKING:
    from probes.fabric.probe import IbFabricFacts, SavedFabric
    from probes.fabric.topology import FabricEnd, FabricLink, FabricNode

V = TypeVar("V", int, str)


class _FarEnd(msgspec.Struct, frozen=True):
    """The far end of one port as one output reports it."""

    source: str
    node: FabricNode
    end: FabricEnd
    link: FabricLink


def add_neighbors(nics: Sequence[Nic], facts: ProbeFacts) -> list[Nic]:
    """Add to each port the neighbour that the outputs agree on."""
    fabrics: IbFabricFacts | None = facts.get("ib_fabric")
    if fabrics is None:
        return list(nics)
    far = _find_far_ends(fabrics.saved, set(_port_keys_of_nics(nics)))
    return [_add_neighbors_of(nic, far) for nic in nics]


def _port_keys_of_nics(nics: Iterable[Nic]) -> Iterator[tuple[str, int]]:
    """Keys of each port: (GUID of the port, 0) and (GUID of the node, port number)."""
    for nic in nics:
        for port in nic.ports:
            yield from _port_keys(nic, port)


def _port_keys(nic: Nic, port: Port) -> Iterator[tuple[str, int]]:
    if port.link_layer not in ("InfiniBand", None) or nic.software:
        return
    if port.port_guid:
        yield _strip_colons(port.port_guid), 0
    if nic.node_guid:
        yield _strip_colons(nic.node_guid), port.port


def _find_far_ends(
    saved: Iterable[SavedFabric], port_keys: set[tuple[str, int]]
) -> dict[tuple[str, int], list[_FarEnd]]:
    far_ends: dict[tuple[str, int], list[_FarEnd]] = {}
    for source, fabric in saved:
        for link in fabric.links:
            if link.b is None:
                continue
            for near, far in ((link.a, link.b), (link.b, link.a)):
                own = fabric.nodes[near.guid]
                by_node = () if own.guid_of_port else ((near.guid, near.port),)
                for place in ((near.port_guid or "", 0), *by_node):
                    if place in port_keys:
                        far_ends.setdefault(place, []).append(_FarEnd(source, fabric.nodes[far.guid], far, link))
    return far_ends


def _add_neighbors_of(nic: Nic, far: dict[tuple[str, int], list[_FarEnd]]) -> Nic:
    ports = []
    for port in nic.ports:
        far_ends = next((far[place] for place in _port_keys(nic, port) if place in far), [])
        ports.append(msgspec.structs.replace(port, neighbor=_neighbor(far_ends)) if far_ends else port)
    return msgspec.structs.replace(nic, ports=ports)


def _neighbor(far_ends: Sequence[_FarEnd]) -> FabricNeighbor | None:
    """Combine the outputs; None where they name different far ends: a cable was moved between them."""
    first = far_ends[0]
    if any(not _is_same(first, far_end) for far_end in far_ends):
        return None
    lids, names = [far_end.end.lid for far_end in far_ends], [far_end.node.name.strip() for far_end in far_ends]
    widths, speeds = [far_end.link.width for far_end in far_ends], [far_end.link.speed for far_end in far_ends]
    could = [far_end.link for far_end in far_ends if far_end.link.could_width or far_end.link.could_speed]
    width, speed = _common_value(widths), _common_value(speeds)
    could_width = next((link.could_width for link in could if link.could_width), None)
    could_speed = next((link.could_speed for link in could if link.could_speed), None)
    nodes = [far_end.node for far_end in far_ends]
    guids = (node.guid for node in nodes if not node.guid_of_port and not node.guid.startswith("lid "))
    return FabricNeighbor(
        node_guid=next((_group_guid(guid) for guid in guids), None),
        name=next(filter(None, names), None),
        port=first.end.port,
        lid=_common_value(lids),
        width=f"{width}X" if width else None,
        speed=speed,
        rate_gbit_s=_rate(width, speed),
        could_width=f"{could_width}X" if could_width else None,
        could_speed=could_speed,
        could_rate_gbit_s=_rate(could_width or width, could_speed or speed) if could else None,
        source=", ".join(dict.fromkeys(far_end.source for far_end in far_ends)),
    )


def _is_same(one: _FarEnd, other: _FarEnd) -> bool:
    """Whether two outputs mean the same port: by node GUID, or by LID or name where one has no GUID."""
    if one.end.port != other.end.port:
        return False
    same_name = one.node.name.strip() == other.node.name.strip()
    return one.end.guid == other.end.guid or same_name or (one.end.lid is not None and one.end.lid == other.end.lid)


def _common_value(values: Iterable[V | None]) -> V | None:
    known = {value for value in values if value is not None}
    return known.pop() if len(known) == 1 else None


def _rate(width: int | None, speed: str | None) -> float | None:
    from probes.fabric.formatting import LANE_GBIT_S  # lazy: few sources hold a fabric

    return width * LANE_GBIT_S[speed] if width and speed else None


def _group_guid(guid: str) -> str:
    return ":".join(guid[index : index + 4] for index in range(0, 16, 4))


def _strip_colons(guid: str) -> str:
    return guid.replace(":", "")
