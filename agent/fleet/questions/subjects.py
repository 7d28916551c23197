"""Whose changes `fleet drift` tells, and which columns of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from agent.fleet.tables import TABLES, Column

GONE, NEW, MOVED = "gone", "new", "moved"
BAGS = ("cmdline", "services", "settings")  # told word by word


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
    DriftSubject("NVLink", "nvlink", ("gpu", "link"), "gpu", _set("remote_id remote_link"), of_device=True),
    DriftSubject("PCI function", "pci", ("id",), "id", _set("serial"), _set("parent iommu_group"), True),
    DriftSubject("IP address", "address", ("netdev", "address"), "label", of_device=True),
    DriftSubject("finding", "finding", ("rule", "subject", "fingerprint"), "rule", left_out=_set("label")),
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


def changed_columns(subject: DriftSubject) -> list[Column]:
    """Columns that are compared: neither the key, nor what moves by itself."""
    left_out = {"node", *subject.key, *subject.left_out} | ({subject.label} if subject.label else set())
    return [each for each in TABLES[subject.table].columns if not each.volatile and each.name not in left_out]


def with_its_device(noticed: Iterable[_N]) -> list[_N]:
    """Without what follows from another: the parts of a device that came or went itself (port, link, address), and the
    role of a NIC where a GPU came or went, whose rail it was or is.
    """
    all_ = list(noticed)
    moved = {each.node for each in all_ if each.what in (GONE, NEW) and each.subject.table == "gpu"}
    order = {subject.table: place for place, subject in enumerate(SUBJECTS)}
    seen: dict[tuple[str, str, str], int] = {}
    for each in all_:
        if each.what in (GONE, NEW) and each.device:
            key = (each.node, each.what, each.device)
            seen[key] = min(seen.get(key, len(SUBJECTS)), order[each.subject.table])
    return [
        each
        for each in all_
        if (
            each.what not in (GONE, NEW)
            or not each.device
            or seen[each.node, each.what, each.device] == order[each.subject.table]
        )
        and not (each.what == "role" and each.subject.table == "nic" and each.node in moved)
    ]
