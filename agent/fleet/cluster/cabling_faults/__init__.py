"""Faults of a fabric's cabling, one module per subject, each with its ports, hosts and the majority it differs from.

What one module reports no other reports again. A cabling plan is not needed here: that is in cabling_plan.py.
"""

from __future__ import annotations

from agent.fleet.cluster.cabling_faults.domains import (
    find_domain_faults,
    find_loose_hosts,
    find_shared_ports,
    find_unseen_ports,
)
from agent.fleet.cluster.cabling_faults.exchanged_rails import find_exchanged_leaves, find_exchanged_rails
from agent.fleet.cluster.cabling_faults.fault import KINDS, CablingFault
from agent.fleet.cluster.cabling_faults.rails import find_missing_rails, find_moved_rails, find_short_units
from agent.fleet.cluster.cabling_faults.slow_links import find_uneven_rates
from agent.fleet.cluster.cabling_faults.uplinks import find_uplink_faults
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph

__all__ = ["KINDS", "CablingFault", "find_cabling_faults"]


def find_cabling_faults(cluster: FabricGraph, views: list[View]) -> list[CablingFault]:
    """All that is wrong, in the order of KINDS."""
    faults: list[CablingFault] = []
    for view in views:
        moved = find_moved_rails(view)
        explained = {host for fault in moved for host in fault.hosts} | cluster.displaced
        faults += moved
        faults += [*find_exchanged_rails(view), *find_exchanged_leaves(view)]
        faults += find_missing_rails(view, explained)
        faults += find_short_units(view)
        faults += find_loose_hosts(view)
        faults += find_uplink_faults(view)
        faults += find_uneven_rates(view)
    faults += find_unseen_ports(cluster)
    faults += find_shared_ports(cluster)
    faults += find_domain_faults(cluster)
    order = list(KINDS)
    return sorted(faults, key=lambda fault: order.index(fault.kind))
