"""The same LID twice in one InfiniBand subnet. Subnets number again, so it must first be known what is one subnet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Pending, Query, Row, identifiers, lookup, matching, query, statement
from agent.fleet.questions.baseline import CLASS
from agent.fleet.table import INT, TEXT

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


def find_shared_lids(tables: Tables, begun: Pending) -> tuple[list[Shared], list[str]]:
    """LIDs that ports of several nodes have, and what could not be judged. `begun`: of the query SUBNETS."""
    unclear: list[dict[str, Any]] | None = None  # subnets that turned out to be several; None: all
    shared_lids: list[Shared] = []
    for level, level_queries in zip(_LEVELS, SUBNET_LEVELS, strict=True):
        rows = _select_level(level, begun() if unclear is None else tables.rows(level_queries.sums), unclear)
        if any(_is_several(*counts) for _, counts, _ in rows):  # perhaps of ports that one node has
            rows = _select_level(level, tables.rows(level_queries.exact), unclear)
        clear = [(*key, lid) for key, counts, same in rows if not _is_several(*counts) for lid in same]
        shared_lids += _find_shared(level, tables.fetch_by_keys(level_queries.ports, clear))
        unclear = [dict(zip(level, key, strict=True)) for key, counts, _ in rows if _is_several(*counts)]
        if not unclear:
            return shared_lids, []
    return shared_lids, [
        f"LIDs: nearly every one is on several nodes in the subnet of {_describe_subnet(net)}: these are several "
        "subnets, not judged (ingest each fabric with a --cluster of its own)"
        for net in unclear or []
    ]


def _select_level(
    level: tuple[str, ...], rows: list[Row], wide: list[dict[str, Any]] | None
) -> list[tuple[Row, tuple[int, int], list[int]]]:
    """Of subnets within those: their key, their ports and how many of them have a LID twice, and these LIDs."""
    rows_of_level = []
    for *key, total, twice, same in sorted(rows, key=str):  # notes are in this order
        named = dict(zip(level, key, strict=True))
        if wide is None or any(wide_key.items() <= named.items() for wide_key in wide):
            rows_of_level.append((tuple(key), (total, twice), same or []))
    return rows_of_level


def _is_several(total: int, twice: int) -> bool:
    """Whether so many LIDs are there twice that these are several subnets."""
    return twice > (_FEW_OF_MANY if total > _SURE else _FEW) * total and twice > 2


class SubnetQueries(NamedTuple):
    """Queries of a level."""

    sums: Query
    exact: Query  # twice as dear
    ports: LookupQuery


def _make_subnet_queries(level: tuple[str, ...]) -> SubnetQueries:
    keys = {name: INT if name in ("sm_lid", "rail", "lid") else TEXT for name in (*level, "lid")}
    parts = {"infiniband_ports": statement("duplicates", "infiniband_ports"), "level": identifiers(level, "thing")}
    quick, exact = (
        query("duplicates", "subnets", shared=statement("duplicates", shared), **parts)
        for shared in ("on_several_ports", "on_several_nodes")
    )
    return SubnetQueries(quick, exact, lookup(keys, "duplicates", "ports_of_lids", matching=matching(keys), **parts))


SUBNET_LEVELS = [_make_subnet_queries(level) for level in _LEVELS]
SUBNETS = SUBNET_LEVELS[0].sums


def _find_shared(level: tuple[str, ...], ports: list[Row]) -> Iterator[Shared]:
    """Ports that have their LID in common with another node's. `ports`: level, LID, node, label."""
    holders: dict[Row, list[tuple[str, str | None]]] = {}
    for *key, node, label in ports:
        holders.setdefault(tuple(key), []).append((node, label))
    for (*subnet, lid), holder in holders.items():
        if len({node for node, _ in holder}) > 1:
            yield _describe_subnet(dict(zip(level, subnet, strict=True))), lid, holder


def _describe_subnet(subnet: dict[str, Any]) -> str:
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
