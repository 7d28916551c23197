"""The same LID twice in one InfiniBand subnet. Subnets number anew, so it must first be known what is one subnet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from agent.fleet.engines.engine import Tables
from agent.fleet.questions.classes import CLASS

if TYPE_CHECKING:
    from ibis.expr import types as ir

_UNICAST = 0xC000  # from here on: multicast and the permissive LID
_FEW = 0.2  # share of ports whose LID is twice, above which these are several subnets
_SURE = 100  # ports from which on a smaller share is asked for
_FEW_OF_MANY = 0.02
_ASKED = 200  # subnets, or LIDs, in one query

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
        clear: list[dict[str, Any]] = []
        unclear: list[dict[str, Any]] = []
        for *key, total, count in tables.rows(_sums(ports, level)):
            named = dict(zip(level, key, strict=True))
            if not count or (asked is not None and not any(wide.items() <= named.items() for wide in asked)):
                continue
            several = count > (_FEW_OF_MANY if total > _SURE else _FEW) * total and count > 2
            (unclear if several else clear).append(named)
        for start in range(0, len(clear), _ASKED):
            found += _shared(tables, ports, level, clear[start : start + _ASKED])
        asked = unclear
        if not asked:
            return found, []
    return found, [
        f"LIDs: nearly every one stands on several nodes in the subnet of {_told(each)}: these are several subnets, "
        "not judged (ingest each fabric with a --cluster of its own)"
        for each in asked or []
    ]


def _ports(tables: Tables) -> ir.Table:
    port, host = tables.latest("port"), tables.latest("host")
    # a virtual function has the LID of its physical one, which another guest may have, too; what a board has within
    # itself (auxiliary) is no part of the fabric
    used = port.filter(
        (port.link_layer == "InfiniBand") & (port.lid > 0) & (port.lid < _UNICAST) & (port.sm_lid > 0),
        ~port.virtual_function.fill_null(False) & (port.role.fill_null("") != "auxiliary"),
    )
    named = host.filter(host.cluster.notnull()).select("node", "cluster")
    if tables.rows(named.limit(1)):
        return used.left_join(named, "node").drop("node_right")
    import ibis

    return used.mutate(cluster=ibis.null("string"))


def _sums(ports: ir.Table, level: tuple[str, ...]) -> ir.Table:
    """Of every subnet: its ports, and those of them whose LID stands on several nodes."""
    same = ports.group_by([*level, "lid"]).agg(ports=ports.count(), low=ports.node.min(), high=ports.node.max())
    twice = (same.low < same.high).ifelse(same.ports, 0)
    return same.group_by(level).agg(ports=same.ports.sum(), twice=twice.sum())


def _shared(tables: Tables, ports: ir.Table, level: tuple[str, ...], subnets: list[dict[str, Any]]) -> Iterator[Shared]:
    """The ports of every LID that is twice in one of these subnets."""
    within = reduce(or_, [reduce(and_, [_is(ports, *each) for each in subnet.items()]) for subnet in subnets])
    chosen = ports.filter(within)
    grouped = chosen.group_by([*level, "lid"]).agg(low=chosen.node.min(), high=chosen.node.max())
    twice = {row[:-2] for row in tables.rows(grouped.filter(grouped.low < grouped.high))}
    if not twice:
        return
    numbers = sorted({row[-1] for row in twice})
    held = chosen.filter(chosen.lid.isin(numbers)) if len(numbers) <= _ASKED else chosen
    holders: dict[tuple[Any, ...], list[tuple[str, str | None]]] = {}
    for *key, node, label in tables.rows(held.select([*level, "lid", "node", "label"])):
        if tuple(key) in twice:
            holders.setdefault(tuple(key), []).append((node, label))
    for (*subnet, lid), each in holders.items():
        yield _told(dict(zip(level, subnet, strict=True))), lid, each


def _is(ports: ir.Table, column: str, value: Any) -> ir.BooleanValue:
    return ports[column].isnull() if value is None else ports[column] == value


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
