"""What ethtool and the modules add to the rows of network interfaces."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agent.assemble.facts import Facts
from agent.model.nic import Fec, Lane, Netdev, Pause, TransceiverModule
from probes.ethtool import Ethernet, EthtoolFacts
from probes.netdev import NetdevFacts
from probes.optics import OpticsFacts, Socket
from probes.optics_module import Module

CARRIER = ("carrier_changes", "carrier_up_count", "carrier_down_count")


def with_ethernet(rows: Sequence[Netdev], facts: Facts) -> list[Netdev]:
    """The same rows with pause, FEC, link modes, module and all counters: of the driver's, the kernel's own, and how
    often the carrier changed. Where two name a counter alike, the kernel's stands."""
    ethtool, optics = facts.of("ethtool", EthtoolFacts), facts.of("optics", OpticsFacts)
    netdevs = facts.of("netdev", NetdevFacts)
    told = {each.name: each for each in ethtool.interfaces} if ethtool else {}
    sockets = {each.name: each for each in optics.sockets} if optics else {}
    carriers = {each.name: each for each in netdevs.netdevs} if netdevs else {}
    why_none = facts.outcomes["optics"].reason if optics is None and "optics" in facts.outcomes else None
    made = []
    for row in rows:
        nothing = Socket(row.label, reason=None if row.pci is None else why_none)
        said, socket = told.get(row.label, Ethernet(row.label)), sockets.get(row.label, nothing)
        fec_counters = said.fec.counters if said.fec else {}
        changes = {name: getattr(carriers.get(row.label), name, None) for name in CARRIER}
        kernel = {name: number for name, number in changes.items() if number is not None and not _software(row)}
        counters = {**(said.counters or {}), **fec_counters, **kernel, **row.counters}
        fastest = said.modes.max_speed_mbit_s if said.modes else None
        made.append(
            msgspec.structs.replace(
                row,
                max_speed_gbit_s=round(fastest / 1000, 3) if fastest else None,
                autoneg=said.modes.autoneg if said.modes else None,
                pause=Pause(rx=said.pause.rx, tx=said.pause.tx, autoneg=said.pause.autoneg) if said.pause else None,
                fec=_fec(said),
                module=_module(socket.module) if socket.module else None,
                module_reason=socket.reason,
                counters=dict(sorted(counters.items())),
            )
        )
    return made


def _software(row: Netdev) -> bool:
    """Bridges and bonds have no counters of a wire."""
    return row.pci is None


def _fec(said: Ethernet) -> Fec | None:
    supported = list(said.modes.fec_supported) if said.modes else []
    if said.fec is None:
        return Fec(supported=supported) if supported else None
    return Fec(
        active=said.fec.active,
        configured=list(said.fec.configured),
        supported=supported,
        auto=said.fec.auto,
    )


def _module(module: Module) -> TransceiverModule:
    return TransceiverModule(
        identifier=module.identifier,
        media=module.media,
        vendor=module.vendor,
        part=module.part,
        serial=module.serial,
        length_m=module.length_m,
        state=module.state,
        temperature_c=module.temperature_c,
        voltage_v=module.voltage_v,
        thresholds=dict(sorted(module.thresholds.items())),
        flags=sorted(module.flags),
        lanes=[
            Lane(
                lane=lane.lane,
                rx_power_dbm=lane.rx_power_dbm,
                tx_power_dbm=lane.tx_power_dbm,
                tx_bias_ma=lane.tx_bias_ma,
                flags=sorted(lane.flags),
            )
            for lane in module.lanes
        ],
    )
