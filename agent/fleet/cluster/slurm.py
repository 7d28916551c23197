"""topology.conf and topology.yaml of Slurm, and names that Slurm, Kubernetes and topograph take.

Contract: Slurm's topology.conf(5), topology.yaml(5) (25.05). A switch's name has at most 64 characters; a tree gives
each node one parent; every block has at least as many nodes as the first of the block sizes states.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import Domain, FabricGraph
from agent.fleet.cluster.hierarchy import Level, Tree, build_tree, walk
from agent.fleet.hostlist import fold

LIMIT = 64  # of a switch's name: topology.conf(5)


def clean(name: str) -> str:
    """Letters, digits, "-", "_" and "."; at most LIMIT.

    >>> clean("LG28-08"), clean("B09 leaf [1]"), clean("..."), len(clean("x" * 99))
    ('LG28-08', 'B09-leaf-1', 'switch', 64)
    """
    fit = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:LIMIT].strip("-._")
    return fit or "switch"


def make_unique(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Each cleaned, none twice: the second of a name gets "-2".

    >>> make_unique(["a b", "a-b", "c"], taken=["c"])
    {'a b': 'a-b', 'a-b': 'a-b-2', 'c': 'c-2'}
    """
    used = set(taken)
    unique_names = {}
    for name in names:
        fit = chosen = clean(name)
        number = 2
        while chosen in used:
            tail = f"-{number}"
            chosen, number = fit[: LIMIT - len(tail)] + tail, number + 1
        used.add(chosen)
        unique_names[name] = chosen
    return unique_names


def make_node_names(hosts: Iterable[str]) -> dict[str, str | None]:
    """Hosts as Slurm calls its nodes: without a cluster's prefix and a domain; None where it would take no such name.

    Two hosts whose short names are the same keep their domains.

    >>> make_node_names(["gpu1.site.org", "east/gpu2", "a b"])
    {'gpu1.site.org': 'gpu1', 'east/gpu2': 'gpu2', 'a b': None}
    >>> make_node_names(["n1.east", "n1.west"])
    {'n1.east': 'n1.east', 'n1.west': 'n1.west'}
    """
    listed = list(hosts)
    short: dict[str, str] = {host: host.rsplit("/", 1)[-1].split(".")[0] for host in listed}
    count = Counter(short.values())
    names: dict[str, str | None] = {}
    for host in listed:
        name = short[host] if count[short[host]] == 1 else host.rsplit("/", 1)[-1]
        names[host] = name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", name) else None
    return names


def format_comment(text: str) -> str:
    """What a name may be in a comment: one line of plain letters.

    >>> format_comment("leaf\\n\\x1b[31m é")
    'leaf??[31m ?'
    """
    return re.sub(r"[^ -~]", "?", text)[:200]


def format_yaml_text(text: str) -> str:
    """A YAML scalar: plain where it can only be read as this text, else quoted.

    >>> [format_yaml_text(text) for text in ("gpu[001-018]", "on", "12", "1e3", "")]
    ['gpu[001-018]', '"on"', '"12"', '"1e3"', '""']
    """
    words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_./\[\],-]*", text) and text.lower() not in words:
        return text
    return '"' + re.sub(r"[^ -~]", "?", text).replace("\\", "\\\\").replace('"', '\\"') + '"'


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
