"""RDMA devices of all sources merged by name, each with its PCI address where known, and their ports as report rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts, build_row, merge_by_key, sort_key
from agent.model.nic import Gid, Port
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from probes.rdma.normalize import Rate, parse_rate
from probes.text import ParseError, lazy_pattern

if TYPE_CHECKING:
    from probes.netdev.probe import Netdev, NetdevFacts

_DEVICE_FIELDS = tuple(n for n, default in RdmaDevice._field_defaults.items() if default is None)
_PORT_FIELDS = tuple(n for n, default in RdmaPort._field_defaults.items() if default is None)
# rdma-core kernel-boot/rdma_rename: type, P<domain>, p<bus>, s<slot>, f<function>, all decimal; systemd names
# interfaces alike, with np<port> or d<port> behind (systemd.net-naming-scheme)
_NAMED_BY_PLACE = lazy_pattern(
    r"(?:(?P<netdev>en)|ib|roce|iw|opa|rdma)(?:P(?P<domain>[0-9]{1,9}))?p(?P<bus>[0-9]{1,3})s(?P<slot>[0-9]{1,2})"
    r"(?:f(?P<fn>[0-7]))?(?(netdev)(?:np[0-9]{1,2}|d[0-9]{1,2})?)"
)

_NAMED_AS_VIRTUAL = lazy_pattern(r"(?:en|eth|ib)[A-Za-z0-9]{1,10}v[0-9]{1,3}")  # the same scheme of systemd


def merge_rdma_devices(facts: ProbeFacts, addresses: Collection[str]) -> list[RdmaDevice]:
    """Every RDMA device once: sysfs wins, the tools fill missing fields. `addresses`: functions on the bus."""
    sources = (source.devices for _, source in facts.all_of("rdma", RdmaFacts))
    by_name = merge_by_key(sources, lambda device: device.name, _fill_device)
    netdevs: NetdevFacts | None = facts.get("netdev")
    by_guid = _addresses_by_guid(netdevs.netdevs if netdevs else ())
    devices = [_locate(device, addresses, by_guid) for device in by_name.values()]
    return sorted(devices, key=lambda d: sort_key(d.name))


def address_in_name(name: str) -> str | None:
    """The PCI address encoded in a name by udev's rule; None for other names.

    >>> address_in_name("rocep49s0f1"), address_in_name("rocep4096s0"), address_in_name("mlx5_0")
    ('0000:31:00.1', None, None)
    >>> address_in_name("enp25s0f1np1"), address_in_name("enp25s0f0v3"), address_in_name("enp25s0f0npf0vf1")
    ('0000:19:00.1', None, None)
    """
    match = _NAMED_BY_PLACE.fullmatch(name)
    if not match or int(match["bus"]) > 255 or int(match["slot"]) > 31:
        return None
    return f"{int(match['domain'] or 0):04x}:{int(match['bus']):02x}:{int(match['slot']):02x}.{match['fn'] or 0}"


def is_name_of_virtual_function(name: str) -> bool:
    """Whether it is the name that systemd gives the interface of a virtual function.

    >>> [is_name_of_virtual_function(name) for name in ("ibp75s0v7", "enp25s0f0v3", "ibp75s0", "enp25s0f0npf0vf1")]
    [True, True, False, False]
    """
    return _NAMED_AS_VIRTUAL.fullmatch(name) is not None


def port_guid_of_mac(mac: str) -> str | None:
    """The port GUID in an interface's link-layer address: the end of IPoIB's, the EUI-64 of Ethernet's.

    >>> port_guid_of_mac("b8:3f:d2:12:34:56")
    'ba3f:d2ff:fe12:3456'
    >>> port_guid_of_mac("00:00:10:29:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:12:34:56")
    'b83f:d203:0012:3456'
    """
    parts = mac.split(":")
    if len(parts) == 6:
        parts = [f"{int(parts[0], 16) ^ 2:02x}", *parts[1:3], "ff", "fe", *parts[3:]]
    words = parts[-8:]
    return ":".join(words[index] + words[index + 1] for index in range(0, 8, 2)) if len(parts) in (8, 20) else None


def _addresses_by_guid(netdevs: Iterable[Netdev]) -> dict[str, str | None]:
    """Port GUID -> PCI function of the interface that has it; None: of two functions."""
    places: dict[str, str | None] = {}
    for netdev in netdevs:
        guid = port_guid_of_mac(netdev.mac) if netdev.mac and netdev.address and netdev.vlan is None else None
        if guid is not None and places.setdefault(guid, netdev.address) != netdev.address:
            places[guid] = None
    return places


def _locate(device: RdmaDevice, addresses: Collection[str], by_guid: Mapping[str, str | None]) -> RdmaDevice:
    if device.address or device.software:
        return device
    places = {by_guid[guid] for port in device.ports if (guid := port.port_guid) and guid in by_guid}
    if not places:
        names = (device.name, *(name for port in device.ports for name in port.netdevs))
        places = {place for name in names if (place := address_in_name(name))}
    place = next(iter(places)) if len(places) == 1 else None
    return device._replace(address=place) if place in addresses else device


def _fill_device(device: RdmaDevice, other: RdmaDevice) -> RdmaDevice:
    changes = {name: getattr(other, name) for name in _DEVICE_FIELDS if getattr(device, name) is None}
    ports = {port.port: port for port in other.ports}
    for port in device.ports:
        ports[port.port] = _fill_port(port, ports.get(port.port))
    return device._replace(**changes, ports=tuple(ports[number] for number in sorted(ports)))


def _fill_port(port: RdmaPort, other: RdmaPort | None) -> RdmaPort:
    if other is None:
        return port
    changes = {name: getattr(other, name) for name in _PORT_FIELDS if getattr(port, name) is None}
    if not port.gids_known:
        changes |= {"gids": other.gids, "gids_known": other.gids_known}
    return port._replace(**changes, pkeys=port.pkeys or other.pkeys, netdevs=port.netdevs or other.netdevs)


_LAYERS = {"InfiniBand": "InfiniBand", "Ethernet": "Ethernet"}
# What RoCE puts around a payload: GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4 (include/rdma/ib_addr.h)
_ROCE_HEADERS_BYTES = 96
_DEFAULT_RATE = 10  # Gb/s, of a port without a link
_IB_MTUS = (4096, 2048, 1024, 512, 256)


def build_ports(device: RdmaDevice, netdevs: Sequence[Netdev]) -> list[Port]:
    """Ports sorted by number. `netdevs`: the physical interfaces of the same PCI function."""
    return [_port(port, netdevs) for port in sorted(device.ports, key=lambda p: p.port)]


def _port(port: RdmaPort, netdevs: Sequence[Netdev]) -> Port:
    layer = _LAYERS.get(port.link_layer, "unspecified") if port.link_layer else None
    of_port = [n for n in netdevs if n.dev_port == port.port - 1] or (list(netdevs) if len(netdevs) == 1 else [])
    rate = _rate(port, layer, of_port)
    return build_row(
        Port,
        port,
        link_layer=layer,
        rate_gbit_s=round(rate.gbit_s, 3) if rate else None,
        width=rate.width if rate else None,
        speed=rate.speed if rate else None,
        netdevs=sorted(port.netdevs or (n.name for n in of_port), key=sort_key),
        active_mtu=port.active_mtu or (_roce_mtu(of_port) if layer == "Ethernet" else None),
        gids=[build_row(Gid, gid) for gid in sorted(port.gids, key=lambda gid: gid.index)],
    )


def _rate(port: RdmaPort, layer: str | None, netdevs: Iterable[Netdev]) -> Rate | None:
    """A port that is down reports a default rate (10, SDR): the rate of an active port, or a higher one where the state
    is not shown.

    On Ethernet the interface's speed wins; "(4X NDR)" is only a translation there.
    """
    if port.state not in ("ACTIVE", None):
        return None
    if layer == "Ethernet":
        speeds = [n.speed_mbit_s for n in netdevs if n.speed_mbit_s]
        if speeds:
            return Rate(speeds[0] / 1000, None, None)
    try:
        rate = parse_rate(port.rate_text) if port.rate_text else None
    except ParseError:
        return None
    if rate and port.state is None and rate.gbit_s <= _DEFAULT_RATE:
        return None
    if rate and layer == "Ethernet":
        return Rate(rate.gbit_s, None, None)
    return rate


def _roce_mtu(netdevs: Iterable[Netdev]) -> int | None:
    """The largest InfiniBand MTU that fits into the interface's MTU, as the kernel computes it."""
    mtus = [n.mtu for n in netdevs if n.mtu]
    return next((mtu for mtu in _IB_MTUS if mtu <= mtus[0] - _ROCE_HEADERS_BYTES), None) if mtus else None
