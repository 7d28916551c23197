"""Rows of an earlier moment beside those of now, of nodes that have changed since; the columns that are compared."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Pending, identifiers, lookup, query, quote
from agent.fleet.engines.schema import HISTORY
from agent.fleet.table import TEXT, TIME
from agent.fleet.tables import TABLES, Column
from agent.model.labels import group_by_key

GONE, NEW, MOVED = "gone", "new", "moved"
BAGS = ("cmdline", "services", "settings", "part_settings")  # reported word by word


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


def list_changed_columns(subject: DriftSubject) -> list[Column]:
    """Columns that are compared: neither the key, nor what moves by itself."""
    left_out = {"node", *subject.key, *subject.left_out} | ({subject.label} if subject.label else set())
    return [column for column in TABLES[subject.table].columns if not column.volatile and column.name not in left_out]


class Compared(NamedTuple):
    """A subject, when each node's rows of it changed last, and rows: node, then, now; null where there is none.

    Then and now: key, what may change, label.
    """

    subject: DriftSubject
    at: dict[str, datetime]
    rows: Pending


def compare_times(tables: Tables, since: datetime) -> tuple[set[str], list[Compared]]:
    """Nodes that are new since, and the others' rows that are not the same.

    A node that came since and was forgotten since is neither.
    """
    moments = tables.rows(MOMENTS.bind(moment=since))
    new = {node for node, table, _, before in moments if table in ("host", "switch") and before is None}
    changed = group_by_key((table, (node, *times)) for node, table, *times in moments if node not in new)
    compared = [
        Compared(subject, {node: last for node, last, _ in rows}, tables.submit_by_keys(pairs, rows))
        for subject, pairs in zip(SUBJECTS, PAIRS, strict=True)
        if (rows := changed.get(subject.table))
    ]
    return {node for (node,) in tables.fetch_by_keys(PRESENT, [(node,) for node in sorted(new)])}, compared


def _query_pairs(subject: DriftSubject) -> LookupQuery:
    """Rows then and now, of nodes whose rows changed: the moment of the last change and that of the one before."""
    changed = [column.name for column in list_changed_columns(subject)]
    columns = [*subject.key, *changed]
    return lookup(
        {"node": TEXT, "last_change": TIME, "before_change": TIME}, "drift", "pairs",
        history=quote(HISTORY + subject.table),
        columns=identifiers(columns, "thing"),
        label=quote(subject.label or "node", "thing"),
        only="WHERE NOT coalesce(thing.silenced, FALSE)" if subject.table == "finding" else "",
        earlier_columns=identifiers(columns, "earlier"),
        later_columns=identifiers(columns, "later"),
        same_key="".join(f" AND {quote(key, 'earlier')} = {quote(key, 'later')}" for key in subject.key),
        differing="".join(f" OR {quote(name, 'earlier')} <> {quote(name, 'later')}" for name in changed),
    )  # fmt: skip


MOMENTS = query("drift", "changes")
PRESENT = lookup({"node": TEXT}, "drift", "present_nodes")
PAIRS = [_query_pairs(subject) for subject in SUBJECTS]
