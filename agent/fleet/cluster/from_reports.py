"""What nodes' reports show of the cluster: whose adapter is whose, LLDP neighbours, NVLink domains.

Rows are those of the dataset's tables, whatever engine gave them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from agent.fleet.cluster.from_fabric import Adapter, parse_node_description
from agent.fleet.cluster.graph import (
    Domain,
    HostLink,
    LinkRate,
    PortMismatch,
    SharedPort,
    Switch,
    SwitchPort,
    parse_guid,
    switch_name,
)
from agent.fleet.cluster.peers import AGREE, SHARE
from agent.model.labels import count_by_key, natural

_NO_CLUSTER = "00000000-0000-0000-0000-000000000000"  # NVLink ends at the node


class HostRow(NamedTuple):
    """Columns of the table `host`."""

    node: str
    observed_at: datetime | None = None
    rails: int | None = None
    chassis_serial: str | None = None
    hostname: str | None = None
    cluster: str | None = None


class NicRow(NamedTuple):
    """Columns of the table `nic`."""

    node: str
    id: str
    label: str | None = None
    rail: int | None = None
    rdma_device: str | None = None
    node_guid: str | None = None
    virtual_function: bool | None = None


class PortRow(NamedTuple):
    """Columns of the table `port`."""

    node: str
    nic: str
    port: int | None = None
    rail: int | None = None
    link_layer: str | None = None
    state: str | None = None
    rate_gbit_s: float | None = None
    port_guid: str | None = None
    neighbor_guid: str | None = None
    neighbor_name: str | None = None
    neighbor_port: int | None = None


class NetdevRow(NamedTuple):
    """Columns of the table `netdev`."""

    node: str
    label: str | None = None
    nic: str | None = None
    rail: int | None = None
    speed_gbit_s: float | None = None
    neighbor_system: str | None = None
    neighbor_chassis: str | None = None
    neighbor_port: str | None = None


class GpuRow(NamedTuple):
    """Columns of the table `gpu`."""

    node: str
    cluster_uuid: str | None = None
    clique: int | None = None


T = TypeVar("T", PortRow, NetdevRow)


class ClusterTables(NamedTuple):
    """Rows of the dataset's tables, as far as they matter here."""

    host: Sequence[HostRow] = ()
    nic: Sequence[NicRow] = ()
    port: Sequence[PortRow] = ()
    netdev: Sequence[NetdevRow] = ()
    gpu: Sequence[GpuRow] = ()


ROW_KINDS = {"host": HostRow, "nic": NicRow, "port": PortRow, "netdev": NetdevRow, "gpu": GpuRow}  # by table


class Neighbours(NamedTuple):
    """Switches that hosts reported, and their links."""

    switches: tuple[Switch, ...]
    host_links: tuple[HostLink, ...]
    shared: tuple[SharedPort, ...] = ()


def build_adapters(tables: ClusterTables) -> tuple[dict[str, Adapter], list[str]]:
    """Adapters by node and port GUID, and notes on GUIDs that two hosts claim."""
    devices = {(row.node, row.id): row for row in tables.nic if not row.virtual_function}
    many = Counter((row.node, row.nic) for row in tables.port)
    adapters: dict[str, Adapter] = {}
    claimed: set[str] = set()
    for row in tables.port:
        nic = devices.get((row.node, row.nic))
        if nic is None or row.link_layer != "InfiniBand":
            continue
        several = many[row.node, row.nic] > 1
        adapter = _make_adapter(row, nic, several)
        for key in (parse_guid(row.port_guid), "" if several else parse_guid(nic.node_guid)):
            if key and adapters.setdefault(key, adapter) != adapter:
                claimed.add(key)
    for key in claimed:
        del adapters[key]
    notes = [f"GUID {key} is in the reports of more than one port: not joined by it" for key in sorted(claimed)[:5]]
    if len(claimed) > 5:
        notes.append(f"{len(claimed) - 5} more such GUIDs (fabricscope fleet duplicates)")
    return adapters, notes


