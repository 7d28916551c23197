"""Where hosts or pods have the GID of an address at different indexes: a setting of one index fits only one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from agent.model.node import Event
from agent.model.report import Report

_OF_V2, _OF_IPV4 = "RoCE v2", ":ffff:"
_SHOWN = 4  # devices, and hosts of one


def note_gid_indexes(reports: Sequence[Report], hosts: Sequence[str | None]) -> list[Report]:
    """The reports, the first with an event for devices of one name whose first RoCE v2 GID of an IPv4 address has
    another index on another host. `hosts`: of each report, by the prompt above its output.
    """
    indexes: dict[str, dict[str, int]] = {}  # of a device, by host
    for report, host in zip(reports, hosts, strict=True):
        for name, index in _list_indexes(report) if host else ():
            indexes.setdefault(name, {}).setdefault(host or "", index)
    differing = {name: by_host for name, by_host in indexes.items() if len(set(by_host.values())) > 1}
    if not differing:
        return list(reports)
    text = "; ".join(f"{name}: {_describe(by_host)}" for name, by_host in list(differing.items())[:_SHOWN])
    event = Event(kind="tool", code="gid-index-differs", text=text, source="show_gids", detail={"what": text})
    first = next(at for at, host in enumerate(hosts) if host and dict(_list_indexes(reports[at])).keys() & differing)
    changed = list(reports)
    changed[first] = msgspec.structs.replace(changed[first], events=[*changed[first].events, event])
    return changed


def _list_indexes(report: Report) -> list[tuple[str, int]]:
    """The index of the first GID of RoCE v2 with an IPv4 address, of each port."""
    found = []
    for nic in report.topology.nics:
        for port in nic.ports:
            index = next((gid.index for gid in port.gids if gid.type == _OF_V2 and _OF_IPV4 in gid.gid.lower()), None)
            if index is not None:
                found.append((f"{nic.label} port {port.port}", index))
    return found


def _describe(by_host: Mapping[str, int]) -> str:
    return ", ".join(f"index {index} on {host}" for host, index in list(by_host.items())[:_SHOWN])
