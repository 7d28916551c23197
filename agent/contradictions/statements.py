"""What one output states of the identity of its host: names, addresses, serial numbers, versions.

Two outputs with different values for one key are of two hosts, or of one host at two times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import Nic, Port
from agent.model.node import Event, shorten_host
from agent.model.report import Report

ADDRESS = r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_IS_ADDRESS = re.compile(ADDRESS)
_VENDORS = {"NVIDIA": "0x10de", "AMD": "0x1002", "Intel Habana": "0x1da3", "Amazon": "0x1d0f", "Huawei": "0x19e5"}
_ACCELERATORS = ("0x0302", "0x12")  # no display adapters: a host may have one of another maker
_KINDS = (  # by the begin of the class
    ("0x03", "a GPU"), ("0x12", "a GPU"), ("0x02", "a network controller"), ("0x0108", "an NVMe drive"),
    ("0x01", "a storage controller"), ("0x0604", "a PCIe port"), ("0x06", "a bridge"),
)  # fmt: skip
_OF_EVENTS = {  # kind of event: what it is about, and its maker
    "xid": ("a GPU", "0x10de"), "sxid": ("a bridge", "0x10de"), "mlx5": ("a network controller", "0x15b3"),
}  # fmt: skip
_OF_DRIVERS = {  # that name the function in every line: what they drive, and its maker
    "mlx5_core": ("a network controller", "0x15b3"),
    "bnxt_en": ("a network controller", "0x14e4"),
    "ice": ("a network controller", "0x8086"),
    "i40e": ("a network controller", "0x8086"),
    "amdgpu": ("a GPU", "0x1002"),
    "nvidia": (None, "0x10de"),
}
_NO_NAMES = ("", "localhost", "(none)", "unknown", "kernel")
_CONTAINER = re.compile(r"[0-9a-f]{12}")  # the name that a container has by default

_LINES_READ = 4000  # of a log, from either end, for the names of hosts
_LOG_HOST = re.compile(
    r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} {1,2}\d{1,2} [\d:]{8}|\d{4}-\d\d-\d\d[T ][\d:]{8}[^\s\[]{0,16}) "
    r"(?P<host>[A-Za-z0-9][\w.-]{0,63}) (?:kernel|systemd|nvidia-[\w-]{1,40})(?:\[\d{1,8}\])?: "
)
_LINUX = re.compile(r"\bLinux version (\S{1,80}) ")
_DRIVER = re.compile(r"NVRM: loading NVIDIA UNIX [^\n]{0,60}?Kernel Module[^\n]{0,20}? (\d{3}\.\d{1,3}(?:\.\d{1,3})?) ")
_GPU_UUID = re.compile(
    r"NVRM: GPU (?:at )?(?:PCI:)?(?P<bus>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.0)?: (?P<uuid>GPU-[0-9a-f-]{36})"
)
_DRIVEN = re.compile(rf"\b(?P<driver>{'|'.join(_OF_DRIVERS)}) {ADDRESS}(?: (?P<interface>en[\w.]{{1,14}}))?: ")


class Statement(NamedTuple):
    """One thing that an output states. `lasting`: of the host itself, not of what it runs now."""

    kind: str  # "host name", "serial number of"
    key: str  # what it is about: an address, a device, ""
    value: str
    lasting: bool = True

    def __str__(self) -> str:
        if self.kind == "part":
            return f"{self.key} is {self.value}"
        return f"{self.kind}{f' {self.key}' if self.key else ''}: {self.value}"


def list_statements(
    report: Report, is_log: bool, text: str, read_as: str, is_whole: bool = True, host: str | None = None
) -> list[Statement]:
    """What an output states, of the report of nothing else; of a log also what its lines do. `is_whole`: no filter and
    no option has cut its list. `host`: the one that wrote all lines of a log."""
    rows = [
        *_of_node(report),
        *_of_functions(report),
        *(row for gpu in report.topology.gpus for row in _of_gpu(gpu)),
        *(row for nic in report.topology.nics for row in _of_nic(nic)),
        *(row for event in report.events for row in _of_event(event)),
    ]
    for netdev in report.topology.netdevs:
        rows += [Statement("MAC address of", netdev.label, netdev.mac.lower())] if netdev.mac else []
        if netdev.pci and netdev.label != netdev.pci:
            rows.append(Statement("address of", netdev.label, netdev.pci))
    gpus = report.topology.gpus
    ends_early = any(gpu.driver_error for gpu in gpus)  # at a lost one
    if is_whole and read_as.startswith("nvidia-smi") and gpus and not ends_early:
        rows.append(Statement("number of GPUs that the driver lists", "", str(len(gpus)), False))
    makers = {_VENDORS.get(gpu.vendor or "", "") for gpu in report.topology.gpus}
    makers |= {f.vendor or "" for f in report.topology.pci if (f.class_code or "").startswith(_ACCELERATORS)}
    if len(makers) == 1 and (maker := makers.pop()):
        rows.append(Statement("maker of the accelerators", "", maker))
    if is_log:
        rows += _of_log(text, host)
    return list(dict.fromkeys(rows))


def _of_node(report: Report) -> Iterator[Statement]:
    node, driver = report.node, report.software.driver
    if node.hostname and (name := read_host_name(node.hostname)):
        yield Statement("host name", "", name)
    for kind, value in (("machine id", node.machine_id), ("serial number of the system", node.serial)):
        if value:
            yield Statement(kind, "", value)
    for kind, running in (("boot id", node.boot_id), ("kernel", node.kernel), ("NVIDIA driver", driver.version)):
        if running:
            yield Statement(kind, "", running, False)


def read_host_name(name: str) -> str | None:
    """A host's name without its domain; None where it is none of its own.

    >>> read_host_name("N7.example.org"), read_host_name("localhost"), read_host_name("4f3a9c01d2e7")
    ('n7', None, None)
    """
    short = shorten_host(name.lower())
    return None if short in _NO_NAMES or _CONTAINER.fullmatch(short) else short


def _of_functions(report: Report) -> Iterator[Statement]:
    for function in report.topology.pci:
        if function.class_code:
            yield Statement("part", function.id, _describe_class(function.class_code))
        if function.vendor:
            yield Statement("vendor of", function.id, function.vendor)
        if function.vendor and function.device:
            yield Statement("device at", function.id, f"{function.vendor}:{function.device}")
        if function.serial:
            yield Statement("serial number of", function.id, function.serial)


def _describe_class(code: str) -> str:
    return next((kind for begin, kind in _KINDS if code.startswith(begin)), f"of class {code}")


def _of_gpu(gpu: Gpu) -> Iterator[Statement]:
    if _IS_ADDRESS.fullmatch(gpu.id):
        if gpu.vendor != "Amazon":  # Trainium is no accelerator by its class
            yield Statement("part", gpu.id, "a GPU")
        if gpu.vendor in _VENDORS:
            yield Statement("vendor of", gpu.id, _VENDORS[gpu.vendor])
        if gpu.uuid:
            yield Statement("UUID of", gpu.id, gpu.uuid.lower())
        if gpu.serial:
            yield Statement("serial number of the GPU", gpu.id, gpu.serial)
    if gpu.index is not None and gpu.uuid:
        yield Statement("UUID of", f"GPU{gpu.index}", gpu.uuid.lower())
    if gpu.index is not None and gpu.name:
        yield Statement("model of", f"GPU{gpu.index}", gpu.name.removeprefix("NVIDIA "))


def _of_nic(nic: Nic) -> Iterator[Statement]:
    device = nic.rdma_device
    if nic.pci and nic.id == nic.pci and nic.accelerator is None:
        yield Statement("part", nic.pci, "a network controller")
    if device is None:
        return
    if nic.pci:
        yield Statement("address of", device, nic.pci)
    if guid := _read_guid(nic.node_guid):
        yield Statement("node GUID of", device, guid)
    if nic.firmware:
        yield Statement("firmware of", device, nic.firmware, False)
    for port in nic.ports:
        yield from _of_port(f"{device}/{port.port}", port)


def _of_port(name: str, port: Port) -> Iterator[Statement]:
    gid = next((gid.gid for gid in port.gids if gid.index == 0), None)
    guid = _read_guid(port.port_guid) or _read_guid(gid)
    if guid:  # tools print the lower half of the first GID as the GUID
        yield Statement("port GUID of", name, guid)
    if port.link_layer in ("InfiniBand", "Ethernet"):
        yield Statement("link layer of", name, port.link_layer, False)
    elif any(_IPOIB.match(netdev) for netdev in port.netdevs):
        yield Statement("link layer of", name, "InfiniBand", False)
    if port.lid:
        yield Statement("LID of", name, str(port.lid), False)
    if len(port.netdevs) == 1 and "bond" not in name + port.netdevs[0]:
        yield Statement("interface of", name, port.netdevs[0], False)


_IPOIB = re.compile(r"ib(?:\d|[pPs]\d)", re.ASCII)  # how udev names interfaces of InfiniBand, and no others


def _read_guid(text: str | None) -> str | None:
    digits = (text or "").replace(":", "").lower()[-16:]
    return digits if digits.strip("0") else None


def _of_event(event: Event) -> Iterator[Statement]:
    about = _OF_EVENTS.get(event.kind)
    if about and event.subject and _IS_ADDRESS.fullmatch(event.subject):
        yield Statement("part", event.subject, about[0])
        yield Statement("vendor of", event.subject, about[1])


def _of_log(text: str, host: str | None) -> Iterator[Statement]:
    """What lines of a log state that are no events; of what is stated again at each boot or load the last."""
    for name in [host] if host else list_log_hosts(text):
        yield Statement("host name", "", name)
    for kind, pattern in (("kernel", _LINUX), ("NVIDIA driver", _DRIVER)):
        if values := pattern.findall(text):
            yield Statement(kind, "", values[-1], False)
    for match in _GPU_UUID.finditer(text):
        yield Statement("UUID of", f"{match['bus']}.0", match["uuid"].lower())
    for match in _DRIVEN.finditer(text):
        part, vendor = _OF_DRIVERS[match["driver"]]
        if part:
            yield Statement("part", match["address"], part)
        if vendor:
            yield Statement("vendor of", match["address"], vendor)
        if match["interface"]:
            yield Statement("address of", match["interface"], match["address"])


def list_log_hosts(text: str) -> list[str]:
    """The hosts that wrote the lines of a log, in order."""
    lines = text.splitlines()
    if len(lines) > 2 * _LINES_READ:
        lines = lines[:_LINES_READ] + lines[-_LINES_READ:]
    names = (match["host"] for line in lines if (match := _LOG_HOST.match(line)))
    return list(dict.fromkeys(filter(None, _name_hosts(names).values())))


def _name_hosts(written: Iterable[str]) -> dict[str, str | None]:
    """The names of hosts by how lines have them: without the domain, where no two of one name differ in it.

    >>> _name_hosts(["n7", "n7.example.org"]), _name_hosts(["n7.a", "n7.b"])
    ({'n7': 'n7', 'n7.example.org': 'n7'}, {'n7.a': 'n7.a', 'n7.b': 'n7.b'})
    """
    names = {name: read_host_name(name) for name in dict.fromkeys(written)}
    domains: dict[str | None, set[str]] = {}
    for name, short in names.items():
        domains.setdefault(short, set()).add(name.lower().partition(".")[2])
    return {
        name: name.lower() if short and "." in name and len(domains[short] - {""}) > 1 else short
        for name, short in names.items()
    }


def split_by_host(text: str) -> dict[str, str]:
    """The lines of a log by the host that wrote them; a line without one belongs to the line before."""
    lines: dict[str, list[str]] = {}
    own: list[str] = []
    rows = text.splitlines(keepends=True)
    written = [match["host"] if (match := _LOG_HOST.match(line)) else None for line in rows]
    names = _name_hosts(filter(None, written))
    for line, host in zip(rows, written, strict=True):
        if host and (name := names[host]):
            own = lines.setdefault(name, [])
        own.append(line)
    return {name: "".join(parts) for name, parts in lines.items()}
