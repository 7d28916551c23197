"""What `fleet duplicates` queries: values of one node alone, by kind, machines that share a node name, and LIDs.

Subnets number LIDs again, so it must first be known what is one subnet.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import (
    LookupQuery,
    Pending,
    Query,
    Row,
    identifiers,
    lookup,
    matching,
    query,
    quote,
    statement,
)
from agent.fleet.known_duplicates import placeholder
from agent.fleet.questions.baseline import CLASS
from agent.fleet.questions.options import NEWEST, Options, subtract_time
from agent.fleet.table import INT, TEXT
from agent.model.labels import group_by_key

CHANGING = query("duplicates", "changing_names")
MACHINES = lookup({"node": TEXT}, "duplicates", "machines_of_names", matching=matching(("node",), null_safe=False))


def find_shared_names(tables: Tables, changing: Pending, options: Options) -> dict[str, list[str]]:
    """Node names -> serial numbers (else machine ids) of the machines that take turns under each.

    A machine that took the place of another is no such case: it stays. Neither is one that was given a name of its own
    since: the last turn is then older than what makes a report stale. `changing`: of the query CHANGING.
    """
    names = changing()
    if not names:
        return {}
    ((_, newest),) = tables.whole.rows(NEWEST)
    since = subtract_time(newest, timedelta(seconds=options.stale_after_seconds))
    states: dict[str, list[tuple[datetime, str]]] = {}
    for node, observed_at, serial, machine_id in tables.fetch_by_keys(MACHINES, names):
        machine = machine_id if serial is None else serial
        if machine is not None and not placeholder(machine):
            states.setdefault(node, []).append((observed_at, machine))
    return {node: sorted({name for _, name in turns}) for node, turns in states.items() if _take_turns(turns, since)}


def _take_turns(states: list[tuple[datetime, str]], since: datetime) -> bool:
    """Whether a machine is back after another had its name, and the last change of machines is recent."""
    states = sorted(states)
    changes = [(at, machine) for (_, before), (at, machine) in pairwise(states) if machine != before]
    returned = len(changes) + 1 > len({machine for _, machine in states})
    return returned and changes[-1][0] > since


MOST = 5000  # nodes that have a number in common with another: beyond, values are asked for, kind by kind


class Kind(NamedTuple):
    """A column whose values are one node's."""

    what: str
    table: str
    column: str
    label: str | None
    within: str | None = None  # column of the same table that makes a value unique only together with it
    more: str | None = None  # column that shows known duplicates
    why: str | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that a value is reported by."""
        return [self.column, *([self.within] if self.within else [])]


KINDS = (
    Kind("serial number", "host", "serial", None, within="vendor"),
    Kind("machine-id", "host", "machine_id", None, why="cloned image: give each its own (systemd-machine-id-setup)"),
    Kind("GPU UUID", "gpu", "uuid", "label"),
    Kind("GPU serial number", "gpu", "serial", "label"),
    Kind("node GUID", "nic", "node_guid", "label"),
    Kind("port GUID", "port", "port_guid", "label"),
    Kind("MAC address", "netdev", "mac", "label", more="driver"),
    Kind("IP address", "address", "address", "label"),
)


class KindQueries(NamedTuple):
    """Queries of a kind."""

    kind: Kind
    shared: Query  # all rows whose value is on several nodes: node, keys, label, what shows known duplicates
    of_nodes: LookupQuery  # of nodes, the same columns


def list_columns(kind: Kind) -> list[str]:
    """Of the rows of a kind: the node, what it is reported by, its label, what shows known duplicates."""
    return ["node", *kind.keys, *(column for column in (kind.label, kind.more) if column)]


def _make_kind_queries(kind: Kind) -> KindQueries:
    is_address = kind.table == "address"
    value = statement("duplicates", "bare_address") if is_address else quote(kind.column, "thing")
    known = "known_address" if is_address else "any_known"
    parts = {
        "table": quote(kind.table),
        "columns": identifiers(list_columns(kind), "thing"),
        "keys": ", ".join([value, *([quote(kind.within, "thing")] if kind.within else [])]),
        "value": value,
        "known": statement("duplicates", known, value=value),
    }
    return KindQueries(
        kind,
        query("duplicates", "rows_of_shared_values", **parts),
        lookup({"node": TEXT}, "duplicates", "rows_of_nodes", matching=matching(("node",), null_safe=False), **parts),
    )


KIND_QUERIES = [_make_kind_queries(kind) for kind in KINDS]
NODES = query("duplicates", "nodes")
# numbers that several nodes have, once for each further one; not all, where there are more than MOST
NUMBERS = query("duplicates", "shared_numbers").bind(most=MOST + 1)
NUMBERED = lookup({"number": INT}, "duplicates", "nodes_of_numbers")
ADDRESSES = query("duplicates", "address_count")


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
    some = [_describe_subnet(net) for net in unclear or []]
    where = f"the subnet of {some[0]}" if len(some) == 1 else f"{len(some)} subnets, such as that of {some[0]}"
    return shared_lids, [
        f"LIDs in {where}: nearly every one is on several nodes, as in separate fabrics: not judged (ingest each "
        "fabric with a --cluster of its own)"
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
    for (*subnet, lid), holder in group_by_key((tuple(key), (node, label)) for *key, node, label in ports).items():
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
