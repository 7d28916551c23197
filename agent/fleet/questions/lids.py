"""The same LID twice in one InfiniBand subnet. Subnets number anew, so it must first be known what is one subnet."""

from __future__ import annotations

from typing import Any

from ibis.expr import types as ir

from agent.fleet.engines.engine import Tables
from agent.fleet.questions.classes import CLASS

_UNICAST = 0xC000  # from here on: multicast and the permissive LID
_FEW = 0.2  # share of ports whose LID is twice, above which these are several subnets
_SURE = 100  # ports from which on a smaller share is asked for
_FEW_OF_MANY = 0.02

# What may make a subnet, from the widest to the narrowest: where a wide one has nearly every LID twice, it is several
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("cluster", "subnet", "sm_lid"),
    ("cluster", "subnet", "sm_lid", CLASS),
    ("cluster", "subnet", "sm_lid", CLASS, "rail"),
)
Shared = tuple[str, int, list[tuple[str, str | None]]]  # in words which subnet, LID, its ports


def lids(tables: Tables) -> tuple[list[Shared], list[str]]:
    """LIDs that ports of several nodes have, and what could not be judged."""
    ports = _ports(tables)
    asked: list[dict[str, Any]] | None = None  # subnets that turned out to be several; None: all
    found: list[Shared] = []
    for level in _LEVELS:
        totals = {row[:-1]: row[-1] for row in tables.rows(ports.group_by(level).agg(ports=ports.count()))}
        grouped = ports.group_by([*level, "lid"]).agg(ports=ports.count(), low=ports.node.min(), high=ports.node.max())
        twice = grouped.filter(grouped.low < grouped.high)
        unclear: list[dict[str, Any]] = []
        sums = twice.group_by(level).agg(ports=twice.ports.sum())
        for *key, count in tables.rows(sums):
            named = dict(zip(level, key, strict=True))
            if asked is not None and not any(wide.items() <= named.items() for wide in asked):
                continue
            total = totals[tuple(key)]
            if count > (_FEW_OF_MANY if total > _SURE else _FEW) * total and count > 2:
                unclear.append(named)
            else:
                found += _shared(tables, ports, named)
        asked = unclear
        if not asked:
            return found, []
    return found, [
        f"LIDs: nearly every one stands on several nodes in the subnet of {_told(each)}: these are several subnets, "
        "not judged (ingest each fabric with a --cluster of its own)"
        for each in asked or []
    ]


def _ports(tables: Tables) -> ir.Table:
    port, nic = tables.latest("port"), tables.latest("nic")
    host = tables.latest("host").select("node", "cluster", CLASS)
    used = port.filter(
        (port.link_layer == "InfiniBand") & (port.lid > 0) & (port.lid < _UNICAST) & (port.sm_lid > 0)
    ).inner_join(host, "node")
    # a virtual function has the LID of its physical one, which another guest may have, too; what a board has within
    # itself (auxiliary) is no part of the fabric
    other = nic.filter(nic.virtual_function | (nic.role == "auxiliary")).select("node", "id")
    return used.anti_join(other, ["node", ("nic", "id")])


def _shared(tables: Tables, ports: ir.Table, subnet: dict[str, Any]) -> list[Shared]:
    chosen = ports
    for column, value in subnet.items():
        chosen = chosen.filter(chosen[column].isnull() if value is None else chosen[column] == value)
    grouped = chosen.group_by("lid").agg(low=chosen.node.min(), high=chosen.node.max())
    twice = grouped.filter(grouped.low < grouped.high).select("lid")
    holders: dict[int, list[tuple[str, str | None]]] = {}
    for lid, node, label in tables.rows(chosen.semi_join(twice, "lid").select("lid", "node", "label")):
        holders.setdefault(lid, []).append((node, label))
    return [(_told(subnet), lid, each) for lid, each in holders.items()]


def _told(subnet: dict[str, Any]) -> str:
    parts = [f"subnet manager {subnet['sm_lid']}"]
    if subnet.get("subnet"):
        parts.append(f"prefix {subnet['subnet']}")
    if subnet.get("rail") is not None:
        parts.append(f"rail {subnet['rail']}")
    if subnet.get("cluster"):
        parts.append(f"cluster {subnet['cluster']}")
    if subnet.get(CLASS):
        parts.append(str(subnet[CLASS]))
    return ", ".join(parts)
