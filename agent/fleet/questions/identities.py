"""What `fleet duplicates` asks the engine for: values that are one node's alone, by kind, and all as numbers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from agent.fleet.engines.query import Choice, Query, Source, Those
from agent.fleet.innocent import NOWHERE_ELSE

if TYPE_CHECKING:
    from ibis.expr import types as ir


MOST = 5000  # nodes that have a number in common with another: beyond, values are asked for, kind by kind


class Kind(NamedTuple):
    """A column whose values are one node's."""

    what: str
    table: str
    column: str
    label: str | None
    within: str | None = None  # column of the same table that makes a value unique only together with it
    more: str | None = None  # column that tells innocents
    why: str | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that a value is told by."""
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


class Asked(NamedTuple):
    """Queries of a kind."""

    kind: Kind
    counts: Query  # values that stand in several rows, and in how many
    rows: Choice  # of values: node, keys, label, what tells innocents
    shared: Query  # all rows whose value is on several nodes
    of_nodes: Choice  # of nodes, the same columns


def _asked(kind: Kind) -> Asked:
    name = f"duplicates: {kind.what}"
    counts, rows, shared = (partial(each, kind=kind) for each in (_counts, _rows, _shared))
    return Asked(
        kind,
        Query(name, counts),
        Choice(f"{name}, rows", (kind.column,), rows),
        Query(f"{name}, all rows", shared),
        Choice(f"{name}, of nodes", ("node",), rows),
    )


def columns(kind: Kind) -> list[str]:
    """Of the rows of a kind: the node, what it is told by, its label, what tells innocents."""
    return ["node", *kind.keys, *(each for each in (kind.label, kind.more) if each)]


def _known(tables: Source, kind: Kind) -> ir.Table:
    column = tables.latest(kind.table)[kind.column]
    beginnings = NOWHERE_ELSE if kind.table == "address" else ()
    return tables.latest(kind.table).filter(column.notnull(), *(~column.startswith(each) for each in beginnings))


def _counts(tables: Source, kind: Kind) -> ir.Table:
    """Values that stand in several rows: found in half the time that the nodes of every value take."""
    known = _known(tables, kind)
    counted = known.group_by(kind.keys).agg(rows=known.count())
    return counted.filter(counted.rows > 1).select(kind.column, "rows")


def _rows(tables: Source, those: Those, kind: Kind) -> ir.Table:
    return those(tables.latest(kind.table)).select(columns(kind))


def _shared(tables: Source, kind: Kind) -> ir.Table:
    known = _known(tables, kind)
    grouped = known.group_by(kind.keys).agg(low=known.node.min(), high=known.node.max())
    shared = grouped.filter(grouped.low < grouped.high).select(kind.column)
    return tables.latest(kind.table).semi_join(shared, kind.column).select(columns(kind))


def _nodes(tables: Source, those: Those) -> ir.Table:
    found = those(tables.latest("address"))
    return found.group_by("address").agg(nodes=found.node.nunique())


def _all_nodes(tables: Source) -> ir.Table:
    """How many there are, and of how many all numbers are known."""
    host = tables.latest("host")
    return host.aggregate(nodes=host.count(), numbered=host.identities.count())


def _numbers(tables: Source) -> ir.Table:
    """Those that several nodes have, once for each further one; not all, where there are more than MOST.

    Sorting takes two thirds of what grouping does.
    """
    identity = tables.latest("identity")
    beside = identity.select("number", following=identity.number.lead().over(order_by=identity.number))
    return beside.filter(beside.number == beside.following).select("number").limit(MOST + 1)


def _numbered(tables: Source, those: Those) -> ir.Table:
    return those(tables.latest("identity")).select("node")


ASKED = [_asked(kind) for kind in KINDS]
NODES = Query("duplicates: nodes", _all_nodes)
NUMBERS = Query("duplicates: numbers", _numbers)
NUMBERED = Choice("duplicates: nodes of numbers", ("number",), _numbered)
ADDRESSES = Query("addresses", lambda tables: tables.latest("address").agg(total=tables.latest("address").count()))
ON_NODES = Choice("nodes of addresses", ("address",), _nodes)
