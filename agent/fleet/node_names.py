"""Nodes by the names that people call them: a node of the dataset, or the host name of one.

With --node-key machine-id or serial nodes are numbers, and lists of people and schedulers have host names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from agent.fleet.hostlist import fold


class AmbiguousName(ValueError):
    """Several nodes have that host name; the message lists them."""


class NodeNames:
    """What names stand for. `rows`: nodes and their host names."""

    def __init__(self, rows: Iterable[tuple[str, str | None]]) -> None:
        self._nodes: dict[str, set[str]] = defaultdict(set)  # the key of the dataset comes first
        self._hosts: dict[str, set[str]] = defaultdict(set)
        self._short_nodes: dict[str, set[str]] = defaultdict(set)
        self._short_hosts: dict[str, set[str]] = defaultdict(set)
        for node, hostname in rows:
            self._nodes[node].add(node)
            self._short_nodes[short_name(node)].add(node)
            if hostname:
                self._hosts[hostname].add(node)
                self._short_hosts[short_name(hostname)].add(node)

    def find(self, name: str) -> str | None:
        """The node of this name; none: there is no such. Raises AmbiguousName."""
        return _only(name, self._nodes.get(name) or self._hosts.get(name))

    def find_short(self, name: str) -> str | None:
        """The same, else the node of the name without a domain and a cluster's prefix. Raises AmbiguousName."""
        short = short_name(name)
        return self.find(name) or _only(name, self._short_nodes.get(short) or self._short_hosts.get(short))


def _only(name: str, nodes: set[str] | None) -> str | None:
    if nodes and len(nodes) > 1:
        raise AmbiguousName(f"{name!r:.80} is the name of {len(nodes):,} nodes: {fold(nodes)}")
    return next(iter(nodes)) if nodes else None


def short_name(name: str) -> str:
    """Without a cluster's prefix and a domain, in small letters.

    >>> short_name("east/GPU001.site.org"), short_name("gpu001")
    ('gpu001', 'gpu001')
    """
    return name.rsplit("/", 1)[-1].split(".")[0].lower()
