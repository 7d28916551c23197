"""Faults of a fabric's cabling, one module per subject, each with its ports, hosts and the majority it differs from.

What one module reports no other reports again. A cabling plan is not needed here: that is in cabling_plan.py.
"""

from __future__ import annotations

from agent.fleet.cluster.cabling_faults.disagreements import loose_hosts, shared_ports, unseen_ports
from agent.fleet.cluster.cabling_faults.domains import domain_breaks
from agent.fleet.cluster.cabling_faults.fault import KINDS, Break
from agent.fleet.cluster.cabling_faults.rails import missing_rails, moved_rails, short_units
from agent.fleet.cluster.cabling_faults.slow_links import uneven_paces
from agent.fleet.cluster.cabling_faults.uplinks import uplinks
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph

__all__ = ["KINDS", "Break", "breaks"]


def breaks(cluster: FabricGraph, views: list[View]) -> list[Break]:
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
