"""A fabric file's nodes and links as hosts on switches.

Channel adapters are joined to hosts by the GUIDs of their reports, else by NodeDescription as rdma-ndd(8) and older
set-up scripts write it: "host mlx5_0", "host HCA-1". Aggregation nodes (SHARP) are parts of switches, no hosts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agent.fleet.cluster.graph import (
    HostLink,
    LinkRate,
    Switch,
    SwitchLink,
    SwitchPort,
    UnknownAdapter,
    make_link_rate,
    switch_name,
    switch_part,
)
from probes.fabric.topology import (
    Fabric,
    FabricEnd,
    FabricLink,
    FabricNode,
)

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})")
_ADAPTER = re.compile(r"(?:HCA-[0-9]{1,3}|[A-Za-z][A-Za-z_]{0,14}[0-9][A-Za-z0-9_.]{0,20})")
_NOBODY = {"localhost", "localhost.localdomain", "localhost4", "localhost6", "none", "unknown"}


class Adapter(NamedTuple):
    """What a host's report states of an adapter's port."""

    host: str
    rail: str
    device: str


class FabricFileContent(NamedTuple):
    """What one file holds, in the words of the graph. `guids`: every adapter's node and port GUID in it."""

    switches: tuple[Switch, ...]
    host_links: tuple[HostLink, ...]
    switch_links: tuple[SwitchLink, ...]
    nameless: tuple[UnknownAdapter, ...]
    guids: frozenset[str]
    notes: tuple[str, ...]
    cut: bool


class _Port(NamedTuple):
    node: FabricNode
    end: FabricEnd
    at: SwitchPort
    pace: LinkRate


def read(files: Iterable[Fabric], adapters: Mapping[str, Adapter]) -> FabricFileContent:
    """All files together; what several of them show is there once. `adapters`: by node and port GUID."""
    switches: dict[str, Switch] = {}
    trunks: list[SwitchLink] = []
    ports: list[_Port] = []
    taken: set[SwitchPort] = set()  # one cable a port: what the first file states of it counts
    notes: list[str] = []
    doubled: list[tuple[FabricNode, SwitchPort]] = []
    direct, cut = 0, False
    for fabric in files:
        nodes = fabric.nodes
        partial = _find_partial(fabric)
        cut = cut or bool(partial)
        for node in nodes.values():
            if node.kind == "switch" and not (node.guid in switches and switches[node.guid].whole):
                name, part = switch_name(node.name), switch_part(node.name)
                switch = Switch(node.guid, name, node.ports, whole=node.guid not in partial, part=part)
                switches[node.guid] = switch
        if partial:
            why = ", or of a part of the fabric: it names nodes that it does not list" if not fabric.cut else ""
            notes.append(f"{fabric.format_name}: a file is cut{why}; no data is missing")
        notes += [f"{fabric.format_name}: {problem}" for problem in fabric.problems]
        for link in fabric.links:
            if link.b is None or (link.state or "").lower() == "down":
                continue
            one, other = _format_kind(nodes, link.a), _format_kind(nodes, link.b)
            if one == other == "switch":
                trunk = _make_trunk(link)
                if trunk.a not in taken and trunk.b not in taken:
                    taken |= {trunk.a, trunk.b}
                    trunks.append(trunk)
            elif "switch" in (one, other):
                far, near = (link.b, link.a) if one == "switch" else (link.a, link.b)
                far_node, at = nodes.get(far.guid), SwitchPort(near.guid, str(near.port))
                own = far_node is None or far_node.kind != "ca" or _is_of_switch(far_node, nodes.get(near.guid))
                if far_node is not None and not own and at not in taken:
                    taken.add(at)
                    ports.append(_Port(far_node, far, at, _make_pace(link)))
            else:
                direct += 1
        for adapter, at in _find_doubled(fabric, taken):
            taken.add(at)
            doubled.append((adapter, at))
    notes += _describe_doubled(doubled, switches)
    if direct:
        notes.append(f"{direct} links of two adapters without a switch are left out")
    named, nameless = _join_hosts(ports, adapters)
    nameless = (*nameless, *(UnknownAdapter(far.guid, "", at) for far, at in doubled))
    guids = frozenset(guid for port in ports for guid in (port.node.guid, port.end.port_guid) if guid)
    return FabricFileContent(tuple(switches.values()), named, tuple(trunks), nameless, guids, tuple(notes), cut)


