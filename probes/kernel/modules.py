"""Kernel modules: which are loaded, the NVIDIA driver, and whose RDMA stack this is.

Kernel pages: Documentation/ABI/testing/sysfs-module; /proc/driver/nvidia is written by the NVIDIA driver
(nv-procfs.c), /sys/kernel/mm/memory_peers by ib_core of OFED.
"""

import re
from collections.abc import Iterable, Mapping

from probes.host.interface import FILTERED, Absent, Failed, Host
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError, lazy_pattern, require

FOLDER = "/sys/module"
LOADED = "/proc/modules"
LOADED_LIMIT_BYTES = 1 << 20
NVIDIA = "/proc/driver/nvidia"
NVIDIA_LIMIT_BYTES = 64 << 10
PEERS = "/sys/kernel/mm/memory_peers"
# What is installed of the driver, whether it is loaded or not: its library, its sources for DKMS, its module's file
LIBRARIES = tuple(
    f"/usr/lib{folder}/libnvidia-ml.so.1" for folder in ("/x86_64-linux-gnu", "/aarch64-linux-gnu", "64", "")
)
DKMS = ("/var/lib/dkms/nvidia", "/var/lib/dkms/nvidia-open")
BUILT = "/lib/modules"
BUILT_LIMIT_BYTES = 8 << 20
_NUMBER = lazy_pattern(r"\d{1,5}\.\d{1,5}(?:\.\d{1,5})?")

FAMILIES = ("nvidia", "nv_peer_mem", "mlx", "ib_", "rdma_", "hns_roce", "habanalabs")
OF_INTEREST = frozenset(
    {"gdrdrv", "nouveau", "amdgpu", "vfio_pci", "iw_cm", "bnxt_re", "irdma", "i40iw", "efa", "ionic", "ionic_rdma"}
    | {"habanalabs", "neuron", "drv_pcie_host"}
    | {"hfi1", "qib", "siw", "mana_ib", "erdma"}
)
RDMA_STACK = ("ib_core", "mlx5_core", "mlx4_core")  # whose presence states that there is a stack
# OFED and DOCA number their modules year.month-build ("24.10-1.1.4"); the kernel's own reported "5.0-0" or nothing.
OFED_VERSION = lazy_pattern(r"\d{1,3}\.\d{1,3}-\d{1,3}\.\d{1,3}\.\d{1,3}(?:\.\d{1,5})*")


class KernelModule(NamedTuple):
    """One loaded kernel module."""

    name: str
    version: str | None = None
    users: tuple[str, ...] = ()


class NvidiaGpu(NamedTuple):
    """What the driver states of a GPU that it holds, also of one that it cannot open (/proc/driver/nvidia/gpus)."""

    model: str | None = None
    uuid: str | None = None
    vbios: str | None = None
    excluded: bool | None = None


class ModuleFacts(NamedTuple):
    """Loaded modules of interest, and what they state of the RDMA stack and the NVIDIA driver."""

    modules: tuple[KernelModule, ...]
    nvidia_version: str | None = None  # /proc/driver/nvidia/version
    nvidia_open: bool | None = None
    nvidia_params: Mapping[str, str] | None = None  # /proc/driver/nvidia/params
    nvidia_gpus: tuple[str, ...] = ()  # PCI addresses under /proc/driver/nvidia/gpus
    peer_memory_clients: tuple[str, ...] = ()  # /sys/kernel/mm/memory_peers
    ofed: str | None = None  # OFED version; None: inbox or not known
    rdma_stack: str = "unknown"  # inbox | ofed | unknown
    modules_known: bool = True  # False: the source lists no modules; one that is not named here may be loaded
    nvidia_library: str | None = None  # version of libnvidia-ml on disk
    nvidia_packages: tuple[str, ...] = ()  # versions that DKMS has
    nvidia_built: bool | None = None  # a module for the running kernel is on disk; None: not looked for, or not known
    nvidia_held: Mapping[str, NvidiaGpu] | None = None  # PCI address -> information, of sources without NVML


