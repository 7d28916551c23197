"""What breaks a fabric: each with its ports and hosts, and the majority that it is held against.

A file a subject; what is found by one is not told again by another.
"""

from __future__ import annotations

from agent.fleet.cluster.breaks.domains import domain_breaks
from agent.fleet.cluster.breaks.found import KINDS, Break
from agent.fleet.cluster.breaks.outside import loose_hosts, shared_ports, unseen_ports
from agent.fleet.cluster.breaks.paces import uneven_paces
from agent.fleet.cluster.breaks.rails import missing_rails, moved_rails, short_units
from agent.fleet.cluster.breaks.uplinks import uplinks
from agent.fleet.cluster.graph import Cluster
from agent.fleet.cluster.view import View

__all__ = ["KINDS", "Break", "breaks"]


def breaks(cluster: Cluster, views: list[View]) -> list[Break]:
    """All that is wrong, in the order of KINDS."""
    found: list[Break] = []
    for view in views:
        moved = moved_rails(view)
        told = {host for each in moved for host in each.hosts} | cluster.displaced
        found += moved
        found += missing_rails(view, told)
        found += short_units(view)
        found += loose_hosts(view)
        found += uplinks(view)
        found += uneven_paces(view)
    found += unseen_ports(cluster)
    found += shared_ports(cluster)
    found += domain_breaks(cluster)
    order = list(KINDS)
    return sorted(found, key=lambda each: order.index(each.kind))
