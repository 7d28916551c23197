"""Reads RDMA devices from sysfs: which there are, which PCI function each is, and what may be read of it.

The order matters: power/runtime_status before anything that could wake a function, and the PCI ids before any
counter, because reading the counters of a function that a fabric manager owns floods the kernel log.
Kernel pages: Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-devices-power.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from probes.host.interface import Absent, Host, Unanswered
from probes.probe import Probe, Reading
from probes.rdma import normalize as rdma_words
from probes.rdma.attributes import RdmaFiles
from probes.rdma.facts import RdmaDevice, RdmaFacts
from probes.rdma.sysfs_ports import read_ports

CLASS = "/sys/class/infiniband"
FUNCTIONS = "/sys/bus/pci/devices"
MOST_FUNCTIONS = 4096  # how many PCI functions are looked into where there is no class folder

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_IDENTITY = ("node_type", "node_guid", "sys_image_guid", "node_desc", "fw_ver", "board_id", "hca_type", "parent")
_PCI_IDS = ("vendor", "device", "class", "subsystem_vendor", "subsystem_device")
_SOFTWARE_DESCRIPTIONS = ("rxe", "Software iWARP stack")  # what the two drivers call themselves
_MELLANOX, _CONNECTX_7, _INFINIBAND_CLASS = "0x15b3", "0x1021", "0x0207"
_SWITCH_MANAGEMENT = "0x0087"  # subsystem of the ConnectX-7 that manages the NVLink switches of HGX B200 and B300


@dataclass
class _Found:
    """A device while it is read: where it lies, and what its function says of itself."""

    name: str
    place: str
    real: str  # the place with every link followed
    below: str | None  # the folder of the device that it hangs from
    function: str | None  # the folder of its PCI function
    asleep: bool = False
    pci: dict[str, str] = field(default_factory=dict)
    identity: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str | None:
        return self.function.rsplit("/", 1)[1] if self.function else None

    @property
    def software(self) -> bool:
        """`parent` is an attribute of soft RoCE alone; old kernels hang soft devices below a PCI function."""
        described = self.identity.get("node_desc") in _SOFTWARE_DESCRIPTIONS
        return "/devices/virtual/" in self.real or "parent" in self.identity or described


def read(host: Host) -> Reading:
    """`RdmaFacts` of a host. Raises Absent where the source cannot say whether there are devices."""
    ask = RdmaFiles(host)
    source, places = _places(ask)
    found = [_found(ask, name, place) for name, place in places]
    devices = [_device(ask, each, _limited(each, found)) for each in found]
    ordered = sorted(filter(None, devices), key=lambda device: rdma_words.in_order(device.name))
    bare = [device.name for device in ordered if not device.ports and not device.asleep]
    if bare:
        ask.gap(f"the source holds no ports of {', '.join(bare[:16])}")
    return Reading(RdmaFacts(tuple(ordered)), (source,), ask.missing)


PROBE = Probe("rdma", read, bound_seconds=10.0)


def functions(host: Host) -> dict[str, str | None]:
    """PCI functions with an RDMA device that is awake -> why their counters must not be read, or None."""
    ask = RdmaFiles(host)
    try:
        found = [_found(ask, name, place) for name, place in _places(ask)[1]]
    except Unanswered:
        return {}
    return {each.address: _limited(each, found) for each in found if each.address and not each.asleep}


def _places(ask: RdmaFiles) -> tuple[str, list[tuple[str, str]]]:
    """(Where they were looked for, (name, folder) of every device)."""
    try:
        return CLASS, [(name, f"{CLASS}/{name}") for name in ask.host.listdir(CLASS)]
    except Absent:
        if _tells_all(ask.host):
            ask.host.listdir("/sys/class")  # no sysfs at all is no answer: this raises then
            return CLASS, []
    below = _below_functions(ask)
    if not below:
        raise Absent(f"the source holds no {CLASS}")
    ask.gap(f"the source holds no {CLASS}: only what lies below PCI functions is known")
    return f"{FUNCTIONS}/*/infiniband", below


def _tells_all(host: Host) -> bool:
    """Whether what is not there was not there on the machine either. Trees of other tools are pruned."""
    return host.live or host.kind in ("live", "capture")


def _below_functions(ask: RdmaFiles) -> list[tuple[str, str]]:
    """Devices of a tree that kept the folders of the PCI functions, but not the classes."""
    found = []
    for function in ask.listed(FUNCTIONS)[:MOST_FUNCTIONS]:
        folder = f"{FUNCTIONS}/{function}/infiniband"
        found += [(name, f"{folder}/{name}") for name in ask.listed(folder)]
    return found


def _found(ask: RdmaFiles, name: str, place: str) -> _Found:
    real = _resolved(ask, place) or place
    below = _resolved(ask, f"{place}/device")
    if below is None and not real.startswith(CLASS):
        below = real.rsplit("/infiniband/", 1)[0]
    each = _Found(name, place, real, below, _function(below))
    if each.function:
        each.asleep = _asleep(ask, each.function)
        if not each.asleep:
            each.pci = ask.attributes(each.function, _PCI_IDS)
    if each.asleep:
        ask.gap(f"{name}: {each.address} is suspended and was left asleep")
    else:
        each.identity = ask.attributes(place, _IDENTITY)
    return each


def _resolved(ask: RdmaFiles, path: str) -> str | None:
    try:
        return ask.host.resolve(path)
    except Unanswered:
        return None


def _function(below: str | None) -> str | None:
    """The nearest PCI function at or above a device's folder (a sub-function hangs below one)."""
    parts = (below or "").split("/")
    for last in range(len(parts), 0, -1):
        if _ADDRESS.fullmatch(parts[last - 1]):
            return "/".join(parts[:last])
    return None


