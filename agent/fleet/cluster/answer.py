"""The answer of `fleet topology` as data: what each fabric is, its rows and units, and what breaks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from agent.fleet.cluster.cabling_faults import CablingFault, find_cabling_faults
from agent.fleet.cluster.fabric_kind import classify_fabric
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.hostlist import fold
from agent.model.labels import natural

FORMAT = "fabricscope.topology/1"
NVL72 = (18, 72)  # hosts and GPUs of one domain


class SwitchTier(msgspec.Struct, frozen=True, kw_only=True):
    """Switches of one row; 1 are leaves. `names`: folded as host lists are."""

    row: int
    switches: int
    names: str


class UnitRow(msgspec.Struct, frozen=True, kw_only=True):
    """A scalable unit. `hosts`: folded. `rails`: rail -> leaf, where that is clear."""

    name: str
    nodes: int
    leaves: list[str]
    rails: dict[str, str]
    hosts: str


class FabricRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fabric. `oversubscription`: of a full leaf, host bandwidth to uplinks; null where it is not known."""

    kind: str
    sure: str
    evidence: list[str]
    levels: int
    oversubscription: float | None
    hosts: int
    ports: int
    switches: int
    cables: int
    rows: list[SwitchTier]
    units: list[UnitRow]
    in_no_unit: list[str]


class DomainRow(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts that one NVLink fabric joins."""

    domain: str
    nodes: int
    gpus: int
    hosts: str


class TopologyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    format: str = FORMAT
    sources: list[str]
    fabrics: list[FabricRow]
    nvlink: list[DomainRow]
    nvlink_words: str | None
    breaks: list[CablingFault]
    notes: list[str]


def build_topology_answer(cluster: FabricGraph, views: list[View]) -> TopologyAnswer:
    """The answer from the graph."""
    domains = [
        DomainRow(domain=domain.id, nodes=len(domain.hosts), gpus=domain.gpus, hosts=fold(domain.hosts))
        for domain in cluster.domains
    ]
    return TopologyAnswer(
        sources=list(cluster.sources),
        fabrics=[_make_fabric(view) for view in views],
        nvlink=sorted(domains, key=lambda domain: natural(domain.hosts)),
        nvlink_words=_find_nvlink(cluster),
        breaks=find_cabling_faults(cluster, views),
        notes=list(cluster.notes),
    )


def _make_fabric(view: View) -> FabricRow:
    kind = classify_fabric(view)
    return FabricRow(
        kind=kind.kind,
        sure=kind.sure,
        evidence=list(kind.evidence),
        levels=kind.levels,
        oversubscription=kind.oversubscription,
        hosts=len(view.units.links),
        ports=len(view.part.host_links),
        switches=len(view.part.switches),
        cables=len(view.part.switch_links),
        rows=list(_list_rows(view)),
        units=[
            UnitRow(
                name=unit.name,
                nodes=len(unit.hosts),
                leaves=[view.name(leaf) for leaf in unit.leaves],
                rails={rail: view.name(at.leaf) for rail, at in unit.rails.items()},
                hosts=fold(unit.hosts),
            )
            for unit in view.units.units
        ],
        in_no_unit=list(view.units.loose),
    )


def _list_rows(view: View) -> Iterator[SwitchTier]:
    for row in sorted(set(view.tiers.values())):
        these = [view.name(switch) for switch, tier in view.tiers.items() if tier == row]
        yield SwitchTier(row=row, switches=len(these), names=fold(these, quote=False))


def _find_nvlink(cluster: FabricGraph) -> str | None:
    """What the NVLink domains are, in words."""
    if not cluster.domains:
        return None
    shapes = Counter((len(domain.hosts), domain.gpus) for domain in cluster.domains)
    text = ", ".join(
        f"{count:,} with {hosts} host{'s'[: hosts != 1]} and {gpus} GPU{'s'[: gpus != 1]} each"
        for (hosts, gpus), count in sorted(shapes.items(), reverse=True)
    )
    whole = shapes.get(NVL72, 0)
    kind = "NVL72 blocks" if whole * 2 > len(cluster.domains) else "NVLink domains"
    return f"{kind}: {text} (cluster UUID and clique of the reports)"
