"""Rows of an earlier moment beside those of now, of nodes that have changed since, and the columns that are compared.

Few rows are fetched and compared here; many are compared by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Query, Row, identifiers, lookup, query, quote
from agent.fleet.engines.schema import HISTORY
from agent.fleet.table import TEXT, TIME
from agent.fleet.tables import TABLES, Column

GONE, NEW, MOVED = "gone", "new", "moved"
BAGS = ("cmdline", "services", "settings")  # reported word by word


class DriftSubject(NamedTuple):
    """One kind of thing. `own`: columns whose values are each thing's own, so that nodes are folded over them."""

    one: str
    table: str
    key: tuple[str, ...]
    label: str | None
    own: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    of_device: bool = False  # the first column of its key is the id of a device that it is, or is part of
    identity: str | None = None  # column whose value stays with the device wherever it is


# reported by what they are made of
_COUNTED = (
    "hostname cluster profile hardware_class gpus rails nics verdict critical error warning info unknown_rules "
    "source schema_minor generator"
)
_FAR = frozenset(("neighbor_guid", "neighbor_name", "neighbor_port", "neighbor_system", "neighbor_chassis"))


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


SUBJECTS = (
    DriftSubject("host", "host", (), None, _set("machine_id serial"), _set(_COUNTED)),
    DriftSubject("GPU", "gpu", ("id",), "label", _set("uuid serial"), _set("index pci"), True, "uuid"),
    DriftSubject("NIC", "nic", ("id",), "label", _set("node_guid system_image_guid"), _set("rail"), True),
    DriftSubject("port", "port", ("nic", "port"), "label", _set("port_guid lid") | _FAR, _set("rail role"), True),
    DriftSubject("interface", "netdev", ("id",), "label", _set("mac module_serial") | _FAR, _set("rail nic"), True),
    DriftSubject("PCIe link", "link", ("id",), "id", left_out=_set("parent"), of_device=True),
    DriftSubject("link between GPUs", "nvlink", ("gpu", "link"), "gpu", _set("remote_id remote_link"), of_device=True),
    DriftSubject("PCI function", "pci", ("id",), "id", _set("serial"), _set("parent iommu_group"), True),
    DriftSubject("IP address", "address", ("netdev", "address"), "label", of_device=True),
    DriftSubject("switch", "switch", (), None, _set("name chassis")),
    DriftSubject("switch port", "switch_port", ("port",), "port", _FAR, _set("switch")),
    DriftSubject("hop", "hop", ("port", "far_node", "far_port"), "port", left_out=_set("switch")),
    DriftSubject("finding", "finding", ("rule", "subject", "fingerprint"), "rule", left_out=_set("label silenced")),
)


