"""The graph from all that there is: fabric files, and the rows of nodes' reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.fleet.cluster.from_fabric import described, read
from agent.fleet.cluster.from_reports import ClusterTables, Neighbours, adapters, domains, infiniband, lldp, unseen
from agent.fleet.cluster.graph import FabricGraph, Nameless, SharedPort, distinct_names, natural
from probes.fabric.topology import Fabric

_GENERATED = re.compile(r"^# Topology file: generated on ([A-Za-z0-9: ]{10,40})$", re.MULTILINE)


class FabricFile(NamedTuple):
    """One file. `when`: its own words of the time when it was made; "" where it has none."""

    name: str
    fabric: Fabric
    when: str = ""


def build(files: Sequence[FabricFile], tables: ClusterTables | None) -> FabricGraph:
    """Everything joined. What cannot be read or joined stands in its notes."""
    notes: list[str] = []
    known, claimed = adapters(tables) if tables and files else ({}, [])
    notes += claimed
    found = read([file.fabric for file in files], known)
    notes += found.notes
    switches, links = list(found.switches), list(found.host_links)
    sources = [f"{file.name} ({file.fabric.format_name}{', ' + file.when if file.when else ''})" for file in files]
    lost: list[str] = []
    shared: list[SharedPort] = []
    if tables:
        sources.append(f"reports of {len(tables.host):,} node{'s'[: len(tables.host) != 1]}")
        ethernet = lldp(tables)
        own = infiniband(tables) if not files else Neighbours((), ())
        taken = {link.at for link in links}
        there = {switch.id for switch in found.switches}
        for told in (ethernet, own):
            switches += [switch for switch in told.switches if switch.id not in there]
            links += [link for link in told.host_links if link.at not in taken]
            shared += [shared_port for shared_port in told.shared if shared_port.at not in taken]
        reached = {link.host for link in links}
        lost = sorted(str(row.node) for row in tables.host if row.node not in reached)
    if lost:
        notes.append(f"{len(lost):,} of {len(tables.host if tables else ()):,} nodes are not in the switch data")
    notes += _said_of_nameless(found.nameless)
    when = "; ".join(dict.fromkeys(file.when for file in files if file.when)) or "of unknown time"
    return FabricGraph(
        switches=distinct_names(switches),
        host_links=tuple(links),
        switch_links=found.switch_links,
        nameless=found.nameless,
        domains=domains(tables) if tables else (),
        unseen=tuple(unseen(tables, found.guids, links, f"file {when}")) if tables and files and not found.cut else (),
        rails={row.node: row.rails for row in tables.host if row.rails is not None} if tables else {},
        racks={row.node: row.chassis_serial for row in tables.host if row.chassis_serial} if tables else {},
        shared=tuple(shared),
        cut=found.cut,
        sources=tuple(sources),
        notes=tuple(notes),
    )


def _said_of_nameless(nameless: Sequence[Nameless]) -> Iterator[str]:
    said = [described(each.said) for each in nameless]
    twice = sorted({each[0] for each in said if each}, key=natural)
    if twice:
        more = f" and {len(twice) - 5:,} more" if len(twice) > 5 else ""
        yield (
            f"{', '.join(twice[:5])}{more}: several machines are called so; which of their "
            f"{sum(each is not None for each in said):,} adapters is whose is not known"
        )
    silent = said.count(None)
    if silent:
        they = "adapter in the fabric does" if silent == 1 else "adapters in the fabric do"
        yield f"{silent:,} {they} not name the host {'it is' if silent == 1 else 'they are'} in"


def generated(text: str) -> str:
    """When a file says that it was made, in its own words.

    >>> generated("#\\n# Topology file: generated on Tue Feb 23 14:02:06 2021\\n#\\n")
    'Tue Feb 23 14:02:06 2021'
    """
    found = _GENERATED.search(text[:4096])
    return found[1] if found else ""
