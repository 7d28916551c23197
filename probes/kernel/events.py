"""What the kernel states of itself while it runs, as events: which device, what happened, and of what kind.

Three places: rtnetlink (carrier, rename, coming and going of interfaces), uevents (devices and modules), the kernel's
log. Headers: linux/rtnetlink.h, linux/if_link.h; lib/kobject_uevent.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from probes.host.event_sockets import KERNEL, LINKS, ROUTE, UEVENT, EventSource, KernelLog, NetlinkGroup, Overrun
from probes.host.interface import ReadError
from probes.host.netlink_socket import request_netlink
from probes.kernel.log_events import events as log_events
from probes.kernel.log_lines import lines
from probes.kernel.modules import is_relevant
from probes.named_tuple import NamedTuple
from probes.netdev.rtnetlink import MASTER, NetlinkLink, parse_links
from probes.netlink import LINK, NEW_LINK, attributes, links_request, messages
from probes.text import ParseError, require

# Kinds of events; those of the kernel's log are the kinds of probes/kernel/log_events.py.
INTERFACE, SOFTWARE_INTERFACE, RDMA, PCI, GPU, MODULE = (
    "interface",
    "software_interface",
    "rdma",
    "pci",
    "gpu",
    "module",
)
MISSED = "missed"  # something happened, of unknown kind

RTNETLINK, UEVENTS, LOG = "rtnetlink", "uevents", "/dev/kmsg"
DEL_LINK = 17
UNSPECIFIED = 0  # AF_UNSPEC: the interface itself, not its place in a bridge
FLAGS = 0x10001 | 0x40 | 0x800  # IFF_UP, IFF_LOWER_UP, IFF_RUNNING, IFF_SLAVE: not whether tcpdump listens
PORTS = ("bond", "vlan", "team", "ipoib")  # software interfaces that carry a NIC's traffic
SUBSYSTEMS = {"infiniband": RDMA, "pci": PCI, "drm": GPU, "kfd": GPU, "accel": GPU}
TEXT_CHARACTERS = 200
MOST_DIFFERENCES = 3  # of one interface, in one line
OF_THE_READER = (("mlx5", "access-reg"),)  # what mlx5 writes when someone reads counters that it may not read


class KernelEvent(NamedTuple):
    """One thing that happened."""

    kind: str
    subject: str | None  # an interface's name, a PCI address, a module
    text: str  # a line for people
    source: str


class Listener:
    """One place, and what it states as events."""

    def __init__(
        self,
        name: str,
        place: EventSource,
        parse: Callable[[bytes], list[KernelEvent]],
        again: Callable[[], None] = lambda: None,
    ) -> None:
        """`parse`: the events of one piece. `again`: reads the present state, where something was lost."""
        self.name = name
        self._place = place
        self._told = parse
        self._again = again

    def fileno(self) -> int:
        """For poll(2)."""
        return self._place.fileno()

    def heard(self) -> list[KernelEvent]:
        """What has happened since. Never waits. Raises ReadError where nothing more will come.

        What was lost, or has a form that is not known, is an event too: something happened.
        """
        try:
            return [event for data in self._place.waiting() for event in self._told(data)]
        except Overrun:
            self._again()
            return [KernelEvent(MISSED, None, f"{self.name}: more came than was taken in time", self.name)]
        except ParseError as why:
            return [KernelEvent(MISSED, None, f"{self.name}: {why}"[:TEXT_CHARACTERS], self.name)]

    def close(self) -> None:
        """Listen no more."""
        self._place.close()


def listeners() -> tuple[list[Listener], list[str]]:
    """Every place of this host that can be listened to; and a line for each that cannot, with what would allow it."""
    all_listeners, refused = [], []
    for name, opened in ((RTNETLINK, _interfaces), (UEVENTS, _devices), (LOG, _log)):
        try:
            all_listeners.append(opened(name))
        except ReadError as why:
            reason = why.reason.removeprefix(f"{name}: ")
            refused.append(f"{name} is not listened to: {reason}; its lines are seen by full scans only")
    return all_listeners, refused


class Interfaces:
    """What is new in messages of rtnetlink. The kernel sends many that show nothing of interest."""

    def __init__(self) -> None:
        self._known: dict[int, _State] = {}

    def learn(self, reply: bytes) -> None:
        """How all interfaces are now; what was known is forgotten. Raises ParseError."""
        self._known.clear()
        for _ in self._of(reply):
            pass

    def told(self, datagram: bytes) -> list[KernelEvent]:
        """The events of one datagram. Raises ParseError."""
        return list(self._of(datagram))

    def _of(self, data: bytes) -> Iterator[KernelEvent]:
        for message in messages(data):
            if message.type not in (NEW_LINK, DEL_LINK) or message.payload[:1] != bytes((UNSPECIFIED,)):
                continue
            for link in parse_links([message.payload]):
                kind = INTERFACE if link.kind is None or link.kind in PORTS else SOFTWARE_INTERFACE
                text = self._news(link, message.payload, gone=message.type == DEL_LINK)
                if text:
                    yield KernelEvent(kind, link.name, f"{link.name} {text}"[:TEXT_CHARACTERS], RTNETLINK)

    def _news(self, link: NetlinkLink, payload: bytes, gone: bool) -> str | None:
        index = link.index or 0
        before = self._known.pop(index, None)
        if gone:
            return "is gone"
        now = _state(link, attributes(payload, LINK.size).get(MASTER, b""))
        self._known[index] = now
        if before is None:
            return "is new"
        changes = [text for text in _differences(before, now) if text]
        return ", ".join(changes[:MOST_DIFFERENCES]) or None


class _State(NamedTuple):
    """What is compared of an interface."""

    name: str
    operstate: str | None
    carrier: bool | None
    changes: int | None
    flags: int
    mtu: int | None
    mac: str | None
    master: bytes


def _state(link: NetlinkLink, master: bytes) -> _State:
    flags = (link.flags or 0) & FLAGS
    return _State(link.name, link.operstate, link.carrier, link.carrier_changes, flags, link.mtu, link.mac, master)


def _differences(old: _State, new: _State) -> Iterator[str | None]:
    """In the order of their weight."""
    yield f"was {old.name}" if new.name != old.name else None
    if old.operstate != new.operstate:
        yield f"{old.operstate} -> {new.operstate}"
    elif old.carrier != new.carrier and None not in (old.carrier, new.carrier):
        yield "has a carrier" if new.carrier else "lost its carrier"
    elif (old.changes, old.flags) != (new.changes, new.flags):
        yield "lost its carrier for a moment" if old.changes != new.changes else "was switched on or off"
    yield f"MTU {old.mtu} -> {new.mtu}" if new.mtu != old.mtu else None
    yield "has another address" if new.mac != old.mac else None
    yield "joined or left a bond or bridge" if new.master != old.master else None


class Uevent(NamedTuple):
    """One message of the kernel about a device."""

    action: str  # add | remove | change | move | bind | unbind | online | offline
    path: str  # below /sys
    properties: dict[str, str]


def parse_uevent(data: bytes) -> Uevent:
    r"""A datagram: "ACTION@DEVPATH", then NAME=VALUE, each ended by a NUL. Raises ParseError.

    >>> parse_uevent(b"add@/module/mlx5_ib\0ACTION=add\0DEVPATH=/module/mlx5_ib\0SUBSYSTEM=module\0").path
    '/module/mlx5_ib'
    """
    head, *rest = data.decode("utf-8", "replace").split("\0")
    action, at, path = head.partition("@")
    require(at and action and path.startswith("/"), f"uevent: not an action and a device: {head[:60]!r}")
    pairs = (line.partition("=") for line in rest)
    return Uevent(action, path, {name: value for name, equals, value in pairs if equals})


def device_events(datagram: bytes) -> list[KernelEvent]:
    """The event of one uevent, where it is of a device that we look at. Raises ParseError."""
    fields = parse_uevent(datagram)
    subsystem, name = fields.properties.get("SUBSYSTEM", ""), fields.path.rpartition("/")[2]
    kind = GPU if subsystem.startswith("nvidia") else SUBSYSTEMS.get(subsystem)
    if subsystem == "net" and "/virtual/" not in fields.path:  # of others rtnetlink states more
        kind = INTERFACE
    if subsystem == "module" and is_relevant(name):
        kind = MODULE
    if kind is None:
        return []
    driver = fields.properties.get("DRIVER", "")
    by = f" (driver {driver})" if driver and fields.action in ("bind", "unbind") else ""
    return [KernelEvent(kind, name, f"{subsystem} {name}: {fields.action}{by}"[:TEXT_CHARACTERS], UEVENTS)]


class Log:
    """Records of the kernel's log that are events. A sentence may be in two records."""

    def __init__(self) -> None:
        self._begun = ""

    def told(self, record: bytes) -> list[KernelEvent]:
        """The events of one record, and of the one before where that reported nothing by itself."""
        text = record.decode("utf-8", "replace")
        events = _events_in(self._begun + text)
        self._begun = "" if events else text
        return events


def _events_in(text: str) -> list[KernelEvent]:
    events, _ = log_events(lines(text, None))
    return [
        KernelEvent(log_event.kind, log_event.subject, log_event.text[:TEXT_CHARACTERS], LOG)
        for log_event in events
        if (log_event.kind, log_event.code) not in OF_THE_READER
    ]


def _interfaces(name: str) -> Listener:
    place, interfaces = NetlinkGroup(ROUTE, LINKS), Interfaces()

    def learn() -> None:
        with suppress(ReadError, ParseError):  # without it the first message of each interface is news
            interfaces.learn(request_netlink(ROUTE, links_request()))

    learn()  # after joining: what changes in between is reported twice, not never
    return Listener(name, place, interfaces.told, learn)


def _devices(name: str) -> Listener:
    return Listener(name, NetlinkGroup(UEVENT, KERNEL), device_events)


def _log(name: str) -> Listener:
    return Listener(name, KernelLog(), Log().told)
