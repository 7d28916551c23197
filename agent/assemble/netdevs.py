"""Network interfaces of the report, each with its PCI function and NIC; pause, FEC, module and counters of ethtool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from agent.assemble.facts import ProbeFacts, build_row, sort_key
from agent.assemble.nics import select_physical_netdevs
from agent.assemble.qos import QosLookup
from agent.model.nic import Fec, Lane, Netdev, Nic, Pause, TransceiverModule

if TYPE_CHECKING:
    from probes.ethtool.probe import Ethernet, EthtoolFacts
    from probes.netdev.probe import Netdev as Interface
    from probes.netdev.probe import NetdevFacts
    from probes.optics.facts import ModuleReading
    from probes.optics.probe import OpticsFacts


def build_netdevs(netdevs: Sequence[Interface], nics: Sequence[Nic], qos: QosLookup) -> list[Netdev]:
    """One row per interface, sorted by id."""
    nic_by_address = {nic.pci: nic.id for nic in nics if nic.pci and nic.id == nic.pci}
    return sorted(
        (_row(netdev, netdevs, nic_by_address, qos) for netdev in netdevs),
        key=lambda row: (sort_key(row.id), row.label),
    )


def _netdev_id(netdev: Interface, netdevs: Sequence[Interface]) -> str:
    """The PCI address where it is unique to the interface; with the port number for two ports on one function."""
    own = select_physical_netdevs(netdevs, netdev.address) if netdev.address else []
    if netdev not in own:
        return netdev.name
    if len(own) == 1:
        return netdev.address or netdev.name
    numbers = {other.dev_port for other in own}
    alone = None not in numbers and len(numbers) == len(own)
    return f"{netdev.address}/{netdev.dev_port}" if alone else netdev.name


def _row(netdev: Interface, netdevs: Sequence[Interface], nic_by_address: dict[str, str], qos: QosLookup) -> Netdev:
    return build_row(
        Netdev,
        netdev,
        id=_netdev_id(netdev, netdevs),
        label=netdev.name,
        pci=netdev.address,
        nic=nic_by_address.get(netdev.address or ""),
        addresses=sorted(netdev.addresses),
        speed_gbit_s=round(netdev.speed_mbit_s / 1000, 3) if netdev.speed_mbit_s is not None else None,
        **qos.words(netdev),
    )


CARRIER_COUNTERS = ("carrier_changes", "carrier_up_count", "carrier_down_count")


def add_ethernet(rows: Sequence[Netdev], facts: ProbeFacts) -> list[Netdev]:
    """Add pause, FEC, link modes, module and all counters: the driver's, the kernel's, and carrier
    changes. The kernel's value wins where two sources name a counter alike."""
    ethtool: EthtoolFacts | None = facts.get("ethtool")
    optics: OpticsFacts | None = facts.get("optics")
    netdevs: NetdevFacts | None = facts.get("netdev")
    by_name = {interface.name: interface for interface in ethtool.interfaces} if ethtool else {}
    sockets = {socket.name: socket for socket in optics.sockets} if optics else {}
    carriers = {netdev.name: netdev for netdev in netdevs.netdevs} if netdevs else {}
    none = facts.outcomes.get("optics") if optics is None else None
    result = []
    for row in rows:
        ethernet, socket = by_name.get(row.label), sockets.get(row.label)
        pause, modes = (ethernet.pause, ethernet.modes) if ethernet else (None, None)
        outcome = socket or (none if row.pci else None)
        fec_counters = ethernet.fec.counters if ethernet and ethernet.fec else {}
        changes = {name: getattr(carriers.get(row.label), name, None) for name in CARRIER_COUNTERS}
        # an interface without hardware (bridge, bond) has no counters of a wire
        kernel = {name: number for name, number in changes.items() if number is not None and row.pci is not None}
        counters = {**((ethernet.counters if ethernet else None) or {}), **fec_counters, **kernel, **row.counters}
        fastest, runs = (modes.max_speed_mbit_s, modes.speed_mbit_s) if modes else (None, None)
        link = modes.has_link if modes else None
        speed = round(runs / 1000, 3) if runs and row.speed_gbit_s is None else row.speed_gbit_s
        result.append(
            msgspec.structs.replace(
                row,
                driver=row.driver or (ethernet.driver if ethernet and row.pci else None),
                operstate=row.operstate or (None if link is None else "up" if link else "down"),
                speed_gbit_s=speed,
                max_speed_gbit_s=round(fastest / 1000, 3) if fastest else None,
                autoneg=modes.autoneg if modes else None,
                pause=build_row(Pause, pause) if pause else None,
                fec=_fec(ethernet) if ethernet else None,
                module=_module(socket.module) if socket and socket.module else None,
                module_reason=outcome.reason if outcome else None,
                module_reason_code=outcome.reason_code if outcome else None,
                counters=dict(sorted(counters.items())),
            )
        )
    return result


def _fec(ethernet: Ethernet) -> Fec | None:
    supported = list(ethernet.modes.fec_supported) if ethernet.modes else []
    if ethernet.fec is None:
        return Fec(supported=supported) if supported else None
    return build_row(Fec, ethernet.fec, supported=supported)


def _module(module: ModuleReading) -> TransceiverModule:
    lanes = [build_row(Lane, lane, flags=sorted(lane.flags)) for lane in module.lanes]
    return build_row(TransceiverModule, module, flags=sorted(module.flags), lanes=lanes)
