"""What drivers of network interfaces show through ethtool: pause, FEC, link modes, their own counters, their firmware.

Kernel page: Documentation/networking/ethtool-netlink.rst; linux/ethtool.h. Every question takes the RTNL lock and may
be a firmware command, so only interfaces of awake PCI devices are asked, each question once. A function that a fabric
manager owns is asked for its driver alone: its registers refuse, and each refusal is a line in the kernel's log.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from probes import netlink as codec
from probes.ethtool import ioctl as ioctl
from probes.ethtool import netlink as genl
from probes.ethtool.ioctl import select_wanted
from probes.ethtool.netlink import FecReading, LinkModes, PauseReading
from probes.host.interface import Absent, Host, ReadError
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.netdev import probe as netdev
from probes.netdev.rtnetlink import MOST_INTERFACES
from probes.probe import Reading
from probes.rdma import sysfs as rdma_sysfs
from probes.text import ParseError, lazy_pattern

SECONDS = 6.0  # for all interfaces together
REPRESENTOR = lazy_pattern(r"(?:c[0-9]+)?pf[0-9]+(?:vf|sf)[0-9]+")  # the port of another function, seen from its switch
NO_OPERATION = frozenset({"EOPNOTSUPP", "ENODEV"})  # an answer: the driver has no such thing, or the interface went
T = TypeVar("T")


class Ethernet(NamedTuple):
    """What ethtool shows of one interface. None: not reported."""

    name: str
    pause: PauseReading | None = None
    fec: FecReading | None = None
    modes: LinkModes | None = None
    counters: Mapping[str, int] | None = None  # the driver's; None: not read
    driver: str | None = None
    version: str | None = None
    firmware: str | None = None


class EthtoolFacts(NamedTuple):
    """Interfaces by name."""

    interfaces: tuple[Ethernet, ...]


def read(host: Host) -> Reading:
    """What every interface of a PCI device shows. Raises Absent where there is none, or nothing can be asked."""
    reader = HostReader(host)
    seen = netdev.on_pci(reader)
    if not seen:
        raise Absent("no network interface of a PCI device that is awake")
    family = family_of(reader)
    functions = rdma_sysfs.functions(host)
    deadline = time.monotonic() + SECONDS
    interfaces = []
    for one in seen[:MOST_INTERFACES]:
        if time.monotonic() > deadline:
            reader.gap(f"some interfaces: drivers or the kernel's network lock were busy for more than {SECONDS:.0f} s")
            break
        interface = _InterfaceReader(reader, one.link.name, one.link.index, family)
        if functions.get(one.place.pci or "") is not None or one.of_accelerator:
            interfaces.append(interface.driver())
        else:
            interfaces.append(interface.read(with_counters=one.place.pci in functions))
    answered = tuple(ethernet for ethernet in interfaces if ethernet != Ethernet(ethernet.name))
    if not answered:
        raise Absent(reader.missing or "no driver answers to ethtool")
    return Reading(EthtoolFacts(answered), reader.sources, reader.missing)


def family_of(reader: HostReader) -> int | None:
    """The message type of ethtool in this kernel; None where it has none (before 5.6)."""
    try:
        return codec.parse_family(reader.host.netlink(codec.GENERIC, codec.family_request(genl.FAMILY)))
    except (ReadError, ParseError):
        return None


class _InterfaceReader:
    """The questions to one interface."""

    def __init__(self, reader: HostReader, name: str, index: int | None, family: int | None) -> None:
        self.reader = reader
        self.name = name
        self.index = index
        self.family = family

    def driver(self) -> Ethernet:
        """What the driver states of itself: this asks no hardware."""
        info = self._ioctl("ethtool -i", ioctl.driver_request(), ioctl.parse_driver)
        if info is None:
            return Ethernet(self.name)
        return Ethernet(self.name, driver=info.driver, version=info.version, firmware=info.firmware)

    def read(self, with_counters: bool) -> Ethernet:
        """Everything; a question without an answer is a gap, but for what the driver does not have."""
        fec = self._either("ethtool --show-fec", genl.FEC_GET, genl.parse_fec, ioctl.fec_request(), ioctl.parse_fec)
        counters = self._counters() if with_counters else None
        return self.driver()._replace(
            pause=self._either(
                "ethtool -a", genl.PAUSE_GET, genl.parse_pause, ioctl.pause_request(), ioctl.parse_pause
            ),
            fec=fec,
            modes=self._netlink("ethtool", genl.LINKMODES_GET, genl.parse_link_modes),
            counters=counters,
        )

    def _either(
        self, what: str, command: int, parse: Callable[[bytes], T], request: bytes, parse_struct: Callable[[bytes], T]
    ) -> T | None:
        """By netlink, else by ioctl where this kernel has no ethtool netlink."""
        if self.family is None:
            return self._ioctl(what, request, parse_struct)
        return self._netlink(what, command, parse)

    def _netlink(self, what: str, command: int, parse: Callable[[bytes], T]) -> T | None:
        if self.family is None or self.index is None:
            return None
        request = genl.get_request(self.family, command, self.index)
        return self._query(what, lambda: parse(self.reader.host.netlink(codec.GENERIC, request)))

    def _ioctl(self, what: str, request: bytes, parse: Callable[[bytes], T]) -> T | None:
        return self._query(what, lambda: parse(self._struct(request)))

    def _struct(self, request: bytes) -> bytes:
        return self.reader.host.ethtool(self.name, request)

    def _counters(self) -> dict[str, int] | None:
        def every() -> dict[str, int]:
            count = ioctl.parse_count(self._struct(ioctl.count_request()))
            if not count:
                return {}
            names = self._struct(ioctl.names_request(count))
            return select_wanted(ioctl.parse_counters(names, self._struct(ioctl.values_request(count))))

        return self._query("ethtool -S", every)

    def _query(self, source: str, answer: Callable[[], T]) -> T | None:
        try:
            result = answer()
        except Absent:
            return None
        except ReadError as why:
            if why.code not in NO_OPERATION:
                self.reader.gap(f"{self.name}: {source}: {why.reason}")
            return None
        except ParseError as why:
            self.reader.gap(f"{self.name}: {source}: {why}")
            return None
        self.reader.answered(source)
        return result
