"""NVSwitches that this host sees on PCI. Those of Blackwell and of switch trays are not PCI devices of the host."""

from __future__ import annotations

from collections.abc import Iterable

from agent.model.gpu import NvSwitch
from agent.platforms.devices import is_nvswitch
from probes.pci.sysfs import PciFunction


def nvswitches_of(functions: Iterable[PciFunction]) -> list[NvSwitch]:
    """One row a switch, in the order of the functions."""
    return [NvSwitch(id=f.address, pci=f.address) for f in functions if is_nvswitch(f.vendor, f.device, f.class_code)]