def read_lldp(tables: ClusterTables) -> Neighbours:
    """Switches and links by LLDP, of rails; where no rail is known, of every interface of an RDMA device."""
    rows = [row for row in tables.netdev if row.neighbor_port and (row.neighbor_system or row.neighbor_chassis)]
    rails = [row for row in rows if row.rail is not None]
    chosen = _sort_newest_first(rails or [row for row in rows if row.nic], tables)
    ids = _switch_ids(chosen)
    switches: dict[str, Switch] = {}
    links: defaultdict[SwitchPort, list[HostLink]] = defaultdict(list)
    rail_names = {rail: f"rail {rail}" for rail in {row.rail for row in chosen}}  # few, of many thousands of links
    paces = {speed: LinkRate(gbit_s=speed) for speed in {row.speed_gbit_s for row in chosen}}
    for row in chosen:
        switch = ids[row.neighbor_system, row.neighbor_chassis]
        if switch not in switches:
            name = str(row.neighbor_system or switch)
            switches[switch] = Switch(switch, " ".join(name.split()), by_hosts=True)
        at, label = SwitchPort(switch, str(row.neighbor_port)), str(row.label)
        rail = rail_names[row.rail] if row.rail is not None else label
        links[at].append(HostLink(row.node, rail, label, at, paces[row.speed_gbit_s]))
    return _build_neighbours(switches, links)


def read_infiniband(tables: ClusterTables) -> Neighbours:
    """Switches and links by what a host's own fabric file shows of the far ends of its ports."""
    devices = {(row.node, row.id): row for row in tables.nic}
    many = Counter((row.node, row.nic) for row in tables.port)
    switches: dict[str, Switch] = {}
    links: defaultdict[SwitchPort, list[HostLink]] = defaultdict(list)
    for row in _sort_newest_first(tables.port, tables):
        far, name = parse_guid(row.neighbor_guid), str(row.neighbor_name or "")
        host = parse_node_description(name)
        if not far or row.neighbor_port is None or (host and host[1]):
            continue
        switches.setdefault(far, Switch(far, switch_name(name) or far, by_hosts=True))
        at = SwitchPort(far, str(row.neighbor_port))
        adapter = _make_adapter(
            row, devices.get((row.node, row.nic), NicRow(row.node, row.nic)), many[row.node, row.nic] > 1
        )
        pace = LinkRate(gbit_s=row.rate_gbit_s)
        links[at].append(HostLink(adapter.host, adapter.rail, adapter.device, at, pace, parse_guid(row.port_guid)))
    return _build_neighbours(switches, links)


def _build_neighbours(switches: Mapping[str, Switch], links: Mapping[SwitchPort, Sequence[HostLink]]) -> Neighbours:
    """Of several hosts at one port the first has the link; all of them are in `shared`."""
    shared = (
        SharedPort(at, tuple({link.host: link for link in reversed(these)}.values())[::-1])
        for at, these in links.items()
        if len(these) > 1
    )
    first = _split_ports(these[0] for these in links.values())
    return Neighbours(tuple(switches.values()), first, tuple(port for port in shared if len(port.links) > 1))


def read_domains(tables: ClusterTables) -> tuple[Domain, ...]:
    """NVLink domains that leave a node."""
    hosts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in tables.gpu:
        cluster, clique = row.cluster_uuid, row.clique
        if cluster and clique is not None and cluster != _NO_CLUSTER:
            hosts[f"{cluster}.{clique}"][str(row.node)] += 1
    return tuple(Domain(key, tuple(sorted(hosts[key], key=natural)), hosts[key].total()) for key in sorted(hosts))


