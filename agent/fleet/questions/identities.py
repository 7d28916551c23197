"""What `fleet duplicates` queries: values of one node alone, by kind, and machines that share a node name."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import (
    WANTED,
    LookupQuery,
    Pending,
    Query,
    identifiers,
    key_types,
    lookup,
    matching,
    query,
    quote,
    statement,
)
from agent.fleet.known_duplicates import placeholder
from agent.fleet.questions.options import NEWEST, Options, subtract_time
from agent.fleet.table import INT, TEXT

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
    counts: Query  # values that are in several rows, and in how many
    rows: LookupQuery  # of values: node, keys, label, what shows known duplicates
    shared: Query  # all rows whose value is on several nodes
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
        query("duplicates", "repeated_values", **parts),
        _query_rows(kind, kind.column, parts, value),
        query("duplicates", "rows_of_shared_values", **parts),
        _query_rows(kind, "node", parts, quote("node", "thing")),
    )


def _query_rows(kind: Kind, key: str, parts: dict[str, str], value: str) -> LookupQuery:
    return lookup(
        key_types(kind.table, (key,)),
        "duplicates",
        "rows_of_values",
        matching=f"{value} = {quote(key, WANTED)}",
        **parts,
    )


KIND_QUERIES = [_make_kind_queries(kind) for kind in KINDS]
NODES = query("duplicates", "nodes")
# numbers that several nodes have, once for each further one; not all, where there are more than MOST
NUMBERS = query("duplicates", "shared_numbers").bind(most=MOST + 1)
NUMBERED = lookup({"number": INT}, "duplicates", "nodes_of_numbers")
ADDRESSES = query("duplicates", "address_count")
ON_NODES = lookup(
    {"address": TEXT}, "duplicates", "nodes_of_addresses", bare_address=statement("duplicates", "bare_address")
)
