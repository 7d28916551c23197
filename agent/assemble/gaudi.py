"""Ports of Gaudi cards that leave the box: rows of `nics`, as other network ports inside accelerators are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from agent.assemble.facts import sort_key
from agent.assemble.nics import NetworkFacts, select_physical_netdevs
from agent.model.gpu import Gpu, GpuLink
from agent.model.nic import Nic, Port

if TYPE_CHECKING:
    from probes.netdev.probe import Netdev

_STATES = {"active": "ACTIVE", "inactive": "DOWN"}


def leaves_the_box(link: GpuLink) -> bool:
    """Whether a link of a GPU is a port to a network."""
    return link.remote is not None and link.remote.kind == "network"


def move_scale_out_ports(
    gpus: Sequence[Gpu], nics: Sequence[Nic], network: NetworkFacts
) -> tuple[list[Gpu], list[Nic]]:
    """GPUs with the links that stay in the box, and a row of NICs for the other ports of each card."""
    names = {device.address: device.name for device in network.devices if device.address}
    own = [
        _row(gpu, ports, names.get(gpu.pci or ""), select_physical_netdevs(network.netdevs or (), gpu.pci or ""))
        for gpu in gpus
        if (ports := [link for link in gpu.links if leaves_the_box(link)])
    ]
    inside = [
        msgspec.structs.replace(gpu, links=[link for link in gpu.links if not leaves_the_box(link)]) for gpu in gpus
    ]
    return inside, sorted([*nics, *own], key=lambda nic: sort_key(nic.id))


def _row(gpu: Gpu, links: Sequence[GpuLink], name: str | None, netdevs: Sequence[Netdev]) -> Nic:
    return Nic(
        id=f"{gpu.id}-scale-out",
        label=name or f"{gpu.label} scale-out",
        accelerator=gpu.id,
        model="scale-out ports of a Gaudi",
        role="rail",
        role_evidence=["inside a Gaudi, which alone uses them"],
        ports=[_port(link, [netdev for netdev in netdevs if netdev.dev_port == link.link]) for link in links],
    )


def _port(link: GpuLink, netdevs: Sequence[Netdev]) -> Port:
    """The number is that of the NIC inside the card, as the driver's masks and `hl-smi -n` count."""
    speed = next((netdev.speed_mbit_s for netdev in netdevs if netdev.speed_mbit_s), None)
    state = _STATES.get(link.state)
    return Port(
        port=link.link,
        link_layer="Ethernet",
        state=state,
        rate_gbit_s=speed / 1000 if speed and state == "ACTIVE" else None,
        netdevs=sorted(netdev.name for netdev in netdevs),
    )
