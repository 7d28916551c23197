"""topograph's model of a cluster, and labels of its nodes.

Contract: NVIDIA topograph, pkg/models/model.go and tests/models: `switches` by name with the switches below them,
`blocks` with their switch and nodes; a switch has one parent, a node is in one block. Labels: those of Kubernetes, 63
characters of [A-Za-z0-9._-], the first and the last a letter or digit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from hashlib import sha256

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.cluster.hierarchy import Level, tree, walk
from agent.fleet.cluster.scheduler_names import clean, node_names, unique, yaml_text
from agent.fleet.hostlist import fold
from agent.outputs.export.nfd import LABEL_LIMIT, NAMESPACE

_DOMAIN = "accelerator.topology.test/domain"  # what a model's blocks tell their NVLink domain by


def model(cluster: FabricGraph, views: list[View]) -> str:
    """The model as YAML."""
    made = tree(views)
    hosts = [host for level in walk(made.roots) for host in level.nodes]
    every = [*hosts, *(host for domain in cluster.domains for host in domain.hosts)]
    nodes = {host: name for host, name in node_names(dict.fromkeys(every)).items() if name}
    names = unique(level.name for level in walk(made.roots))
    domain_of = {host: domain.id for domain in cluster.domains for host in domain.hosts}
    lines = ["# A model for topograph's simulation, by fabricscope", "switches:" if made.roots else "switches: {}"]
    for level in walk(made.roots):
        if level.below:
            lines += [f"  {yaml_text(names[level.name])}:", "    switches:"]
            lines += [f"    - {yaml_text(names[each.name])}" for each in level.below]
        else:
            lines.append(f"  {yaml_text(names[level.name])}: {{}}")
    blocks: list[str] = []
    for level in walk(made.roots):
        by_domain: defaultdict[str, list[str]] = defaultdict(list)
        for host in level.nodes:
            if host in nodes:
                by_domain[domain_of.get(host, "")].append(nodes[host])
        for domain, own in sorted(by_domain.items()):
            blocks += _block(names[level.name], own, domain)
    placed = set(hosts)
    for domain_ in cluster.domains:
        own = [nodes[host] for host in domain_.hosts if host in nodes and host not in placed]
        placed |= set(domain_.hosts)
        if own:
            blocks += _block("", own, domain_.id)
    lines += ["blocks:", *blocks] if blocks else ["blocks: []"]
    return "\n".join(lines) + "\n"


def labels(cluster: FabricGraph, views: list[View]) -> str:
    """A line a node: its name, and labels by blanks, as `kubectl label node` takes them."""
    made = tree(views)
    above: dict[str, list[str]] = {}
    for root in made.roots:
        _tiers(root, [], above)
    domains = {host: domain.id for domain in cluster.domains for host in domain.hosts}
    hosts = list(dict.fromkeys([*above, *domains]))
    nodes = node_names(hosts)
    lines = []
    for host in hosts:
        name = nodes[host]
        if name is None:
            continue
        said = [f"{NAMESPACE}/fabric-tier-{tier}={_value(each)}" for tier, each in enumerate(above.get(host, ()), 1)]
        if host in domains:
            said.append(f"{NAMESPACE}/nvlink-domain={_value(domains[host])}")
        lines.append(" ".join([name, *said]))
    return "\n".join(lines) + "\n" if lines else ""


def _tiers(level: Level, over: list[str], above: dict[str, list[str]]) -> None:
    for host in level.nodes:
        above[host] = [level.name, *over]
    for each in level.below:
        _tiers(each, [level.name, *over], above)


def _block(switch: str, own: list[str], domain: str) -> list[str]:
    first = f"- switch: {yaml_text(switch)}" if switch else "- nodes:"
    lines = [first, *(["  nodes:"] if switch else [])]
    lines += [f"  - {yaml_text(each)}" for each in re.split(r",(?![^\[]*\])", fold(own, suffix=False))]
    if domain:
        lines += ["  annotations:", f"    {_DOMAIN}: {yaml_text(domain)}"]
    return lines


def _value(text: str) -> str:
    """A label's value; a longer name keeps its start and ends in a digest, so that two stay two."""
    fit = re.sub(r"[^A-Za-z0-9]+$", "", clean(text))
    if len(text) <= LABEL_LIMIT:
        return fit
    return f"{fit[: LABEL_LIMIT - 17]}-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