def read(host: Host) -> Reading:
    """Loaded modules and what the NVIDIA driver shows of itself. Raises Absent where the source has nothing of it."""
    reader = HostReader(host)
    loaded = reader.names(FOLDER)
    users = reader.parsed(reader.text(LOADED, LOADED_LIMIT_BYTES), parse_modules)
    version_text = reader.text(f"{NVIDIA}/version")
    gpus = reader.names(f"{NVIDIA}/gpus")
    if loaded is None and users is None and version_text is None and gpus is None:
        raise Absent(f"none of {FOLDER}, {LOADED} and {NVIDIA} is here")
    known = loaded is not None or users is not None
    if not known:
        reader.gap(f"loaded modules: neither {FOLDER} nor {LOADED} is in this source")
    names = sorted(filter(is_relevant, {*(loaded or ()), *(users or {})}))
    modules = tuple(KernelModule(name, _version(reader, name), (users or {}).get(name, ())) for name in names)
    stack, ofed = rdma_stack(modules, known)
    nvidia_version, nvidia_open = reader.parsed(version_text, parse_nvidia_version) or (None, None)
    library, packages = _library(reader), _packages(reader)
    installed = bool(library or packages)
    params = reader.text(f"{NVIDIA}/params", NVIDIA_LIMIT_BYTES)
    facts = ModuleFacts(
        modules=modules,
        nvidia_version=nvidia_version,
        nvidia_open=nvidia_open,
        nvidia_params=parse_params(params) if params is not None else None,
        nvidia_gpus=tuple(name.lower() for name in gpus or ()),
        peer_memory_clients=tuple(reader.names(PEERS) or ()),
        ofed=ofed,
        rdma_stack=stack,
        modules_known=known,
        nvidia_library=library,
        nvidia_packages=packages,
        nvidia_built=_built(reader) if installed and known and "nvidia" not in names else None,
        nvidia_held=None
        if host.live or host.kind == "capture"
        else _read_gpu_files(reader, gpus or ()),  # those asked NVML
    )
    if gpus is not None:
        reader.answered(f"{NVIDIA}/gpus")
    if loaded is not None:
        reader.answered(FOLDER)
    return Reading(facts, reader.sources, reader.missing)


def read_lsmod(host: Host) -> Reading:
    """Loaded modules as lsmod prints them: names and users, no versions. Raises ReadError."""
    answer = host.run("lsmod")
    if answer.stderr.startswith(FILTERED):
        raise Failed(f"lsmod: {answer.stderr.removeprefix(FILTERED)}, so that other modules may be loaded")
    if answer.returncode != 0:
        raise Failed(f"lsmod: exit {answer.returncode}: {answer.stderr.strip()[:200]}")
    try:
        users = parse_lsmod(answer.stdout)
    except ParseError as why:
        raise Failed(str(why)) from why
    modules = tuple(KernelModule(name, users=users[name]) for name in sorted(filter(is_relevant, users)))
    return Reading(ModuleFacts(modules), ("lsmod",), "lsmod names no versions: the RDMA stack's kind is not known")


def is_relevant(name: str) -> bool:
    """Whether a module is of a GPU, of RDMA, or in their way.

    >>> is_relevant("mlx5_ib"), is_relevant("snd_hda_intel")
    (True, False)
    """
    return name in OF_INTEREST or name.startswith(FAMILIES)


def parse_modules(text: str) -> dict[str, tuple[str, ...]]:
    r"""Users of every module in /proc/modules; one that is being unloaded is left out. Raises ParseError.

    >>> parse_modules("ib_core 442368 2 rdma_cm,mlx5_ib, Live 0x0000000000000000\ngdrdrv 24576 0 - Live 0x0\n")
    {'ib_core': ('mlx5_ib', 'rdma_cm'), 'gdrdrv': ()}
    """
    users: dict[str, tuple[str, ...]] = {}
    for line in filter(str.strip, text.splitlines()):
        words = line.split()
        require(len(words) >= 5 and words[1].isdecimal(), f"{LOADED}: not a module: {line[:80]!r}")
        if words[4] != "Unloading":
            users[words[0]] = _names(words[3])
    return users


def parse_lsmod(text: str) -> dict[str, tuple[str, ...]]:
    r"""Users of every module, with or without the heading. Raises ParseError.

    >>> parse_lsmod("Module  Size  Used by\nnvidia_peermem  16384  0\nnvidia 56598528 147 nvidia_uvm,gdrdrv\n")
    {'nvidia_peermem': (), 'nvidia': ('gdrdrv', 'nvidia_uvm')}
    """
    users: dict[str, tuple[str, ...]] = {}
    for line in filter(str.strip, text.splitlines()):
        words = line.split()
        if words[:2] == ["Module", "Size"]:
            continue
        if len(words) < 3 or not words[1].isdecimal() or not words[2].lstrip("-").isdecimal():
            raise ParseError(f"lsmod: not a module: {line[:80]!r}")
        users[words[0]] = _names(words[3] if len(words) > 3 else "")
    require(users, "lsmod: no module is named")
    return users


