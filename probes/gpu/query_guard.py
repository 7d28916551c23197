"""Whether the NVIDIA driver may be asked: never where that would wake a GPU, load a module or make a device node.

nvmlInit and nvidia-smi open every GPU of the driver. On a live host they also run nvidia-modprobe, which is setuid
root and loads modules. So PCI is asked first.
"""

from __future__ import annotations

from probes.host.interface import Absent, Host, ReadError
from probes.host_reader import is_asleep
from probes.named_tuple import NamedTuple
from probes.probe import Skipped

_DEVICES = "/sys/bus/pci/devices"
_VERSION = "/proc/driver/nvidia/version"


def require_driver(host: Host) -> None:
    """Return where the driver may be asked.

    Raises Skipped where PCI holds no NVIDIA GPU, or one of the driver's GPUs is asleep; Absent where GPUs are there
    and the driver is not.
    """
    gpus = list_pci_gpus(host)
    if gpus is None:
        if host.live:
            raise Absent(f"no {_DEVICES}: whether there are GPUs to ask for is not known")
        return
    if not gpus:
        raise Skipped("no NVIDIA GPU on the PCI bus")
    for gpu in gpus:
        if gpu.asleep:
            raise Skipped(f"GPU {gpu.address} is asleep; NVML would wake it")
    missing = find_missing_driver(host) if host.live else None
    if missing:
        raise Absent(missing)


class PciGpu(NamedTuple):
    """One NVIDIA display function of the bus."""

    address: str
    asleep: bool  # runtime-suspended, and of the driver that we would ask


def list_pci_gpus(host: Host) -> list[PciGpu] | None:
    """Every NVIDIA display function; None where the source does not show it. Reads nothing of a function after its
    power/runtime_status."""
    try:
        addresses = host.listdir(_DEVICES)
    except ReadError:
        return None
    gpu_addresses, untold = [], False
    for address in addresses:
        try:
            ids = host.attributes(f"{_DEVICES}/{address}", ("vendor", "class"))
        except ReadError:
            continue  # it vanished between the listing and now
        vendor, kind = ids.get("vendor"), ids.get("class")
        if not isinstance(vendor, bytes) or not isinstance(kind, bytes):
            untold = True
        elif vendor.strip() == b"0x10de" and kind.startswith(b"0x03"):
            gpu_addresses.append(PciGpu(address, _asleep(host, f"{_DEVICES}/{address}")))
    return None if untold and not gpu_addresses else gpu_addresses


def find_missing_driver(host: Host) -> str | None:
    """Why the driver of a live host cannot be asked without changing the host; None where it can."""
    try:
        host.read(_VERSION)
    except ReadError:
        return f"driver not loaded: no {_VERSION}"
    try:
        here = "nvidiactl" in host.listdir("/dev")
    except ReadError:
        here = False
    return (
        None if here else "no /dev/nvidiactl, and NVML would make it (a container without GPUs, or no use of them yet)"
    )


def _asleep(host: Host, device: str) -> bool:
    """A suspended GPU of another driver (vfio-pci) is none of NVML's and stays asleep."""
    try:
        driver = host.readlink(f"{device}/driver").rpartition("/")[2]
    except ReadError:
        driver = ""
    return driver == "nvidia" and is_asleep(host, device)