def parse_node_description(node_description: str) -> tuple[str, str] | None:
    """Host and adapter of a NodeDescription; none where it names no host.

    >>> [parse_node_description(text) for text in ("luna-0541 mlx5_9", "selene-cache-02 mlx5_1 ", "n1 HCA-2", "node7")]
    [('luna-0541', 'mlx5_9'), ('selene-cache-02', 'mlx5_1'), ('n1', 'HCA-2'), ('node7', '')]
    >>> [parse_node_description(text) for text in ("MT4129 ConnectX7   Mellanox Technologies", "localhost HCA-6", "")]
    [None, None, None]
    """
    words = node_description.replace("'", " ").split()
    if not 1 <= len(words) <= 2 or re.match(r"MT[0-9]{3}|ConnectX", words[0]):
        return None
    host, device = words[0], words[1] if len(words) == 2 else ""
    if not _HOST.fullmatch(host) or host.lower() in _NOBODY or (device and not _ADAPTER.fullmatch(device)):
        return None
    return host, device


def _find_doubled(fabric: Fabric, taken: set[SwitchPort]) -> Iterator[tuple[FabricNode, SwitchPort]]:
    """Adapters that one more port of a switch has."""
    for link in fabric.twice:
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near is None or far is None or _format_kind(fabric.nodes, near) != "switch":
                continue
            at, far_node = SwitchPort(near.guid, str(near.port)), fabric.nodes.get(far.guid)
            if far_node is not None and far_node.kind == "ca" and at not in taken:
                yield far_node, at


def _describe_doubled(doubled: list[tuple[FabricNode, SwitchPort]], switches: Mapping[str, Switch]) -> Iterator[str]:
    for far, at in doubled[:5]:
        name = switches[at.switch].name if at.switch in switches else at.switch
        yield (
            f"GUID {far.guid} ({' '.join(far.name.split())[:80]}) is at another port, and at {name}/{at.port} too: "
            "two adapters with one GUID, or a cable that was moved meanwhile"
        )
    if len(doubled) > 5:
        yield f"{len(doubled) - 5} more such GUIDs"


def _format_kind(nodes: Mapping[str, FabricNode], end: FabricEnd) -> str:
    node = nodes.get(end.guid)
    return node.kind if node else "unknown"


def _find_partial(fabric: Fabric) -> set[str]:
    """Nodes that may not be whole: named by others and not listed, and the one listed last before the end."""
    if fabric.cut:
        return set(fabric.nodes)
    kinds = ("switch", "ca") if fabric.format_name == "ibnetdiscover" else ("switch",)  # which all have a block each
    listed = set(fabric.listed)
    unlisted = {node.guid for node in fabric.nodes.values() if node.kind in kinds and node.guid not in listed}
    return unlisted | {fabric.listed[-1]} if listed and unlisted else set()


def _is_of_switch(node: FabricNode, switch: FabricNode | None) -> bool:
    """The aggregation node within a switch: it shares the switch's system image."""
    if "aggregation node" in node.name.lower():
        return True
    return bool(node.system_image_guid and switch and node.system_image_guid == switch.system_image_guid)


def _make_pace(link: FabricLink) -> LinkRate:
    link_pace = make_link_rate(link.width, link.speed, link.could_width, link.could_speed)
    return link_pace._replace(best=bool(link.could_told and link_pace.could is None and link_pace.gbit_s is not None))


def _make_trunk(link: FabricLink) -> SwitchLink:
    assert link.b is not None
    a, b = sorted((SwitchPort(link.a.guid, str(link.a.port)), SwitchPort(link.b.guid, str(link.b.port))))
    return SwitchLink(a, b, _make_pace(link))


def _join_hosts(
    ports: Iterable[_Port], adapters: Mapping[str, Adapter]
) -> tuple[tuple[HostLink, ...], tuple[UnknownAdapter, ...]]:
    """Links of hosts, and adapters whose host is not known: unnamed, or of a name that several machines have."""
    listed = list(ports)
    names = [parse_node_description(port.node.name) for port in listed]
    uses = Counter((name, port.end.port) for name, port in zip(names, listed, strict=True) if name and name[1])
    joined, nameless = [], []
    for name, port in zip(names, listed, strict=True):
        known = adapters.get(port.end.port_guid or "") or adapters.get(port.node.guid)
        if known:
            joined.append(HostLink(known.host, known.rail, known.device, port.at, port.pace, port.node.guid))
        elif name is None or uses[name, port.end.port] > 1:
            nameless.append(UnknownAdapter(port.node.guid, port.node.name, port.at, port.pace))
        else:
            many = (port.node.ports or 1) > 1 or port.end.port > 1
            device = f"{name[1]}/{port.end.port}" if many and name[1] else name[1]
            joined.append(HostLink(name[0], device, device, port.at, port.pace, port.node.guid))
    return tuple(_list_once(joined)), tuple(nameless)


def _list_once(links: Iterable[HostLink]) -> Iterator[HostLink]:
    """A rail that a host has twice is compared by its adapter instead."""
    listed = list(links)
    uses = Counter((link.host, link.rail) for link in listed)
    for link in listed:
        if uses[link.host, link.rail] == 1 or not link.rail:
            yield link
        else:
            yield link._replace(rail=link.device if link.device != link.rail else f"{link.device} {link.guid}")
