"""What ethtool and the modules add to the rows of network interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from agent.assemble.facts import Facts
from agent.model.nic import Fec, Lane, Netdev, Pause, TransceiverModule
from probes.netdev.probe import NetdevFacts

if TYPE_CHECKING:
    from probes.ethtool.probe import Ethernet, EthtoolFacts
    from probes.optics.facts import Module
    from probes.optics.probe import OpticsFacts

CARRIER = ("carrier_changes", "carrier_up_count", "carrier_down_count")


def with_ethernet(rows: Sequence[Netdev], facts: Facts) -> list[Netdev]:
    """The same rows with pause, FEC, link modes, module and all counters: of the driver's, the kernel's own, and how
    often the carrier changed. Where two name a counter alike, the kernel's stands."""
    ethtool: EthtoolFacts | None = facts.told("ethtool")
    optics: OpticsFacts | None = facts.told("optics")
    netdevs = facts.of("netdev", NetdevFacts)
    told = {each.name: each for each in ethtool.interfaces} if ethtool else {}
    sockets = {each.name: each for each in optics.sockets} if optics else {}
    carriers = {each.name: each for each in netdevs.netdevs} if netdevs else {}
    why_none = facts.outcomes["optics"].reason if optics is None and "optics" in facts.outcomes else None
    made = []
    for row in rows:
        said, socket = told.get(row.label), sockets.get(row.label)
        pause, modes = (said.pause, said.modes) if said else (None, None)
        module, why_not = (socket.module, socket.reason) if socket else (None, why_none if row.pci else None)
        fec_counters = said.fec.counters if said and said.fec else {}
        changes = {name: getattr(carriers.get(row.label), name, None) for name in CARRIER}
        kernel = {name: number for name, number in changes.items() if number is not None and not _software(row)}
        counters = {**((said.counters if said else None) or {}), **fec_counters, **kernel, **row.counters}
        fastest, runs = (modes.max_speed_mbit_s, modes.speed_mbit_s) if modes else (None, None)
        speed = round(runs / 1000, 3) if runs and row.speed_gbit_s is None else row.speed_gbit_s
        made.append(
            msgspec.structs.replace(
                row,
                speed_gbit_s=speed,
                max_speed_gbit_s=round(fastest / 1000, 3) if fastest else None,
                autoneg=modes.autoneg if modes else None,
                pause=Pause(rx=pause.rx, tx=pause.tx, autoneg=pause.autoneg) if pause else None,
                fec=_fec(said) if said else None,
                module=_module(module) if module else None,
                module_reason=why_not,
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