def parse_nvidia_version(text: str) -> tuple[str, bool]:
    """The driver's version, and whether its kernel modules are the open ones. Raises ParseError.

    >>> parse_nvidia_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (u@h)")
    ('570.86.15', True)
    >>> parse_nvidia_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023")
    ('535.54.03', False)
    """
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    found = re.search(r"Kernel Module(?: for \S{1,32})? {1,8}(\d{1,5}\.\d{1,5}(?:\.\d{1,5})?)(?!\S)", line)
    match = require(found, f"{NVIDIA}/version: no NVRM version in {text[:80]!r}")
    return match[1], "Open Kernel Module" in line


def parse_params(text: str) -> dict[str, str]:
    r"""The driver's module parameters as they are in force.

    >>> parse_params('EnableStreamMemOPs: 0\nRegistryDwords: "PeerMappingOverride=1;"\n')
    {'EnableStreamMemOPs': '0', 'RegistryDwords': 'PeerMappingOverride=1;'}
    """
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip().strip('"') for key, colon, value in pairs if colon and key.strip()}


def parse_information(text: str) -> NvidiaGpu:
    r"""A GPU's information; what the driver prints as question marks or as "Unknown" is not known.

    >>> parse_information("Model: \t\t NVIDIA L4\nGPU UUID: \t GPU-????\nVideo BIOS: \t 95.04\nGPU Excluded:\t No\n")
    NvidiaGpu(model='NVIDIA L4', uuid=None, vbios='95.04', excluded=False)
    >>> parse_information("Model: \t\t Unknown\n").model is None  # of one that the driver could not start
    True
    """
    values = {
        key: value for key, value in parse_params(text).items() if value not in ("", "Unknown") and "?" not in value
    }
    excluded = {"Yes": True, "No": False}.get(values.get("GPU Excluded", ""))
    return NvidiaGpu(values.get("Model"), values.get("GPU UUID"), values.get("Video BIOS"), excluded)


def rdma_stack(modules: Iterable[KernelModule], known: bool) -> tuple[str, str | None]:
    """Whose RDMA stack is loaded, and the OFED version.

    >>> rdma_stack([KernelModule("mlx5_core", "24.10-1.1.4")], known=True)
    ('ofed', '24.10-1.1.4')
    >>> rdma_stack([KernelModule("mlx5_core")], known=True)
    ('inbox', None)
    """
    versions = {module.name: module.version for module in modules}
    for name in (*RDMA_STACK, "mlx_compat"):
        version = versions.get(name)
        if version and OFED_VERSION.fullmatch(version):
            return "ofed", version
    if "mlx_compat" in versions:  # only OFED has it
        return "ofed", None
    return ("inbox" if known and any(name in versions for name in RDMA_STACK) else "unknown"), None


def _version(reader: HostReader, name: str) -> str | None:
    return reader.text(f"{FOLDER}/{name}/version", source=f"{FOLDER}/*/version") or None


def _library(reader: HostReader) -> str | None:
    """The version in the name that the library's link leads to."""
    targets = (reader.link(path) for path in LIBRARIES)
    name = next((target for target in targets if target), "").rpartition("libnvidia-ml.so.")[2]
    return name if _NUMBER.fullmatch(name) else None


def _packages(reader: HostReader) -> tuple[str, ...]:
    packages = {name for folder in DKMS for name in reader.names(folder) or () if _NUMBER.fullmatch(name)}
    return tuple(sorted(packages))


def _built(reader: HostReader) -> bool | None:
    """Whether modules.dep of the running kernel has the driver. It is long: read only where nothing else shows it."""
    release = (reader.text("/proc/sys/kernel/osrelease") or "").strip()
    if not release or "/" in release:
        return None
    text = reader.text(f"{BUILT}/{release}/modules.dep", BUILT_LIMIT_BYTES)
    return None if text is None else re.search(r"(?:^|/)nvidia\.ko(?:\.\w+)?:", text, re.MULTILINE) is not None


def _read_gpu_files(reader: HostReader, gpus: Iterable[str]) -> dict[str, NvidiaGpu] | None:
    gpus_by_address: dict[str, NvidiaGpu] = {}
    for gpu in gpus:
        text = reader.text(f"{NVIDIA}/gpus/{gpu}/information", source=f"{NVIDIA}/gpus/*/information")
        if text:
            gpus_by_address[gpu.lower()] = parse_information(text)
    return gpus_by_address or None


def _names(users: str) -> tuple[str, ...]:
    """Users without the kernel's own marks ("[permanent]")."""
    return tuple(sorted(name for name in users.split(",") if name and name != "-" and not name.startswith("[")))
