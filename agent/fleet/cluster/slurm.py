"""topology.conf and topology.yaml of Slurm.

Contract: Slurm's topology.conf(5), topology.yaml(5) (25.05). A switch's name has at most 64 characters; a tree gives
each node one parent; every block has at least as many nodes as the first of the block sizes states.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import Domain, FabricGraph
from agent.fleet.cluster.hierarchy import Level, Tree, build_tree, walk
from agent.fleet.cluster.scheduler_names import format_comment, format_yaml_text, make_node_names, make_unique
from agent.fleet.hostlist import fold


class Nothing(ValueError):
    """There is no host that a topology could hold; the message states it."""


def format_conf(cluster: FabricGraph, views: list[View], only: Collection[str] | None = None) -> str:
    """topology.conf: a tree where switches are known, else blocks. `only`: names of the nodes that Slurm has."""
    topology_tree = build_tree(views)
    lines = ["# Slurm's topology.conf(5), by fabricscope"]
    nodes, left = _choose_nodes(cluster, topology_tree, only)
    if any(nodes.values()) and topology_tree.roots:
        lines += _format_comments(topology_tree, nodes, left)
        if cluster.domains:
            lines.append(
                f"# {len(cluster.domains)} NVLink domains can be blocks of a topology of their own: topology.yaml"
            )
        for level, name, hosts, below in _list_levels(topology_tree, nodes):
            lines.append(
                f"SwitchName={name} " + (f"Nodes={_fold_names(hosts)}" if hosts else f"Switches={_fold_names(below)}")
            )
            if level.about and level.about != name:
                lines[-1] += f"  # {format_comment(level.about)}"
    else:
        blocks = _list_blocks(cluster.domains, nodes)
        if not blocks:
            raise Nothing("no host is known to be connected to a switch, or to share an NVLink domain")
        lines += [f"# TopologyPlugin=topology/block: {len(blocks)} NVLink domains (Slurm >= 23.11)"]
        lines += [f"BlockName={name} Nodes={_fold_names(hosts)}" for name, hosts in blocks]
        lines.append(f"BlockSizes={min(len(hosts) for _, hosts in blocks)}")
    return "\n".join(lines) + "\n"


def format_yaml(cluster: FabricGraph, views: list[View], only: Collection[str] | None = None) -> str:
    """topology.yaml: the tree, and the blocks of NVLink domains.

    Blocks are the default where every node of the tree is in one: Slurm reports that the others are in no block.
    """
    topology_tree = build_tree(views)
    nodes, left = _choose_nodes(cluster, topology_tree, only)
    blocks = _list_blocks(cluster.domains, nodes)
    levels = list(_list_levels(topology_tree, nodes))
    if not blocks and not levels:
        raise Nothing("no host is known to be connected to a switch, or to share an NVLink domain")
    lines = ["# Slurm's topology.yaml(5), by fabricscope; Slurm >= 25.05 reads it instead of topology.conf"]
    lines += _format_comments(topology_tree, nodes, left) if levels else []
    lines.append("---")
    in_blocks = {host for _, hosts in blocks for host in hosts}
    of_blocks = bool(blocks) and all(host in in_blocks for _, _, hosts, _ in levels for host in hosts)
    if blocks:
        lines += ["- topology: nvlink", f"  cluster_default: {_format_bool(of_blocks)}", "  block:", "    block_sizes:"]
        lines.append(f"      - {min(len(hosts) for _, hosts in blocks)}")
        lines.append("    blocks:")
        for name, hosts in blocks:
            lines += [
                f"      - block: {format_yaml_text(name)}",
                f"        nodes: {format_yaml_text(_fold_names(hosts))}",
            ]
    if levels:
        lines += [
            "- topology: fabric",
            f"  cluster_default: {_format_bool(not of_blocks)}",
            "  tree:",
            "    switches:",
        ]
        for _, name, hosts, below in levels:
            lines.append(f"      - switch: {format_yaml_text(name)}")
            lines.append(
                f"        nodes: {format_yaml_text(_fold_names(hosts))}"
                if hosts
                else f"        children: {format_yaml_text(_fold_names(below))}"
            )
    return "\n".join(lines) + "\n"


def _choose_nodes(
    cluster: FabricGraph, topology_tree: Tree, only: Collection[str] | None
) -> tuple[dict[str, str], int]:
    """Slurm's names of the hosts it can have, and how many hosts were left out."""
    hosts = {host for level in walk(topology_tree.roots) for host in level.nodes}
    hosts |= {host for domain in cluster.domains for host in domain.hosts}
    names = make_node_names(sorted(hosts))
    chosen = {host: name for host, name in names.items() if name and (only is None or name in only or host in only)}
    return chosen, len(hosts) - len(chosen)


def _format_comments(topology_tree: Tree, nodes: dict[str, str], left: int) -> Iterator[str]:
    if any("leaves:" in level.about for level in walk(topology_tree.roots)):
        yield "# A node is connected to several leaves, one per rail. A tree has one parent per node: a switch here is"
        yield "# a unit, the nodes that share their leaves."
    for host, unit in sorted(topology_tree.placed.items()):
        if host in nodes:
            beside = format_comment(unit)
            yield f"# {nodes[host]} is in no unit: its cables are spread over several; it stands with {beside}"
    if left:
        yield f"# {left} hosts are left out: their names are not nodes of Slurm"
    if len(topology_tree.roots) > 1:
        yield "# Several trees: no cable is known that joins them"


def _list_levels(topology_tree: Tree, nodes: dict[str, str]) -> Iterator[tuple[Level, str, list[str], list[str]]]:
    """Switches that have a node below them: name, its nodes, names of the switches below."""
    alive_levels: list[tuple[Level, list[str], list[Level]]] = []
    alive: set[str] = set()
    for level in walk(topology_tree.roots):
        hosts = [nodes[host] for host in level.nodes if host in nodes]
        below = [lower for lower in level.below if lower.name in alive]
        if hosts or below:
            alive.add(level.name)
            alive_levels.append((level, hosts, below))
    names = make_unique((level.name for level, _, _ in alive_levels), taken=nodes.values())
    for level, hosts, below in alive_levels:
        yield level, names[level.name], hosts, [names[lower.name] for lower in below]


def _list_blocks(domains: tuple[Domain, ...], nodes: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Name and nodes of each NVLink domain, each node once."""
    blocks: list[tuple[str, list[str]]] = []
    seen: set[str] = set()
    for number, domain in enumerate(sorted(domains, key=lambda domain: domain.hosts), 1):
        hosts = [nodes[host] for host in domain.hosts if host in nodes and host not in seen]
        seen.update(domain.hosts)
        if hosts:
            blocks.append((f"nvlink-{number:03d}", hosts))
    return blocks


def _format_bool(value: bool) -> str:
    return "true" if value else "false"


def _fold_names(names: list[str]) -> str:
    return fold(names, suffix=False)
