"""Network interfaces of the report, each with the PCI function and the NIC below it."""

from __future__ import annotations

from collections.abc import Sequence

from agent.assemble.identity import identity
from agent.assemble.nics import physical_netdevs
from agent.assemble.qos import QosOf
from agent.model.nic import Netdev, Nic
from probes.netdev import probe as netdev


def netdevs_of(said: Sequence[netdev.Netdev], nics: Sequence[Nic], qos: QosOf) -> list[Netdev]:
    """One row an interface, sorted by identity."""
    nic_at = {nic.pci: nic.id for nic in nics if nic.pci and nic.id == nic.pci}
    return sorted((_row(each, said, nic_at, qos) for each in said), key=lambda row: (identity(row.id), row.label))


def _identity(each: netdev.Netdev, said: Sequence[netdev.Netdev]) -> str:
    """The PCI address where it tells the interface from others; with two ports on one function, the port too."""
    own = physical_netdevs(said, each.address) if each.address else []
    if each not in own:
        return each.name
    if len(own) == 1:
        return each.address or each.name
    numbers = {other.dev_port for other in own}
    alone = None not in numbers and len(numbers) == len(own)
    return f"{each.address}/{each.dev_port}" if alone else each.name


def _row(each: netdev.Netdev, said: Sequence[netdev.Netdev], nic_at: dict[str, str], qos: QosOf) -> Netdev:
    return Netdev(
        id=_identity(each, said),
        label=each.name,
        pci=each.address,
        nic=nic_at.get(each.address or ""),
        mac=each.mac,
        addresses=sorted(each.addresses),
        operstate=each.operstate,
        admin_up=each.admin_up,
        speed_gbit_s=round(each.speed_mbit_s / 1000, 3) if each.speed_mbit_s is not None else None,
        mtu=each.mtu,
        driver=each.driver,
        master=each.master,
        bond={key: value if isinstance(value, str) else list(value) for key, value in sorted(each.bond.items())}
        if each.bond is not None
        else None,
        vlan=dict(sorted(each.vlan.items())) if each.vlan is not None else None,
        counters=dict(sorted(each.counters.items())) if each.counters else {},
        **qos.words(each),
    )
