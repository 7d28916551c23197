"""The same LID twice in one InfiniBand subnet. Subnets number anew, so it must first be known what is one subnet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.fleet.engines.engine import Asked, Tables
from agent.fleet.engines.query import Choice, Query, Row, Source, Those
from agent.fleet.questions.classes import CLASS, CLUSTERS

if TYPE_CHECKING:
    from ibis.expr import types as ir

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


def lids(tables: Tables, begun: Asked) -> tuple[list[Shared], list[str]]:
    """LIDs that ports of several nodes have, and what could not be judged. `begun`: of the query SUBNETS."""
    asked: list[dict[str, Any]] | None = None  # subnets that turned out to be several; None: all
    found: list[Shared] = []
    for level, (sums, ports) in zip(_LEVELS, ASKED, strict=True):
        clear: list[Row] = []
        unclear: list[dict[str, Any]] = []
        for *key, total, count, lids in (begun if asked is None else tables.begun(sums))():
            named = dict(zip(level, key, strict=True))
            if not count or (asked is not None and not any(wide.items() <= named.items() for wide in asked)):
                continue
            if count > (_FEW_OF_MANY if total > _SURE else _FEW) * total and count > 2:
                unclear.append(named)
            else:
                clear += [(*key, lid) for lid in lids]
        found += _shared(tables, level, ports, clear)
        asked = unclear
        if not asked:
            return found, []
    return found, [
        f"LIDs: nearly every one stands on several nodes in the subnet of {_told(each)}: these are several subnets, "
        "not judged (ingest each fabric with a --cluster of its own)"
        for each in asked or []
    ]


def _ports(tables: Source) -> ir.Table:
    port = tables.latest("port")
    # a virtual function has the LID of its physical one, which another guest may have, too; what a board has within
    # itself (auxiliary) is no part of the fabric
    used = port.filter(
        (port.link_layer == "InfiniBand") & (port.lid > 0) & (port.lid < _UNICAST) & (port.sm_lid > 0),
        ~port.virtual_function.fill_null(False) & (port.role.fill_null("") != "auxiliary"),
    )
    return used.left_join(CLUSTERS.make(tables), "node").drop("node_right")


def _sums(tables: Source, level: tuple[str, ...]) -> ir.Table:
    """Of every subnet: its ports, those of them whose LID stands on several nodes, and these LIDs."""
    ports = _ports(tables)
    same = ports.group_by([*level, "lid"]).agg(ports=ports.count(), low=ports.node.min(), high=ports.node.max())
    twice = same.low < same.high
    return same.group_by(level).agg(
        ports=same.ports.sum(), twice=twice.ifelse(same.ports, 0).sum(), lids=same.lid.collect(where=twice)
    )


def _held(tables: Source, those: Those, level: tuple[str, ...]) -> ir.Table:
    return those(_ports(tables)).select([*level, "lid", "node", "label"])


def _asked(level: tuple[str, ...]) -> tuple[Query, Choice]:
    name = f"lids: {' '.join(level)}"
    ports = Choice(f"{name}, ports", (*level, "lid"), partial(_held, level=level))
    return Query(name, partial(_sums, level=level)), ports


ASKED = [_asked(level) for level in _LEVELS]
SUBNETS = ASKED[0][0]


def _shared(tables: Tables, level: tuple[str, ...], ports: Choice, twice: list[Row]) -> Iterator[Shared]:
    """The ports of every LID that is twice in its subnet."""
    holders: dict[Row, list[tuple[str, str | None]]] = {}
    for *key, node, label in tables.chosen(ports, twice):
        holders.setdefault(tuple(key), []).append((node, label))
    for (*subnet, lid), each in holders.items():
        yield _told(dict(zip(level, subnet, strict=True))), lid, each


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
