"""RDMA devices and their ports from sysfs: which there are, which PCI function each is, and what may be read of it.

The order matters: power/runtime_status before anything that could wake a function, and the PCI ids before any counter,
because reading the counters of a function that a fabric manager owns floods the kernel log. Kernel:
Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-devices-power; drivers/infiniband/core/sysfs.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from probes.host.interface import Absent, Host, ReadError
from probes.host_reader import SLEEPING, FileFacts, HostReader, may_hold, parse_files
from probes.probe import Reading
from probes.rdma import normalize as rdma_words
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaFacts, RdmaPort
from probes.text import is_pci_address, lazy_pattern, natural, parse_digits

# An empty GID, a counter that the driver does not keep, a rate that it cannot name (mana).
NO_VALUE = frozenset({"EINVAL", "EAGAIN", "EOPNOTSUPP", "ENOTSUP", "ENODATA", "ENXIO", "ENOSYS"})


class RdmaFiles(HostReader):
    """One probe's questions to RDMA drivers."""

    def attributes(self, directory: str, names: Iterable[str], source: str | None = None) -> dict[str, str]:
        """name -> text of the files that state something. One that holds nothing but its own name was blanked out by
        whoever published the tree: it is left out, too."""
        values = super().attributes(directory, names, source)
        return {name: text for name, text in values.items() if text not in ("", name)}

    def listed(self, directory: str) -> list[str]:
        """The names in a folder; none where there is no such folder."""
        return self.names(directory) or []

    def _note(self, why: ReadError) -> None:
        if why.code not in NO_VALUE:
            super()._note(why)


MOST_GIDS = 256  # entries of one GID table that are read
MOST_COUNTERS = 512  # files of one counter folder that are read (Omni-Path has thousands)
PKEY_BLOCK = 32  # a subnet manager writes P_Key tables in blocks of this many
ALL_ONES = (1 << 64) - 1  # what a driver prints for a counter that it could not read

_STATE_OF_ACCELERATOR = ("state", "phys_state")
OF_ACCELERATOR = "its ports are those of an accelerator: its firmware answers every counter in about 100 ms"
_COUNT = lazy_pattern(r"[0-9]{1,20}")
_REPRESENTOR = lazy_pattern(r"pf[0-9]{1,3}[sv]f[0-9]{1,4}$")  # of a virtual or sub-function: not the port's own
_NOT_COUNTERS = frozenset({"lifespan"})  # milliseconds for which the driver keeps its readings


def read_ports(ask: RdmaFiles, place: str, below: str | None, limited: str | None) -> tuple[RdmaPort, ...]:
    """Every port of the device in folder `place`, which hangs from the device in folder `below`.

    Of a limited function neither counters nor tables are read.
    """
    numbers = _list_numbers(ask.listed(f"{place}/ports"))
    netdevs = _netdevs(ask, below)
    ports = [
        _port(ask, f"{place}/ports/{number}", number, _of_port(netdevs, number, len(numbers)), limited)
        for number in numbers
    ]
    if len(ports) == 1 and not limited:
        extra = _counters(ask, f"{place}/hw_counters")  # some drivers count by device
        if extra:
            ports[0] = ports[0]._replace(hw_counters={**extra, **(ports[0].hw_counters or {})})
    return tuple(ports)


def _port(ask: RdmaFiles, place: str, number: int, netdevs: set[str], limited: str | None) -> RdmaPort:
    state = parse_files(_STATE, ask.attributes(place, _STATE_OF_ACCELERATOR if limited == OF_ACCELERATOR else _STATE))
    gids, gids_known = ([], False) if limited else _gids(ask, place)
    netdevs = netdevs | {gid.netdev for gid in gids if gid.netdev}
    return RdmaPort(
        **state,
        port=number,
        port_guid=_port_guid(gids) if state.get("link_layer") == "InfiniBand" else None,
        gids=tuple(gids),
        gids_known=gids_known,
        pkeys=() if limited else tuple(_pkeys(ask, place)),
        netdevs=tuple(sorted(netdevs, key=natural)),
        counters=None if limited else _counters(ask, f"{place}/counters"),
        hw_counters=None if limited else _counters(ask, f"{place}/hw_counters"),
    )


def _word(text: str) -> str | None:
    """ "4: ACTIVE" without its number."""
    return text.partition(": ")[2] or None


_STATE: FileFacts = {
    "link_layer": ("link_layer", str),
    "state": ("state", _word),
    "phys_state": ("phys_state", _word),
    "rate": ("rate_text", str),
    "lid": ("lid", rdma_words.number),
    "sm_lid": ("sm_lid", rdma_words.number),
}


