"""Facts of many probes -> what this host is. One file a part; the order stands here, on one screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.assemble.driver_gpus import driver_gpus
from agent.assemble.ethernet import with_ethernet
from agent.assemble.events import events_of
from agent.assemble.fabric import with_far_ends
from agent.assemble.facts import Facts
from agent.assemble.gpus import gpus_of
from agent.assemble.link_quality import LinkJudge
from agent.assemble.netdevs import netdevs_of
from agent.assemble.nics import network_facts, nics_of
from agent.assemble.node import node_of
from agent.assemble.nvswitches import nvswitches_of
from agent.assemble.paths import Matrix, Paths, paths_of
from agent.assemble.pci import joined_functions, pci_rows
from agent.assemble.pcie_tree import PcieTree
from agent.assemble.qos import QosOf, with_markings
from agent.assemble.role_evidence import surroundings
from agent.assemble.roles import with_roles
from agent.assemble.software import software_of
from agent.model.node import Event, Node, Platform, Software
from agent.model.topology import Topology
from agent.platforms.recognize import recognize
from probes.netdev.probe import NetdevFacts
from probes.probe import Outcome
from probes.system.dmi import DmiFacts
from probes.system.numa import NumaFacts


class Assembled(NamedTuple):
    """What one host is: the body of a report, before anybody judges it."""

    node: Node
    platform: Platform
    software: Software
    events: list[Event]
    topology: Topology


def assemble(outcomes: Iterable[Outcome]) -> Assembled:
    """Join the facts of all probes, by PCI address where there is one. The same outcomes give the same rows."""
    facts = Facts(outcomes)
    node = node_of(facts)
    dmi, netdevs = facts.of("dmi", DmiFacts), facts.of("netdev", NetdevFacts)

    functions = joined_functions(facts)
    driver = driver_gpus(facts, functions)
    tree = PcieTree(functions)
    judge = LinkJudge(tree, {g.address: g for g in driver.gpus if g.address}, node.virtualization is not None)
    pci = pci_rows(functions, judge, facts.of("numa", NumaFacts))

    gpus = gpus_of(pci, driver, node.container)
    nics = with_far_ends(nics_of(pci, network_facts(facts, pci, driver.nic_names)), facts)
    nics = with_markings(nics, facts)
    matrix = Matrix(driver.cells, gpus, nics, driver.nic_names)
    paths = paths_of(Paths(tree, pci, node.numa_nodes), gpus, nics, matrix)
    nics = with_roles(nics, surroundings(node, pci, gpus, nics, paths, matrix, netdevs))

    unlisted = len({gpu.address for gpu in driver.gpus if gpu.address} - {row.id for row in pci}) if pci else 0
    return Assembled(
        node=node,
        platform=recognize(node, pci, dmi.chassis_asset_tag if dmi else None, unlisted),
        software=software_of(facts),
        events=events_of(facts),
        topology=Topology(
            pci=pci,
            gpus=gpus,
            nvswitches=nvswitches_of(functions),
            nics=nics,
            netdevs=with_ethernet(netdevs_of(netdevs.netdevs if netdevs else (), nics, QosOf(facts)), facts),
            paths=paths,
            bandwidth_mode=driver.bandwidth_mode,
        ),
    )