def find_mismatches(
    tables: ClusterTables, guids: frozenset[str], joined: Iterable[HostLink], fabric_time: str
) -> Iterator[PortMismatch]:
    """Ports that their host calls up and the fabric does not show, and the other way round.

    Only where nearly all ports that are up are there: else the files are of another fabric. `fabric_time`: theirs.
    """
    times = {row.node: row.observed_at for row in tables.host}
    devices = {(row.node, row.id): row for row in tables.nic if not row.virtual_function}
    many = Counter((row.node, row.nic) for row in tables.port)
    at = {(link.host, link.device): link.at for link in joined}
    up: defaultdict[str, list[tuple[Adapter, bool]]] = defaultdict(list)
    for row in tables.port:
        nic = devices.get((row.node, row.nic))
        key = parse_guid(row.port_guid)
        if nic is None or row.link_layer != "InfiniBand" or row.rail is None or not key:
            continue
        adapter = _make_adapter(row, nic, many[row.node, row.nic] > 1)
        there = key in guids or parse_guid(nic.node_guid) in guids
        state = str(row.state or "").upper()
        if state == "ACTIVE":
            up[adapter.host].append((adapter, there))
        elif there and state == "DOWN":
            why = (
                f"the fabric shows it ({fabric_time}), its host calls it down ({_format_time(times.get(adapter.host))})"
            )
            yield PortMismatch(adapter.host, adapter.rail, adapter.device, why, at.get((adapter.host, adapter.device)))
    yield from _find_absent(up, times, fabric_time)


def _find_absent(
    up: Mapping[str, list[tuple[Adapter, bool]]], times: Mapping[str, datetime | None], fabric_time: str
) -> Iterator[PortMismatch]:
    rails = count_by_key((adapter.rail, there) for ports in up.values() for adapter, there in ports)
    whole: list[PortMismatch] = []
    for host, ports in up.items():
        gone = [
            adapter
            for adapter, there in ports
            if not there and rails[adapter.rail][True] >= SHARE * rails[adapter.rail].total()
        ]
        reason = f"up for its host ({_format_time(times.get(host))}), not in the fabric ({fabric_time})"
        if len(gone) == len(ports) > 1:
            whole.append(PortMismatch(host, f"all {len(ports)} rails", "", reason))
            continue
        for adapter in gone:
            yield PortMismatch(host, adapter.rail, adapter.device, reason)
    if len(whole) < AGREE:  # else they are of another fabric, whose file is not here; a note has their number
        yield from whole


def _format_time(time: datetime | None) -> str:
    return f"report of {time:%Y-%m-%d %H:%M}" if time else "report of unknown time"


def _make_adapter(row: PortRow, nic: NicRow, several: bool) -> Adapter:
    rail = nic.rail if row.rail is None else row.rail
    device = str(nic.rdma_device or nic.label or row.nic)
    if several:
        device = f"{device}/{row.port}"
    return Adapter(str(row.node), f"rail {rail}" if rail is not None else device, device)


def _sort_newest_first(rows: Iterable[T], tables: ClusterTables) -> list[T]:
    """Of two hosts that claim one port of a switch, the one that was seen later has it."""
    seen = {row.observed_at for row in tables.host if row.observed_at}
    places = {moment: at for at, moment in enumerate(sorted(seen, reverse=True))}
    ages = {row.node: places[row.observed_at] for row in tables.host if row.observed_at}
    return sorted(rows, key=lambda row: ages.get(row.node, len(places)))


def _switch_ids(rows: Iterable[NetdevRow]) -> dict[tuple[str | None, str | None], str]:
    """One id a switch: its name, unless switches of several chassis have that name ("switch", "sonic")."""
    pairs = {(row.neighbor_system, row.neighbor_chassis) for row in rows}
    chassis: defaultdict[str, set[str]] = defaultdict(set)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for name, own in pairs:
        if name and own:
            chassis[name].add(own)
            names[own].add(name)
    switch_ids = {}
    for name, own in pairs:
        known = name or (next(iter(names[own])) if own and len(names[own]) == 1 else None)
        shared = known is not None and len(chassis[known]) > 1
        switch_ids[name, own] = str(own if (shared and own) or known is None else known)
    return switch_ids


def _split_ports(links: Iterable[HostLink]) -> tuple[HostLink, ...]:
    """A rail of several ports is compared port by port."""
    listed = list(links)
    uses = Counter((link.host, link.rail) for link in listed)
    return tuple(
        link if uses[link.host, link.rail] == 1 else link._replace(rail=f"{link.rail} {link.device}") for link in listed
    )
