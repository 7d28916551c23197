"""The graph from all that there is: fabric files, and the rows of nodes' reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from agent.fleet.cluster.from_fabric import parse_node_description, read
from agent.fleet.cluster.from_reports import (
    ClusterTables,
    Neighbours,
    build_adapters,
    find_mismatches,
    read_domains,
    read_infiniband,
    read_lldp,
)
from agent.fleet.cluster.graph import FabricGraph, SharedPort, UnknownAdapter, make_names_distinct
from agent.fleet.racks import find_racks
from agent.model.labels import natural
from probes.fabric.topology import Fabric

_GENERATED = re.compile(r"^# Topology file: generated on ([A-Za-z0-9: ]{10,40})$", re.MULTILINE)


class FabricFile(NamedTuple):
    """One file. `when`: its own words of the time when it was made; "" where it has none."""

    name: str
    fabric: Fabric
    when: str = ""


class OtherSource(Protocol):
    """What adds links to a graph of Ethernet: outputs of switches."""

    @property
    def source(self) -> str:
        """What was read, in words."""

    def add_to(self, graph: FabricGraph) -> FabricGraph:
        """The graph with them."""


def build(files: Sequence[FabricFile], tables: ClusterTables | None, outputs: OtherSource | None = None) -> FabricGraph:
    """Everything joined. What cannot be read or joined is in its notes."""
    notes: list[str] = []
    known, claimed = build_adapters(tables) if tables and files else ({}, [])
    notes += claimed
    fabric = read([file.fabric for file in files], known)
    notes += fabric.notes
    switches, links = list(fabric.switches), list(fabric.host_links)
    sources = [f"{file.name} ({file.fabric.format_name}{', ' + file.when if file.when else ''})" for file in files]
    shared: list[SharedPort] = []
    if tables:
        sources.append(f"reports of {len(tables.host):,} node{'s'[: len(tables.host) != 1]}")
        ethernet = read_lldp(tables)
        own = read_infiniband(tables) if not files else Neighbours((), ())
        taken = {link.at for link in links}
        there = {switch.id for switch in fabric.switches}
        for source in (ethernet, own):
            switches += [switch for switch in source.switches if switch.id not in there]
            links += [link for link in source.host_links if link.at not in taken]
            shared += [shared_port for shared_port in source.shared if shared_port.at not in taken]
    if outputs is not None:
        sources.append(outputs.source)
    times = "; ".join(dict.fromkeys(file.when for file in files if file.when)) or "of unknown time"
    graph = FabricGraph(
        switches=make_names_distinct(switches),
        host_links=tuple(links),
        switch_links=fabric.switch_links,
        nameless=fabric.nameless,
        domains=read_domains(tables) if tables else (),
        unseen=tuple(find_mismatches(tables, fabric.guids, links, f"file {times}"))
        if tables and files and not fabric.cut
        else (),
        rails={row.node: row.rails for row in tables.host if row.rails is not None} if tables else {},
        racks=_list_racks(tables) if tables else {},
        shared=tuple(shared),
        cut=fabric.cut,
        sources=tuple(sources),
    )
    if outputs is not None:
        graph = outputs.add_to(graph)
    reached = {link.host for link in graph.host_links}
    lost = sum(row.node not in reached for row in tables.host) if tables else 0
    if lost and graph.switches:
        notes.append(f"{lost:,} of {len(tables.host if tables else ()):,} nodes are not in the switch data")
    return graph._replace(notes=(*notes, *_describe_unknown_adapters(fabric.nameless), *graph.notes))


def _list_racks(tables: ClusterTables) -> dict[str, str]:
    names = [str(row.node) for row in tables.host]
    racks = find_racks(names, [row.chassis_serial for row in tables.host])
    return {node: rack for node, rack in zip(names, racks, strict=True) if rack is not None}


def _describe_unknown_adapters(nameless: Sequence[UnknownAdapter]) -> Iterator[str]:
    described_adapters = [parse_node_description(adapter.said) for adapter in nameless]
    twice = sorted({pair[0] for pair in described_adapters if pair}, key=natural)
    if twice:
        more = f" and {len(twice) - 5:,} more" if len(twice) > 5 else ""
        yield (
            f"{', '.join(twice[:5])}{more}: several machines are called so; which of their "
            f"{sum(pair is not None for pair in described_adapters):,} adapters is whose is not known"
        )
    silent = described_adapters.count(None)
    if silent:
        they = "adapter in the fabric does" if silent == 1 else "adapters in the fabric do"
        yield f"{silent:,} {they} not name the host {'it is' if silent == 1 else 'they are'} in"


def read_generated_date(text: str) -> str:
    """When a file states that it was made, in its own words.

    >>> read_generated_date("#\\n# Topology file: generated on Tue Feb 23 14:02:06 2021\\n#\\n")
    'Tue Feb 23 14:02:06 2021'
    """
    match = _GENERATED.search(text[:4096])
    return match[1] if match else ""
