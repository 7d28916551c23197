"""Builds the topology of one host from the facts of all probes: one module per part, joined by PCI address here.

What is true of the host belongs here. What is wrong with it does not: that is agent/rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from agent.assemble.driver_gpus import merge_driver_gpus
from agent.assemble.facts import ProbeFacts, sort_key
from agent.assemble.gpus import add_error_counts, build_gpus, build_nvswitches
from agent.assemble.link_quality import LinkClassifier
from agent.assemble.nics import build_nics, gather_network_facts
from agent.assemble.node import build_events, build_node, build_software
from agent.assemble.paths import DriverMatrix, PathFinder, build_paths
from agent.assemble.pci import add_iommu_default, build_functions, merge_functions
from agent.assemble.pcie_tree import PcieTree
from agent.assemble.roles import assign_roles, gather_role_context
from agent.model.gpu import Ascend, Gpu
from agent.model.node import Event, Node, Platform, Software
from agent.model.pci import CXL_MEMORY, Cxl, PciFunction
from agent.model.topology import Topology, UnequalLabel
from agent.platforms.recognize import recognize_platform
from probes.probe import Outcome
from probes.system.dmi import DmiFacts
from probes.system.numa import NumaFacts

if TYPE_CHECKING:
    from agent.model.nic import Netdev, Nic
    from probes.netdev.probe import NetdevFacts
    from probes.tool_reports.facts import ToolFacts


class Assembled(msgspec.Struct, frozen=True):
    """One host: the body of a report, before any rule is evaluated."""

    node: Node
    platform: Platform
    software: Software
    events: list[Event]
    topology: Topology


def assemble(outcomes: Iterable[Outcome], providers: Mapping[str, tuple[str, ...]]) -> Assembled:
    """Join the facts of all probes, by PCI address where there is one; the same outcomes give the same rows.

    `providers`: names of probes by the subject that their facts are about.
    """
    facts = ProbeFacts(outcomes, providers)
    node = build_node(facts)
    dmi = facts.of("dmi", DmiFacts)

    functions = add_iommu_default(merge_functions(facts), facts)
    driver = merge_driver_gpus(facts, functions)
    tree = PcieTree(functions)
    judge = LinkClassifier(tree, {g.address: g for g in driver.gpus if g.address}, node.virtualization is not None)
    pci = build_functions(functions, judge, facts.of("numa", NumaFacts))

    of_lspci = facts.get("lspci") is not None and facts.get("pci_sysfs") is None
    gpus = build_gpus(pci, driver, "a container" if node.container else node.job_limit, of_lspci)
    if (errors := facts.get("neuron_errors")) and not (node.container or node.job_limit):  # there numbers are others
        gpus = add_error_counts(gpus, errors)
    network = gather_network_facts(facts, pci, driver.nic_names)
    nics = _add_network(build_nics(pci, network), facts)
    matrix = DriverMatrix(driver.cells, gpus, nics, driver.nic_names)
    paths = build_paths(PathFinder(tree, pci, node.numa_nodes), gpus, nics, matrix)
    nics = assign_roles(nics, gather_role_context(node, pci, gpus, nics, paths, matrix, facts))

    ascend = _build_ascend(facts, gpus)
    if ascend and ascend.ports:
        from agent.assemble.ascend import add_roce_ports  # lazy: most nodes have none

        nics = add_roce_ports(nics, ascend.ports, facts)
    if any(gpu.links and gpu.links[0].protocol == "gaudi" for gpu in gpus):
        from agent.assemble.gaudi import move_scale_out_ports  # lazy: most nodes have none

        gpus, nics = move_scale_out_ports(gpus, nics, network)
    unlisted = len({gpu.address for gpu in driver.gpus if gpu.address} - {row.id for row in pci}) if pci else 0
    return Assembled(
        node=node,
        platform=recognize_platform(node, pci, dmi.chassis_asset_tag if dmi else None, unlisted),
        software=build_software(facts),
        events=build_events(facts),
        topology=Topology(
            pci=pci,
            gpus=gpus,
            nvswitches=build_nvswitches(functions),
            nics=nics,
            netdevs=_build_netdevs(facts, nics),
            paths=paths,
            cxl=_build_cxl(facts, pci),
            ascend=ascend,
            bandwidth_mode=driver.bandwidth_mode,
            unequal_labels=_build_unequal(facts.get("tool_reports")),
        ),
    )


def _add_network(nics: list[Nic], facts: ProbeFacts) -> list[Nic]:
    """With the neighbors of their ports and the marking of their traffic, where these are known."""
    if facts.get("ib_fabric") is not None:
        from agent.assemble.fabric import add_neighbors  # lazy: few sources hold a fabric

        nics = add_neighbors(nics, facts)
    if any(nic.ports for nic in nics):
        from agent.assemble.qos import add_markings  # lazy: a tree may hold no port

        nics = add_markings(nics, facts)
    return nics


def _build_netdevs(facts: ProbeFacts, nics: list[Nic]) -> list[Netdev]:
    interfaces: NetdevFacts | None = facts.get("netdev")
    if interfaces is None:
        return []
    from agent.assemble.netdevs import add_ethernet, build_netdevs  # lazy: a tree may hold no interface
    from agent.assemble.qos import QosLookup

    return add_ethernet(build_netdevs(interfaces.netdevs, nics, QosLookup(facts)), facts)


def _build_unequal(tools: ToolFacts | None) -> list[UnequalLabel] | msgspec.UnsetType:
    rows = [
        UnequalLabel(
            source=row.source,
            label=row.label,
            values={value: sorted(names, key=sort_key) for value, names in row.values},
        )
        for row in (tools.unequal if tools else ())
    ]
    return rows or msgspec.UNSET


def _build_cxl(facts: ProbeFacts, pci: list[PciFunction]) -> Cxl | None:
    """CXL memory, where the bus or a saved output has any."""
    if facts.get("cxl") is None and not any((function.class_code or "").startswith(CXL_MEMORY) for function in pci):
        return None
    from agent.assemble.pci import build_cxl  # lazy: most nodes have none

    return build_cxl(facts, pci)


def _build_ascend(facts: ProbeFacts, gpus: list[Gpu]) -> Ascend | None:
    """Ascend NPUs, where the bus or a saved output has any."""
    if facts.get("hccn") is None and not any(gpu.vendor == "Huawei" for gpu in gpus):
        return None
    from agent.assemble.ascend import build_ascend  # lazy: most nodes have none

    return build_ascend(facts, gpus)
