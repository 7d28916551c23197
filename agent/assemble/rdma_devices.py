"""RDMA devices of all sources joined by name, each with its place on the bus where one can be told."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from agent.assemble.facts import Facts
from agent.assemble.identity import identity
from probes.netdev.probe import Netdev, NetdevFacts
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort

_DEVICE_FIELDS = tuple(n for n, default in RdmaDevice._field_defaults.items() if default is None)
_PORT_FIELDS = tuple(n for n, default in RdmaPort._field_defaults.items() if default is None)
# rdma-core kernel-boot/rdma_rename: type, P<domain>, p<bus>, s<slot>, f<function>, all decimal; systemd names
# interfaces alike, with np<port> or d<port> behind (systemd.net-naming-scheme)
_NAMED_BY_PLACE = re.compile(
    r"(?:(?P<netdev>en)|ib|roce|iw|opa|rdma)(?:P(?P<domain>[0-9]{1,9}))?p(?P<bus>[0-9]{1,3})s(?P<slot>[0-9]{1,2})"
    r"(?:f(?P<fn>[0-7]))?(?(netdev)(?:np[0-9]{1,2}|d[0-9]{1,2})?)"
)


def rdma_devices(facts: Facts, addresses: Collection[str]) -> list[RdmaDevice]:
    """Every RDMA device once. sysfs wins, the tools fill what it does not say. `addresses`: functions on the bus."""
    live = facts.of("rdma", RdmaFacts)
    tools = facts.of("rdma_tools", RdmaFacts)
    by_name = {d.name: d for d in tools.devices} if tools else {}
    for device in live.devices if live else ():
        other = by_name.get(device.name)
        by_name[device.name] = _filled(device, other) if other else device
    netdevs = facts.of("netdev", NetdevFacts)
    by_guid = _places_by_guid(netdevs.netdevs if netdevs else ())
    devices = [_placed(device, addresses, by_guid) for device in by_name.values()]
    return sorted(devices, key=lambda d: identity(d.name))


def place_in_name(name: str) -> str | None:
    """The PCI address that a name by udev's rule holds; None for other names.

    >>> place_in_name("rocep49s0f1"), place_in_name("rocep4096s0"), place_in_name("mlx5_0")
    ('0000:31:00.1', None, None)
    >>> place_in_name("enp25s0f1np1"), place_in_name("enp25s0f0v3"), place_in_name("enp25s0f0npf0vf1")
    ('0000:19:00.1', None, None)
    """
    match = _NAMED_BY_PLACE.fullmatch(name)
    if not match or int(match["bus"]) > 255 or int(match["slot"]) > 31:
        return None
    return f"{int(match['domain'] or 0):04x}:{int(match['bus']):02x}:{int(match['slot']):02x}.{match['fn'] or 0}"


def guid_of(mac: str) -> str | None:
    """The port GUID that an interface's link-layer address holds: the end of IPoIB's, the EUI-64 of Ethernet's.

    >>> guid_of("b8:3f:d2:12:34:56"), guid_of("00:00:10:29:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:12:34:56")
    ('ba3f:d2ff:fe12:3456', 'b83f:d203:0012:3456')
    """
    parts = mac.split(":")
    if len(parts) == 6:
        parts = [f"{int(parts[0], 16) ^ 2:02x}", *parts[1:3], "ff", "fe", *parts[3:]]
    words = parts[-8:]
    return ":".join(words[at] + words[at + 1] for at in range(0, 8, 2)) if len(parts) in (8, 20) else None


def _places_by_guid(netdevs: Iterable[Netdev]) -> dict[str, str | None]:
    """Port GUID -> the PCI function of the interface that has it; None: of two."""
    places: dict[str, str | None] = {}
    for netdev in netdevs:
        guid = guid_of(netdev.mac) if netdev.mac and netdev.address and netdev.vlan is None else None
        if guid is not None and places.setdefault(guid, netdev.address) != netdev.address:
            places[guid] = None
    return places


def _placed(device: RdmaDevice, addresses: Collection[str], by_guid: Mapping[str, str | None]) -> RdmaDevice:
    if device.address or device.software:
        return device
    places = {by_guid[guid] for port in device.ports if (guid := port.port_guid) and guid in by_guid}
    if not places:
        names = (device.name, *(name for port in device.ports for name in port.netdevs))
        places = {place for name in names if (place := place_in_name(name))}
    place = next(iter(places)) if len(places) == 1 else None
    return device._replace(address=place) if place in addresses else device


def _filled(device: RdmaDevice, other: RdmaDevice) -> RdmaDevice:
    changes = {name: getattr(other, name) for name in _DEVICE_FIELDS if getattr(device, name) is None}
    ports = {port.port: port for port in other.ports}
    for port in device.ports:
        ports[port.port] = _filled_port(port, ports.get(port.port))
    return device._replace(**changes, ports=tuple(ports[number] for number in sorted(ports)))


def _filled_port(port: RdmaPort, other: RdmaPort | None) -> RdmaPort:
    if other is None:
        return port
    changes = {name: getattr(other, name) for name in _PORT_FIELDS if getattr(port, name) is None}
    if not port.gids_known:
        changes |= {"gids": other.gids, "gids_known": other.gids_known}
    return port._replace(**changes, pkeys=port.pkeys or other.pkeys, netdevs=port.netdevs or other.netdevs)