def _gids(ask: RdmaFiles, place: str) -> tuple[list[GidEntry], bool]:
    """(The used entries, whether the whole table was read)."""
    indexes = _list_numbers(ask.listed(f"{place}/gids"))
    before = ask.missing
    values = ask.attributes(f"{place}/gids", map(str, indexes[:MOST_GIDS]))
    used = {name: gid for name, text in values.items() if (gid := rdma_words.gid(text))}
    types = ask.attributes(f"{place}/gid_attrs/types", used) if used else {}
    netdevs = ask.attributes(f"{place}/gid_attrs/ndevs", used) if used else {}
    gids = [GidEntry(int(name), gid, types.get(name), netdevs.get(name)) for name, gid in used.items()]
    gids.sort(key=lambda gid: gid.index)
    return gids, 0 < len(indexes) <= MOST_GIDS and ask.missing == before


def _port_guid(gids: list[GidEntry]) -> str | None:
    """On InfiniBand GID 0 is the subnet prefix and the port GUID, by definition."""
    return gids[0].gid[20:] if gids and gids[0].index == 0 else None


def _pkeys(ask: RdmaFiles, place: str) -> list[str]:
    """Used P_Keys in table order. Each read can be a firmware command: an unused block ends the search. Without key 0,
    of which a paste may show none, the others have no known place."""
    numbers = _list_numbers(ask.listed(f"{place}/pkeys"))
    indexes = iter(numbers if numbers[:1] == [0] else ())
    used: list[str] = []
    while block := list(islice(indexes, PKEY_BLOCK)):
        values = ask.attributes(f"{place}/pkeys", map(str, block))
        keys = [key for index in block if (key := values.get(str(index))) and rdma_words.number(key)]
        if not keys:
            break
        used += keys
    return used


def _counters(ask: RdmaFiles, folder: str) -> dict[str, int] | None:
    """Counters by name; those that the driver cannot give are left out. None where there is no such folder."""
    names = [name for name in ask.listed(folder) if name not in _NOT_COUNTERS]
    if not names:
        return None
    if len(names) > MOST_COUNTERS:
        ask.gap(f"{folder}: only {MOST_COUNTERS} of {len(names)} counters were read")
    values = ask.attributes(folder, names[:MOST_COUNTERS])
    read = {name: int(text) for name, text in sorted(values.items()) if _COUNT.fullmatch(text)}
    return {name: value for name, value in read.items() if value < ALL_ONES}


def _netdevs(ask: RdmaFiles, below: str | None) -> dict[str, int | None]:
    """Interface -> number of its port (from 0), for the interfaces of the device that an RDMA device hangs from."""
    names: dict[str, int | None] = {}
    for name in ask.listed(f"{below}/net") if below else ():
        if _REPRESENTOR.search(name):
            continue
        files = ask.attributes(f"{below}/net/{name}", ("dev_port", "dev_id"))
        names[name] = rdma_words.number(files.get("dev_port", files.get("dev_id")))
    return names


def _of_port(netdevs: dict[str, int | None], number: int, ports: int) -> set[str]:
    """The interfaces of one port; one that does not show its port belongs to the only one."""
    return {name for name, at in netdevs.items() if at == number - 1 or (at is None and ports == 1)}


def _list_numbers(names: Iterable[str]) -> list[int]:
    return sorted(number for name in names if (number := parse_digits(name, 6)) is not None)


CLASS = "/sys/class/infiniband"
FUNCTIONS = "/sys/bus/pci/devices"
MOST_FUNCTIONS = 4096  # how many PCI functions are looked into where there is no class folder

_IDENTITY: FileFacts = {
    "node_type": ("node_type", _word),
    "node_guid": ("node_guid", rdma_words.guid),
    "sys_image_guid": ("system_image_guid", rdma_words.guid),
    "node_desc": ("node_description", str),
    "fw_ver": ("firmware", str),
    "board_id": ("board_id", str),
    "hca_type": ("hca_type", str),
}
_PCI_IDS = ("vendor", "device", "class", "subsystem_vendor", "subsystem_device")
_SOFTWARE_DESCRIPTIONS = ("rxe", "Software iWARP stack")  # what the two drivers call themselves
_ACCELERATOR_CLASS, _ACCELERATOR_NAMES = "0x1200", ("hbl_", "hlib_")  # the names are those of habanalabs
_MELLANOX, _CONNECTX_7, _INFINIBAND_CLASS = "0x15b3", "0x1021", "0x0207"
_SWITCH_MANAGEMENT = "0x0087"  # subsystem of the ConnectX-7 that manages the NVLink switches of HGX B200 and B300


class _RdmaFunction:
    """A device while it is read: where it lies, and what its function states of itself."""

    def __init__(self, name: str, place: str, real: str, below: str | None, function: str | None) -> None:
        self.name = name
        self.place = place
        self.real = real  # the place with every link followed
        self.below = below  # the folder of the device that it hangs from
        self.function = function  # the folder of its PCI function
        self.asleep = False
        self.pci: dict[str, str] = {}
        self.identity: dict[str, str] = {}

    @property
    def address(self) -> str | None:
        return self.function.rsplit("/", 1)[1] if self.function else None

    @property
    def software(self) -> bool:
        """`parent` is an attribute of soft RoCE alone; old kernels hang soft devices below a PCI function."""
        described = self.identity.get("node_desc") in _SOFTWARE_DESCRIPTIONS
        return "/devices/virtual/" in self.real or "parent" in self.identity or described


