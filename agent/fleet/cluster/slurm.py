"""topology.conf and topology.yaml of Slurm.

Contract: Slurm's topology.conf(5), topology.yaml(5) (25.05). A switch's name has at most 64 characters; a tree gives
each node one parent; every block has at least as many nodes as the first of the block sizes says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import Domain, FabricGraph
from agent.fleet.cluster.hierarchy import Level, Tree, tree, walk
from agent.fleet.cluster.scheduler_names import comment, node_names, unique, yaml_text
from agent.fleet.hostlist import fold


class Nothing(ValueError):
    """There is no host that a topology could hold; the message says so."""


def conf(cluster: FabricGraph, views: list[View], only: Collection[str] | None = None) -> str:
    """topology.conf: a tree where switches are known, else blocks. `only`: names of the nodes that Slurm has."""
    made = tree(views)
    lines = ["# Slurm's topology.conf(5), by fabricscope"]
    nodes, left = _nodes(cluster, made, only)
    if any(nodes.values()) and made.roots:
        lines += _comments(made, nodes, left)
        if cluster.domains:
            lines.append(
                f"# {len(cluster.domains)} NVLink domains can be blocks of a topology of their own: topology.yaml"
            )
        for level, name, hosts, below in _levels(made, nodes):
            lines.append(f"SwitchName={name} " + (f"Nodes={_folded(hosts)}" if hosts else f"Switches={_folded(below)}"))
            if level.about and level.about != name:
                lines[-1] += f"  # {comment(level.about)}"
    else:
        blocks = _blocks(cluster.domains, nodes)
        if not blocks:
            raise Nothing("no host is known to hang on a switch, or to share an NVLink domain")
        lines += [f"# TopologyPlugin=topology/block: {len(blocks)} NVLink domains (Slurm >= 23.11)"]
        lines += [f"BlockName={name} Nodes={_folded(hosts)}" for name, hosts in blocks]
        lines.append(f"BlockSizes={min(len(hosts) for _, hosts in blocks)}")
    return "\n".join(lines) + "\n"


def yaml(cluster: FabricGraph, views: list[View], only: Collection[str] | None = None) -> str:
    """topology.yaml: the tree, and the blocks of NVLink domains.

    Blocks are the default where every node of the tree is in one: Slurm says of the others that blocks lack them.
    """
    made = tree(views)
    nodes, left = _nodes(cluster, made, only)
    blocks = _blocks(cluster.domains, nodes)
    levels = list(_levels(made, nodes))
    if not blocks and not levels:
        raise Nothing("no host is known to hang on a switch, or to share an NVLink domain")
    lines = ["# Slurm's topology.yaml(5), by fabricscope; Slurm >= 25.05 reads it instead of topology.conf"]
    lines += _comments(made, nodes, left) if levels else []
    lines.append("---")
    in_blocks = {host for _, hosts in blocks for host in hosts}
    of_blocks = bool(blocks) and all(host in in_blocks for _, _, hosts, _ in levels for host in hosts)
    if blocks:
        lines += ["- topology: nvlink", f"  cluster_default: {_bool(of_blocks)}", "  block:", "    block_sizes:"]
        lines.append(f"      - {min(len(hosts) for _, hosts in blocks)}")
        lines.append("    blocks:")
        for name, hosts in blocks:
            lines += [f"      - block: {yaml_text(name)}", f"        nodes: {yaml_text(_folded(hosts))}"]
    if levels:
        lines += [
            "- topology: fabric",
            f"  cluster_default: {_bool(not of_blocks)}",
            "  tree:",
            "    switches:",
        ]
        for _, name, hosts, below in levels:
            lines.append(f"      - switch: {yaml_text(name)}")
            lines.append(
                f"        nodes: {yaml_text(_folded(hosts))}"
                if hosts
                else f"        children: {yaml_text(_folded(below))}"
            )
    return "\n".join(lines) + "\n"


def _nodes(cluster: FabricGraph, made: Tree, only: Collection[str] | None) -> tuple[dict[str, str], int]:
    """Slurm's names of the hosts it can have, and how many hosts were left out."""
    hosts = {host for level in walk(made.roots) for host in level.nodes}
    hosts |= {host for domain in cluster.domains for host in domain.hosts}
    names = node_names(sorted(hosts))
    kept = {host: name for host, name in names.items() if name and (only is None or name in only or host in only)}
    return kept, len(hosts) - len(kept)


def _comments(made: Tree, nodes: dict[str, str], left: int) -> Iterator[str]:
    if any("leaves:" in level.about for level in walk(made.roots)):
        yield "# A node hangs on several leaves, a leaf a rail. A tree has one parent a node: a switch here is a unit,"
        yield "# the nodes that share their leaves."
    for host, unit in sorted(made.placed.items()):
        if host in nodes:
            yield f"# {nodes[host]} is in no unit: its cables are spread over several; it stands with {comment(unit)}"
    if left:
        yield f"# {left} hosts are left out: their names are none of Slurm's nodes"
    if len(made.roots) > 1:
        yield "# Several trees: no cable is known that joins them"


def _levels(made: Tree, nodes: dict[str, str]) -> Iterator[tuple[Level, str, list[str], list[str]]]:
    """Switches that have a node below them: name, its nodes, names of the switches below."""
    kept: list[tuple[Level, list[str], list[Level]]] = []
    alive: set[str] = set()
    for level in walk(made.roots):
        hosts = [nodes[host] for host in level.nodes if host in nodes]
        below = [each for each in level.below if each.name in alive]
        if hosts or below:
            alive.add(level.name)
            kept.append((level, hosts, below))
    names = unique((level.name for level, _, _ in kept), taken=nodes.values())
    for level, hosts, below in kept:
        yield level, names[level.name], hosts, [names[each.name] for each in below]


def _blocks(domains: tuple[Domain, ...], nodes: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Name and nodes of each NVLink domain, each node once."""
    found: list[tuple[str, list[str]]] = []
    seen: set[str] = set()
    for number, domain in enumerate(sorted(domains, key=lambda each: each.hosts), 1):
        hosts = [nodes[host] for host in domain.hosts if host in nodes and host not in seen]
        seen.update(domain.hosts)
        if hosts:
            found.append((f"nvlink-{number:03d}", hosts))
    return found


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _folded(names: list[str]) -> str:
    return fold(names, suffix=False)