class _NoticedColumns(Protocol):
    @property
    def subject(self) -> DriftSubject: ...
    @property
    def what(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def device(self) -> str | None: ...


_N = TypeVar("_N", bound=_NoticedColumns)


def list_changed_columns(subject: DriftSubject) -> list[Column]:
    """Columns that are compared: neither the key, nor what moves by itself."""
    left_out = {"node", *subject.key, *subject.left_out} | ({subject.label} if subject.label else set())
    return [column for column in TABLES[subject.table].columns if not column.volatile and column.name not in left_out]


def join_devices(noticed: Iterable[_N]) -> list[_N]:
    """Without what follows from another: the parts of a device that came or went itself (port, link, address), and the
    role of a NIC where a GPU came or went, whose rail it was or is.
    """
    all_ = list(noticed)
    moved = {columns.node for columns in all_ if columns.what in (GONE, NEW) and columns.subject.table == "gpu"}
    order = {subject.table: place for place, subject in enumerate(SUBJECTS)}
    seen: dict[tuple[str, str, str], int] = {}
    for columns in all_:
        if columns.what in (GONE, NEW) and columns.device:
            key = (columns.node, columns.what, columns.device)
            seen[key] = min(seen.get(key, len(SUBJECTS)), order[columns.subject.table])
    return [
        columns
        for columns in all_
        if (
            columns.what not in (GONE, NEW)
            or not columns.device
            or seen[columns.node, columns.what, columns.device] == order[columns.subject.table]
        )
        and not (columns.what == "role" and columns.subject.table == "nic" and columns.node in moved)
    ]


_FEW = 2000  # tables of nodes that have changed
_Side = dict[Row, Row]


class Compared(NamedTuple):
    """A subject, when each node's rows of it changed last, and rows: node, then, now; null where there is none.

    Then and now: key, what may change, label.
    """

    subject: DriftSubject
    at: dict[str, datetime]
    rows: Callable[[], Iterable[Row]]


def compare_times(tables: Tables, since: datetime, recent: list[Row]) -> tuple[set[str], list[Compared]]:
    """Nodes that are new since, and the others' rows that are not the same. `recent`: rows of RECENT.

    A node that came since and was forgotten since is neither.
    """
    few = len(recent) <= _FEW
    moments = _add_before(tables, since, recent) if few else tables.rows(MOMENTS.bind(moment=since))
    new = {node for node, table, _, before in moments if table in ("host", "switch") and before is None}
    changed: dict[str, list[Row]] = {}
    for node, table, last, before in moments:
        if node not in new:
            changed.setdefault(table, []).append((node, last, before))
    compared = []
    for subject, rows_of, pairs in zip(SUBJECTS, ROWS_OF, PAIRS, strict=True):
        rows = changed.get(subject.table)
        if rows:
            at = {node: last for node, last, _ in rows}
            here = partial(_pair_rows, tables, subject, rows_of, rows)
            compared.append(Compared(subject, at, here if few else tables.submit(pairs.bind(moment=since))))
    return {node for (node,) in tables.fetch_by_keys(PRESENT, [(node,) for node in sorted(new)])}, compared


def _add_before(tables: Tables, since: datetime, recent: list[Row]) -> list[Row]:
    """What MOMENTS gives, of few nodes: also since when each table had been as before; None: it was not there."""
    before: dict[tuple[str, str], datetime] = {}
    for node, table, at in tables.fetch_by_keys(MOMENTS_OF, [row[:2] for row in recent]):
        if at <= since:
            before[node, table] = max(at, before.get((node, table), at))
    return [(*row, before.get(row[:2])) for row in recent]


def _pair_rows(tables: Tables, subject: DriftSubject, rows_of: LookupQuery, changed: list[Row]) -> Iterator[Row]:
    """`changed`: node, when last, since when it had been as before."""
    last = {node: at for node, at, _ in changed}
    wanted = {(node, at) for node, *moments in changed for at in moments if at is not None}
    keys = len(subject.key)
    then: _Side = {}
    now: _Side = {}
    for node, at, *row in tables.fetch_by_keys(rows_of, wanted):
        key = (node, *row[:keys])
        (now if at == last[node] else then)[key] = tuple(row)
    nothing = (None,) * len(_list_names(subject))
    for key in {**then, **now}:
        was, has = then.get(key, nothing), now.get(key, nothing)
        if was != has:
            yield (key[0], *was, *has)


def _list_names(subject: DriftSubject) -> list[str]:
    return [*subject.key, *(column.name for column in list_changed_columns(subject)), subject.label or "node"]


def _make_parts(subject: DriftSubject) -> dict[str, str]:
    *columns, label = _list_names(subject)
    return {
        "table": quote(subject.table),
        "history": quote(HISTORY + subject.table),
        "columns": identifiers(columns, "thing"),
        "label": quote(label, "thing"),
        "only": "WHERE NOT coalesce(thing.silenced, FALSE)" if subject.table == "finding" else "",
    }


def _query_rows(subject: DriftSubject) -> LookupQuery:
    """Of nodes and moments."""
    return lookup({"node": TEXT, "observed_at": TIME}, "drift", "rows_of_nodes", **_make_parts(subject))


def _query_pairs(subject: DriftSubject) -> Query:
    """Rows then and now."""
    *columns, _ = _list_names(subject)
    changed = columns[len(subject.key) :]
    return query(
        "drift", "pairs", **_make_parts(subject),
        earlier_columns=identifiers(columns, "earlier"),
        later_columns=identifiers(columns, "later"),
        same_key="".join(f" AND {quote(key, 'earlier')} = {quote(key, 'later')}" for key in subject.key),
        differing="".join(f" OR {quote(name, 'earlier')} <> {quote(name, 'later')}" for name in changed),
    ).bind(table=subject.table)  # fmt: skip


RECENT, MOMENTS = query("drift", "recent_changes"), query("drift", "changes")
PRESENT = lookup({"node": TEXT}, "drift", "present_nodes")
MOMENTS_OF = lookup({"node": TEXT, "table": TEXT}, "drift", "changes_of_nodes")
ROWS_OF = [_query_rows(subject) for subject in SUBJECTS]
PAIRS = [_query_pairs(subject) for subject in SUBJECTS]
