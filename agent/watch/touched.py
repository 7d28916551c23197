"""Which probes read what an event may have changed. Names of probes are those of probes/catalogue.py."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from probes.kernel import events
from probes.probe import Probe

ALWAYS = ("kernel", "kernel_log")  # the time of the reading, and what the kernel wrote about it

_NIC = ("rdma", "rdma_netlink", "netdev", "ethtool", "optics", "dcb", "lldp")
_GPU = ("pci", "nvml", "limits")  # its device nodes too

TOUCHED: dict[str, tuple[str, ...]] = {
    events.INTERFACE: _NIC,
    events.SOFTWARE_INTERFACE: (),  # veth and its kin come and go with every container; no rule is about them
    events.RDMA: ("pci", "modules", "limits", *_NIC),
    events.PCI: ("numa", "modules", *_GPU, *_NIC),
    events.GPU: ("modules", *_GPU),
    events.MODULE: ("modules", "services", *_GPU, *_NIC),
    # lines of the kernel's log
    "xid": ("pci", "nvml"),
    "sxid": ("pci", "nvml", "services"),
    "gpu_lost": ("pci", "nvml"),
    "gpu_init": ("pci", "nvml"),
    "driver": ("modules", "pci", "nvml"),
    "aer": ("pci",),
    "dpc": ("pci", "nvml", *_NIC),
    "hotplug": ("pci", "nvml", *_NIC),
    "pcie_bandwidth": ("pci",),
    "mlx5": ("pci", *_NIC),
    "link_down": _NIC,
    "link_up": _NIC,
    "peermem": ("modules",),
}


def touched(kinds: Iterable[str], catalogue: Sequence[Probe]) -> frozenset[str]:
    """The probes to ask again, with those that stand in for them. None where nothing that is read was touched."""
    direct = {name for kind in kinds for name in TOUCHED[kind]}
    if not direct:
        return frozenset()
    return with_fallbacks({*direct, *ALWAYS}, catalogue)


def with_fallbacks(names: Collection[str], catalogue: Sequence[Probe]) -> frozenset[str]:
    """Those of the catalogue, and the probes that are asked where they do not answer."""
    return frozenset(probe.name for probe in catalogue if probe.name in names or probe.fallback_for in names)
