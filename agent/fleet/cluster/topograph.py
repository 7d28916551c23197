"""topograph's model of a cluster, and labels of its nodes.

Contract: NVIDIA topograph, pkg/models/model.go and tests/models: `switches` by name with the switches below them,
`blocks` with their switch and nodes; a switch has one parent, a node is in one block. Labels: those of Kubernetes, 63
characters of [A-Za-z0-9._-], the first and the last a letter or digit.
"""

from __future__ import annotations

import re
from hashlib import sha256

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.cluster.hierarchy import Level, build_tree, walk
from agent.fleet.cluster.slurm import clean, format_yaml_text, make_node_names, make_unique
from agent.fleet.hostlist import fold
from agent.model.labels import group_by_key
from agent.outputs.export.nfd import LABEL_LIMIT, NAMESPACE

_DOMAIN = "accelerator.topology.test/domain"  # what a model's blocks show their NVLink domain by


def format_model(cluster: FabricGraph, views: list[View]) -> str:
    """The model as YAML."""
    topology_tree = build_tree(views)
    hosts = [host for level in walk(topology_tree.roots) for host in level.nodes]
    every = [*hosts, *(host for domain in cluster.domains for host in domain.hosts)]
    nodes = {host: name for host, name in make_node_names(dict.fromkeys(every)).items() if name}
    names = make_unique(level.name for level in walk(topology_tree.roots))
    domain_of = {host: domain.id for domain in cluster.domains for host in domain.hosts}
    lines = [
        "# A model for topograph's simulation, by fabricscope",
        "switches:" if topology_tree.roots else "switches: {}",
    ]
    for level in walk(topology_tree.roots):
        if level.below:
            lines += [f"  {format_yaml_text(names[level.name])}:", "    switches:"]
            lines += [f"    - {format_yaml_text(names[lower.name])}" for lower in level.below]
        else:
            lines.append(f"  {format_yaml_text(names[level.name])}: {{}}")
    blocks: list[str] = []
    for level in walk(topology_tree.roots):
        by_domain = group_by_key((domain_of.get(host, ""), nodes[host]) for host in level.nodes if host in nodes)
        for domain, own in sorted(by_domain.items()):
            blocks += _format_block(names[level.name], own, domain)
    placed = set(hosts)
    for domain_ in cluster.domains:
        own = [nodes[host] for host in domain_.hosts if host in nodes and host not in placed]
        placed |= set(domain_.hosts)
        if own:
            blocks += _format_block("", own, domain_.id)
    lines += ["blocks:", *blocks] if blocks else ["blocks: []"]
    return "\n".join(lines) + "\n"


def format_labels(cluster: FabricGraph, views: list[View]) -> str:
    """One line per node: its name, and labels by blanks, as `kubectl label node` takes them."""
    topology_tree = build_tree(views)
    above: dict[str, list[str]] = {}
    for root in topology_tree.roots:
        _add_tiers(root, [], above)
    domains = {host: domain.id for domain in cluster.domains for host in domain.hosts}
    hosts = list(dict.fromkeys([*above, *domains]))
    nodes = make_node_names(hosts)
    lines = []
    for host in hosts:
        name = nodes[host]
        if name is None:
            continue
        node_labels = [
            f"{NAMESPACE}/fabric-tier-{tier}={_format_value(switch)}"
            for tier, switch in enumerate(above.get(host, ()), 1)
        ]
        if host in domains:
            node_labels.append(f"{NAMESPACE}/nvlink-domain={_format_value(domains[host])}")
        lines.append(" ".join([name, *node_labels]))
    return "\n".join(lines) + "\n" if lines else ""


def _add_tiers(level: Level, over: list[str], above: dict[str, list[str]]) -> None:
    for host in level.nodes:
        above[host] = [level.name, *over]
    for lower in level.below:
        _add_tiers(lower, [level.name, *over], above)


def _format_block(switch: str, own: list[str], domain: str) -> list[str]:
    first = f"- switch: {format_yaml_text(switch)}" if switch else "- nodes:"
    lines = [first, *(["  nodes:"] if switch else [])]
    lines += [
        f"  - {format_yaml_text(part)}" for part in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", fold(own, suffix=False))
    ]
    if domain:
        lines += ["  annotations:", f"    {_DOMAIN}: {format_yaml_text(domain)}"]
    return lines


def _format_value(text: str) -> str:
    """A label's value; a longer name keeps its start and ends in a digest, so that two stay two."""
    fit = re.sub(r"[^A-Za-z0-9]+$", "", clean(text))
    if len(text) <= LABEL_LIMIT:
        return fit
    return f"{fit[: LABEL_LIMIT - 17]}-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