def _asleep(ask: RdmaFiles, function: str) -> bool:
    """Whether a read could wake the function."""
    said = ask.attributes(f"{function}/power", ("runtime_status",))
    return said.get("runtime_status") in ("suspended", "suspending")


def _limited(each: _Found, every: Sequence[_Found]) -> str | None:
    """Why a function's counters must not be read: it belongs to the fabric manager, not to jobs."""
    ids = [each.pci.get(name) for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")]
    if ids == [_MELLANOX, _CONNECTX_7, _MELLANOX, _SWITCH_MANAGEMENT]:
        return "it manages the NVLink switches (15b3:1021, subsystem 15b3:0087) and belongs to the fabric manager"
    if not _is_infiniband_connectx_7(each):
        return None
    card = [other for other in every if _is_infiniband_connectx_7(other) and _slot(other) == _slot(each)]
    functions = {(other.address or "")[-1:] for other in card}
    images = {other.identity.get("sys_image_guid") for other in card}
    if functions == {"0", "1", "2", "3"} and len(images) == 1 and None not in images:
        return "it is one of four InfiniBand functions of one ConnectX-7, which manages the NVLink switches"
    return None


def _is_infiniband_connectx_7(each: _Found) -> bool:
    ids = each.pci
    known = (ids.get("vendor"), ids.get("device")) == (_MELLANOX, _CONNECTX_7)
    return known and ids.get("class", "").startswith(_INFINIBAND_CLASS)


def _slot(each: _Found) -> str:
    return (each.address or "").rpartition(".")[0]


def _device(ask: RdmaFiles, each: _Found, limited: str | None) -> RdmaDevice | None:
    if each.asleep:
        return RdmaDevice(each.name, address=each.address, asleep=True)
    said = each.identity
    ports = read_ports(ask, each.place, each.below, limited is not None)
    if not ports and not said and _tells_all(ask.host) and _gone(ask, each.place):
        ask.gap(f"{each.name} vanished while it was read")
        return None
    return RdmaDevice(
        name=each.name,
        address=None if each.software else each.address,
        node_type=said.get("node_type", "").partition(": ")[2] or None,
        firmware=said.get("fw_ver"),
        board_id=said.get("board_id"),
        hca_type=said.get("hca_type"),
        node_guid=rdma_words.guid(said.get("node_guid")),
        system_image_guid=rdma_words.guid(said.get("sys_image_guid")),
        node_description=said.get("node_desc"),
        software=each.software,
        limited=limited,
        ports=ports,
    )


def _gone(ask: RdmaFiles, place: str) -> bool:
    try:
        ask.host.listdir(place)
    except Absent:
        return True
    except Unanswered:
        return False
    return False
