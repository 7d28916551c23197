"""Ports of RDMA devices: the texts of the source made into numbers, and only where they mean something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.assemble.identity import identity
from agent.model.nic import Gid, Port
from probes.netdev.probe import Netdev
from probes.rdma import facts as rdma
from probes.rdma.facts import RdmaDevice, RdmaPort
from probes.rdma.normalize import Rate, parse_rate
from probes.text import Unparsable

_LAYERS = {"InfiniBand": "InfiniBand", "Ethernet": "Ethernet"}
# What RoCE puts around a payload: GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4 (include/rdma/ib_addr.h)
_ROCE_HEADERS_BYTES = 96
_IB_MTUS = (4096, 2048, 1024, 512, 256)


def ports_of(device: RdmaDevice, netdevs: Sequence[Netdev]) -> list[Port]:
    """Every port by number. `netdevs`: the physical interfaces of the same PCI function."""
    return [_port(port, netdevs) for port in sorted(device.ports, key=lambda p: p.port)]


def _port(port: RdmaPort, netdevs: Sequence[Netdev]) -> Port:
    layer = _LAYERS.get(port.link_layer, "unspecified") if port.link_layer else None
    of_port = [n for n in netdevs if n.dev_port == port.port - 1] or (list(netdevs) if len(netdevs) == 1 else [])
    rate = _rate(port, layer, of_port)
    return Port(
        port=port.port,
        link_layer=layer,
        state=port.state,
        phys_state=port.phys_state,
        rate_gbit_s=round(rate.gbit_s, 3) if rate else None,
        width=rate.width if rate else None,
        speed=rate.speed if rate else None,
        lid=port.lid,
        sm_lid=port.sm_lid,
        port_guid=port.port_guid,
        netdevs=sorted(port.netdevs or (n.name for n in of_port), key=identity),
        active_mtu=port.active_mtu or (_roce_mtu(of_port) if layer == "Ethernet" else None),
        gids=[
            Gid(index=g.index, gid=g.gid, type=g.type, netdev=g.netdev)
            for g in sorted(port.gids, key=lambda g: g.index)
        ],
        gids_known=port.gids_known,
        pkeys=list(port.pkeys),
        counters=dict(sorted(port.counters.items())) if port.counters else {},
        hw_counters=dict(sorted(port.hw_counters.items())) if port.hw_counters else {},
    )


def _gid(gid: rdma.Gid) -> Gid:
    return Gid(index=gid.index, gid=gid.gid, type=gid.type, netdev=gid.netdev)


def _rate(port: RdmaPort, layer: str | None, netdevs: Iterable[Netdev]) -> Rate | None:
    """A port that is down prints a default rate (10, SDR): only an active one is believed.

    On Ethernet the interface's own speed comes first; "(4X NDR)" is a translation there and says nothing.
    """
    if port.state != "ACTIVE":
        return None
    if layer == "Ethernet":
        speeds = [n.speed_mbit_s for n in netdevs if n.speed_mbit_s]
        if speeds:
            return Rate(speeds[0] / 1000, None, None)
    try:
        rate = parse_rate(port.rate_text) if port.rate_text else None
    except Unparsable:
        return None
    if rate and layer == "Ethernet":
        return Rate(rate.gbit_s, None, None)
    return rate


def _roce_mtu(netdevs: Iterable[Netdev]) -> int | None:
    """The largest InfiniBand MTU that fits into the interface's, as the kernel computes it."""
    mtus = [n.mtu for n in netdevs if n.mtu]
    return next((mtu for mtu in _IB_MTUS if mtu <= mtus[0] - _ROCE_HEADERS_BYTES), None) if mtus else None
