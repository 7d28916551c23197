"""Devices of an earlier inventory matched with those of today."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from agent.model.identity import differ, identities
from agent.model.pci import PciFunction
from agent.model.report import Known
from agent.model.topology import Topology

DEVICES = ("gpu", "nvswitch", "nic")
_OWNERS = {"link": "gpu", "port": "nic"}  # parts, and what they are below
_MOST_ABOVE = 16  # ports above a device that are kept; deeper trees are hostile


class MatchedDevices(msgspec.Struct, frozen=True):
    """Where the things of an inventory are now. Subjects as of then -> as of now."""

    at: dict[str, str]
    replaced: frozenset[str]  # then: another device is in its place, or was put in elsewhere instead
    unsure: dict[str, str]  # then -> now: one of its kind that cannot be distinguished from it


def build_inventory(topology: Topology) -> list[Known]:
    """Every GPU, NVSwitch and physical NIC of the PCI bus, their NVLinks and their ports."""
    functions = {function.id: function for function in topology.pci}
    lasting = identities(topology)
    known: list[Known] = []

    def add(subject: str, label: str, detail: str | None, pci: str | None, **more: Any) -> None:
        above = _switches_above(functions, pci)
        known.append(
            Known(subject=subject, label=label, identity=lasting.get(subject), detail=detail, above=above, **more)
        )

    for gpu in topology.gpus:
        if gpu.pci:
            add(f"gpu:{gpu.id}", gpu.label, gpu.name, gpu.pci)
            for link in gpu.links:
                add(f"link:{gpu.id}/{link.link}", f"{gpu.label} NVLink {link.link}", None, None)
    for switch in topology.nvswitches:
        add(f"nvswitch:{switch.id}", f"NVSwitch {switch.id}", None, switch.pci)
    for nic in topology.host_nics:
        if nic.id == nic.pci and not (nic.virtual_function or nic.software or nic.limited):
            add(f"nic:{nic.id}", nic.label, nic.model, nic.pci, role=nic.role)
            for port in nic.ports:
                rate = port.rate_gbit_s if port.state == "ACTIVE" else None
                subject, label = f"port:{nic.id}/{port.port}", f"{nic.label}/{port.port}"
                add(subject, label, None, None, role=nic.role, rate_gbit_s=rate)
    return known


def merge_inventory(known: Sequence[Known], topology: Topology) -> tuple[list[Known], bool]:
    """The inventory after one more run: what is here, and what is missing since an earlier one. And: is all here?"""
    rows = build_inventory(topology)
    certain = healthy_subjects(topology)
    match = match_devices(known, rows)
    here = {row.subject: row for row in rows if row.subject in certain}
    stood_in = match.replaced | match.unsure.keys()
    missing = []
    for device in known:
        now = match.at.get(device.subject, "")
        if now in here:
            row = here[now]  # what is not reported this time is still known
            here[now] = replace(
                row,
                identity=row.identity or device.identity,
                detail=row.detail or device.detail,
                role=device.role if row.role == "unused" else row.role,
                rate_gbit_s=max(row.rate_gbit_s or 0.0, device.rate_gbit_s or 0.0) or None,
            )
        elif not {device.subject, owner_of(device.subject)} & stood_in:
            missing.append(device)
    return sorted([*here.values(), *missing], key=lambda device: device.subject), not missing


def match_devices(known: Sequence[Known], rows: Sequence[Known]) -> MatchedDevices:
    """Find the things of an inventory among those that are here now."""
    match = MatchedDevices({}, frozenset(), {})
    replaced: set[str] = set()
    for kind in DEVICES:
        then, now = ([device for device in devices if kind_of(device) == kind] for devices in (known, rows))
        replaced |= _match_kind(then, now, match)
    here = {row.subject for row in rows}
    for device in known:
        owner, part = match.at.get(owner_of(device.subject)), device.subject.rpartition("/")[2]
        moved = f"{kind_of(device)}:{id_of(owner)}/{part}" if owner else ""
        if moved in here:
            match.at[device.subject] = moved
    return replace(match, replaced=frozenset(replaced))


def owner_of(subject: str) -> str:
    """The device that a link or port is a part of; what is no part has an owner that is never a device.

    >>> owner_of("link:0000:19:00.0/7"), owner_of("port:0000:1a:00.0/1"), owner_of("nic:0000:1a:00.0")
    ('gpu:0000:19:00.0', 'nic:0000:1a:00.0', ':')
    """
    kind, _, rest = subject.partition(":")
    return f"{_OWNERS.get(kind, '')}:{rest.rpartition('/')[0]}"


def kind_of(device: Known) -> str:
    """gpu, nvswitch or nic; link or port, which are parts of one."""
    return device.subject.partition(":")[0]


def id_of(subject: str) -> str:
    """A subject without its kind."""
    return subject.partition(":")[2]


def _match_kind(known: list[Known], rows: list[Known], match: MatchedDevices) -> set[str]:
    """Match the devices of one kind: by identity, by place, then whatever is new of the same make."""
    replaced: set[str] = set()
    by_identity = {row.identity: row for row in rows if row.identity}
    by_subject = {row.subject: row for row in rows}
    left = []
    for device in known:
        if device.identity in by_identity:
            match.at[device.subject] = by_identity[device.identity].subject
        else:
            left.append(device)
    taken = set(match.at.values())
    absent = []
    for device in left:
        row = by_subject.get(device.subject)
        if row is None or row.subject in taken:
            absent.append(device)
        elif differ(row.identity, device.identity):
            replaced.add(device.subject)
            taken.add(row.subject)
        else:
            match.at[device.subject] = row.subject
            taken.add(row.subject)
    new = [row for row in rows if row.subject not in taken]
    for device in absent:
        row = next((row for row in new if row.detail == device.detail), None)
        if row is None:
            continue
        new.remove(row)
        if differ(row.identity, device.identity):
            replaced.add(device.subject)
        else:
            match.unsure[device.subject] = row.subject
    return replaced


def healthy_subjects(topology: Topology) -> set[str]:
    """Subjects that are here for certain: on the bus and answering; of NVLinks those that are up."""
    shaky = {f.id for f in topology.pci if f.state in ("gone", "changed_during_scan")}
    subjects = {f"nvswitch:{switch.id}" for switch in topology.nvswitches if switch.pci not in shaky}
    for gpu in topology.gpus:
        if gpu.pci not in shaky:
            subjects.add(f"gpu:{gpu.id}")
            subjects |= {f"link:{gpu.id}/{link.link}" for link in gpu.links if link.state in ("active", "sleep")}
    for nic in topology.host_nics:
        if nic.pci not in shaky:
            subjects |= {f"nic:{nic.id}", *(f"port:{nic.id}/{port.port}" for port in nic.ports)}
    return subjects


def _switches_above(functions: dict[str, PciFunction], pci: str | None) -> list[str]:
    above: list[str] = []
    function = functions.get(pci or "")
    while function and function.parent and function.parent not in above and len(above) < _MOST_ABOVE:
        above.append(function.parent)
        function = functions.get(function.parent)
    return above