def read(host: Host) -> Reading:
    """`RdmaFacts` of a host. Raises Absent where the source cannot show whether there are devices."""
    ask = RdmaFiles(host)
    source, places = _places(ask)
    functions = [_find_function(ask, name, place) for name, place in places]
    devices = [_device(ask, function, _find_limit(function, functions)) for function in functions]
    ordered = sorted(filter(None, devices), key=lambda device: natural(device.name))
    bare = [device.name for device in ordered if not device.ports and not device.asleep]
    if bare:
        ask.gap(f"the source holds no ports of {', '.join(bare[:16])}")
    return Reading(RdmaFacts(tuple(ordered)), (source,), ask.missing)


def functions(host: Host) -> dict[str, str | None]:
    """PCI functions with an RDMA device that is awake -> why their counters must not be read, or None."""
    ask = RdmaFiles(host)
    try:
        function_list = [_find_function(ask, name, place) for name, place in _places(ask)[1]]
    except ReadError:
        return {}
    return {
        function.address: _find_limit(function, function_list)
        for function in function_list
        if function.address and not function.asleep
    }


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
    rdma_functions = []
    for function in ask.listed(FUNCTIONS)[:MOST_FUNCTIONS]:
        if may_hold(ask.host, f"{FUNCTIONS}/{function}", "infiniband"):
            folder = f"{FUNCTIONS}/{function}/infiniband"
            rdma_functions += [(name, f"{folder}/{name}") for name in ask.listed(folder)]
    return rdma_functions


def _find_function(ask: RdmaFiles, name: str, place: str) -> _RdmaFunction:
    real = _resolve(ask, place) or place
    below = _resolve(ask, f"{place}/device")
    if below is None and not real.startswith(CLASS):
        below = real.rsplit("/infiniband/", 1)[0]
    function = _RdmaFunction(name, place, real, below, _function(below))
    if function.function:
        power = ask.attributes(f"{function.function}/power", ("runtime_status",))
        function.asleep = power.get("runtime_status") in SLEEPING
        if not function.asleep:
            function.pci = ask.attributes(function.function, _PCI_IDS)
    if function.asleep:
        ask.gap(f"{name}: {function.address} is suspended and was left asleep")
    else:
        function.identity = ask.attributes(place, (*_IDENTITY, "parent"))
    return function


def _resolve(ask: RdmaFiles, path: str) -> str | None:
    try:
        return ask.host.resolve(path)
    except ReadError:
        return None


def _function(below: str | None) -> str | None:
    """The nearest PCI function at or above a device's folder (a sub-function hangs below one)."""
    parts = (below or "").split("/")
    for last in range(len(parts), 0, -1):
        if is_pci_address(parts[last - 1]):
            return "/".join(parts[:last])
    return None


def _find_limit(function: _RdmaFunction, every: Sequence[_RdmaFunction]) -> str | None:
    """Why a function's counters must not be read: it belongs to the fabric manager or an accelerator, not to jobs."""
    if function.pci.get("class", "").startswith(_ACCELERATOR_CLASS) or function.name.startswith(_ACCELERATOR_NAMES):
        return OF_ACCELERATOR
    ids = [function.pci.get(name) for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")]
    if ids == [_MELLANOX, _CONNECTX_7, _MELLANOX, _SWITCH_MANAGEMENT]:
        return "it manages the NVLink switches (15b3:1021, subsystem 15b3:0087) and belongs to the fabric manager"
    if not _is_infiniband_connectx_7(function):
        return None
    card = [other for other in every if _is_infiniband_connectx_7(other) and _slot(other) == _slot(function)]
    functions = {(other.address or "")[-1:] for other in card}
    images = {other.identity.get("sys_image_guid") for other in card}
    if functions == {"0", "1", "2", "3"} and len(images) == 1 and None not in images:
        return "it is one of four InfiniBand functions of one ConnectX-7, which manages the NVLink switches"
    return None


def _is_infiniband_connectx_7(function: _RdmaFunction) -> bool:
    ids = function.pci
    known = (ids.get("vendor"), ids.get("device")) == (_MELLANOX, _CONNECTX_7)
    return known and ids.get("class", "").startswith(_INFINIBAND_CLASS)


def _slot(function: _RdmaFunction) -> str:
    return (function.address or "").rpartition(".")[0]


def _device(ask: RdmaFiles, function: _RdmaFunction, limited: str | None) -> RdmaDevice | None:
    if function.asleep:
        return RdmaDevice(function.name, address=function.address, asleep=True)
    identity = function.identity
    ports = read_ports(ask, function.place, function.below, limited)
    if not ports and not identity and _tells_all(ask.host) and not ask.is_there(function.place):
        ask.gap(f"{function.name} vanished while it was read")
        return None
    return RdmaDevice(
        **parse_files(_IDENTITY, identity),
        name=function.name,
        address=None if function.software else function.address,
        software=function.software,
        limited=limited,
        ports=ports,
    )
