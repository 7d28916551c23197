"""Cables and optical modules: the memory in which each shows what it is and measures (SFF-8024, CMIS, SFF-8636, -8472).

Asked by MODULE_EEPROM_GET of ethtool's netlink, which needs CAP_NET_ADMIN. A page takes 10 to 100 ms (I2C) under the
RTNL lock, so this probe has its own bound, and of a cable only three short parts are read. Nothing is written, no page
is selected by us; reading flags clears those of the past, as with any tool that reads a module.
"""

import time
from typing import Literal

from probes.ethtool.probe import REPRESENTOR, family_of
from probes.host.interface import Absent, Denied, Host, ReadError
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.netdev import probe as netdev
from probes.netdev.rtnetlink import MOST_INTERFACES
from probes.netdev.sysfs import PCI
from probes.optics.facts import ModuleReading
from probes.probe import Reading
from probes.rdma import sysfs as rdma_sysfs
from probes.text import ParseError

SECONDS = 12.0  # for all interfaces together
INFINIBAND = 32  # ARPHRD: the interfaces of such ports have no operation for it
NEEDS = "reading a module's memory needs CAP_NET_ADMIN"
VIRTUAL = (
    "0x1014",
    "0x1016",
    "0x1018",
    "0x101a",
    "0x101c",
    "0x101e",
)  # virtual functions of mlx5, as a guest sees them


class ModuleSocket(NamedTuple):
    """What is plugged into the port of one interface; else why that is not known."""

    name: str
    module: ModuleReading | None = None
    reason: str | None = None
    reason_code: Literal["no-module", "needs-root"] | None = None


class OpticsFacts(NamedTuple):
    """Interfaces by name."""

    sockets: tuple[ModuleSocket, ...]


def read(host: Host) -> Reading:
    """The module of every interface of a PCI device. Raises Absent where there is none."""
    reader = HostReader(host)
    family = family_of(reader)
    if family is None:
        raise Absent("this kernel has no ethtool netlink")
    functions = rdma_sysfs.functions(host)
    sockets: list[ModuleSocket] = []
    deadline = time.monotonic() + SECONDS
    denied: str | None = None  # why this process may not read any
    for one in netdev.on_pci(reader)[:MOST_INTERFACES]:
        name, index, pci = one.link.name, one.link.index, one.place.pci or ""
        if index is None or REPRESENTOR.fullmatch(one.link.port_name or ""):
            continue
        why_not = functions.get(pci) or _virtual(reader, pci)
        if one.of_accelerator:
            why_not = rdma_sysfs.OF_ACCELERATOR
        if one.link.type == INFINIBAND:
            why_not = "the interface of an InfiniBand port cannot read a module's memory"
        elif denied:
            why_not = denied
        elif time.monotonic() > deadline:
            why_not = f"not reached: the modules before it took {SECONDS:.0f} s"
            reader.gap(f"{name}: {why_not}")
        if why_not:
            sockets.append(ModuleSocket(name, reason=why_not, reason_code="needs-root" if denied else None))
            continue
        try:
            sockets.append(_socket(reader, name, family, index))
        except Denied as why:
            reader.gap(NEEDS, "needs-root")
            denied = f"{why.code or 'EPERM'}: {NEEDS}"
            sockets.append(ModuleSocket(name, reason=denied, reason_code="needs-root"))
    if not sockets:
        raise Absent("no interface of a PCI device that is awake")
    return Reading(OpticsFacts(tuple(sockets)), reader.sources, reader.missing)


def _socket(reader: HostReader, name: str, family: int, index: int) -> ModuleSocket:
    """What is plugged in, or why that is not known. Raises Denied."""
    from probes.optics.module import Memory, read_module  # lazy: many hosts have no interface with a module

    try:
        module = read_module(Memory(reader.host, family, index))
    except Denied:
        raise
    except Absent as why:
        return ModuleSocket(name, reason=why.reason)
    except ReadError as why:
        if why.code not in ("EOPNOTSUPP", "EIO", "ENODEV", "EINVAL"):  # no such operation; no module plugged in
            reader.gap(f"{name}: {why.reason}")
        return ModuleSocket(
            name, reason=f"{why.code}: {_meaning(why)}", reason_code="no-module" if why.code == "EIO" else None
        )
    except ParseError as why:
        reader.gap(f"{name}: {why}")
        return ModuleSocket(name, reason=str(why))
    reader.answered("ethtool -m")
    return ModuleSocket(name, module)


def _meaning(why: ReadError) -> str:
    known = {"EOPNOTSUPP": "the driver cannot read a module's memory", "EIO": "no module answers"}
    return known.get(why.code or "", why.reason)


def _virtual(reader: HostReader, pci: str) -> str | None:
    """Why there is no module: a virtual function has none, and its firmware logs an error for every question."""
    ids = reader.attributes(f"{PCI}/{pci}", ("vendor", "device"), source=f"{PCI}/*")
    guest = ids.get("vendor") == "0x15b3" and ids.get("device") in VIRTUAL
    return "a virtual function has no module" if guest or reader.link(f"{PCI}/{pci}/physfn") else None
