"""Network interfaces: rtnetlink (links, addresses) and the lock-free attributes of /sys/class/net.

Kernel pages: Documentation/ABI/testing/sysfs-class-net, networking/bonding.rst; rtnetlink(7). Where netlink answers,
it alone states which interfaces exist: /sys/class/net may show another network namespace.
"""

import time
from collections.abc import Mapping

from probes import netlink
from probes.host.interface import Absent, Failed, Host, ReadError
from probes.host_reader import SLEEPING, HostReader, as_text
from probes.named_tuple import NamedTuple
from probes.netdev import rtnetlink
from probes.netdev import sysfs as sysfs
from probes.netdev.rtnetlink import LOOPBACK, NetlinkLink
from probes.probe import Reading
from probes.text import ParseError, natural

SPEED_SECONDS = 2.0  # for all interfaces together: `speed` waits for the RTNL lock
ARP = "/proc/sys/net/ipv4/conf"
ARP_SETTINGS = ("arp_ignore", "arp_announce", "arp_filter", "rp_filter")
PORTS_OF_A_DEVICE = ("ipoib",)  # the one kind of software interface that is a device's own port


class Netdev(NamedTuple):
    """One network interface of the host's network namespace."""

    name: str
    address: str | None = None  # PCI address of the function below it
    dev_port: int | None = None  # which port of that function (0 for the first)
    mac: str | None = None
    addresses: tuple[str, ...] = ()  # "10.0.0.1/24"
    operstate: str | None = None  # up | down | lowerlayerdown | dormant | unknown
    admin_up: bool | None = None  # IFF_UP
    carrier: bool | None = None
    carrier_changes: int | None = None
    carrier_up_count: int | None = None
    carrier_down_count: int | None = None
    speed_mbit_s: int | None = None  # None where down
    mtu: int | None = None
    type: int | None = None  # ARPHRD: 1 Ethernet, 32 InfiniBand
    driver: str | None = None
    firmware: str | None = None
    master: str | None = None  # bond or bridge above
    bond: Mapping[str, str | tuple[str, ...]] | None = (
        None  # {"mode": "802.3ad", "slaves": ("a", "b"), "miimon": "100"}
    )
    vlan: Mapping[str, int | str] | None = None  # {"id": 100, "parent": "ens1", "egress_map": "0:3"}
    virtual: bool = False  # no device below it (bridge, veth, dummy)
    kind: str | None = None  # of a software interface: "bond", "vlan", "veth", "ipoib"
    port_name: str | None = None  # "p0"; "pf0vf3": a representor, not the port itself
    counters: Mapping[str, int] | None = None
    arp: Mapping[str, int] | None = None  # in force for IPv4: arp_ignore, arp_announce, arp_filter, rp_filter


class NetdevFacts(NamedTuple):
    """Every interface, sorted by name."""

    netdevs: tuple[Netdev, ...]


class SourceView(NamedTuple):
    """One interface with what sysfs adds to it."""

    link: NetlinkLink
    folder: str | None  # in sysfs; None: sysfs does not show this interface
    place: sysfs.DevicePlace
    awake: bool = True  # False: the device sleeps, and nothing more is asked of it
    dev_port: int | None = None
    driver: str | None = None

    @property
    def of_accelerator(self) -> bool:
        """Whether it is a port of an accelerator, whose firmware answers every counter in about 100 ms."""
        return (self.driver or "").startswith("habanalabs")


def read(host: Host) -> Reading:
    """Every interface of the host's network namespace. Raises Absent where neither netlink nor sysfs shows one."""
    reader = HostReader(host)
    addresses: dict[int, tuple[str, ...]] | None = None
    try:
        links = _links(reader)
    except ReadError as why:
        from probes.netdev.shown_links import shown_links  # lazy: a kernel answers on a live host

        folders = sysfs.folders(reader)
        printed = shown_links(reader)
        if not folders and not printed:
            raise Absent(f"no network interface: {why.reason}; nothing in {sysfs.CLASS}") from why
        links = tuple(_fill(link, printed.pop(link.name, None)) for link in sysfs.links(reader, folders))
        seen = [_read_sysfs_facts(reader, link, folders[link.name]) for link in links]
        seen += [SourceView(link, None, _place_as_printed(link)) for link in printed.values()]
        links += tuple(printed.values())
        reader.gap(f"addresses, and kinds but bond and vlan: {why.reason}")
        count = _counters_of_sysfs
    else:
        seen = [_read_sysfs_view(reader, link) for link in links]
        addresses = _addresses(reader)
        _note_other_namespace(reader, links)
        count = _counters_of_netlink
    seen.sort(key=lambda one: natural(one.link.name))
    counters = {
        one.link.name: count(reader, one) for one in seen if one.place.pci and one.awake and not one.of_accelerator
    }
    speeds = _speeds(reader, seen)  # last: it may wait
    arp = _arp_settings(reader, seen, addresses or {})
    netdevs = tuple(
        _netdev(one, links, addresses, counters, speeds)._replace(arp=arp.get(one.link.name)) for one in seen
    )
    return Reading(NetdevFacts(netdevs), reader.sources, reader.missing)


def on_pci(reader: HostReader) -> list[SourceView]:
    """The interfaces of PCI devices that are awake, sorted by name."""
    try:
        seen = [_read_sysfs_view(reader, link) for link in _links(reader)]
    except ReadError:
        folders = sysfs.folders(reader)
        seen = [_read_sysfs_facts(reader, link, folders[link.name]) for link in sysfs.links(reader, folders)]
    return sorted((one for one in seen if one.place.pci and one.awake), key=lambda one: natural(one.link.name))


def _links(reader: HostReader) -> tuple[NetlinkLink, ...]:
    """Every link of the namespace. Raises ReadError."""
    payloads = reader.messages(netlink.ROUTE, netlink.links_request(), netlink.NEW_LINK, "rtnetlink RTM_GETLINK")
    try:
        links = rtnetlink.parse_links(payloads)
    except ParseError as why:
        raise Failed(f"RTM_GETLINK: {why}") from why
    if not links:
        raise Failed("RTM_GETLINK: no link in the answer")  # there is a loopback interface in every namespace
    return links


def _fill(link: NetlinkLink, printed: NetlinkLink | None) -> NetlinkLink:
    """A link of sysfs, and what only ip states of it."""
    if printed is None:
        return link
    return link._replace(
        **{name: getattr(printed, name) for name in NetlinkLink._fields if getattr(link, name) is None}
    )


def _place_as_printed(link: NetlinkLink) -> sysfs.DevicePlace:
    virtual = link.type == LOOPBACK or bool(link.kind and link.kind not in PORTS_OF_A_DEVICE)
    return sysfs.DevicePlace(link.parent_pci, virtual)


def _addresses(reader: HostReader) -> dict[int, tuple[str, ...]] | None:
    """Addresses by the link's index, IPv4 first; None: not known."""
    by_index: dict[int, list[tuple[int, bytes, str]]] = {}
    try:
        request = netlink.addresses_request()
        for payload in reader.messages(netlink.ROUTE, request, netlink.NEW_ADDRESS, "rtnetlink RTM_GETADDR"):
            address = rtnetlink.parse_address(payload)
            if address:
                index, family, raw, text = address
                by_index.setdefault(index, []).append((family, raw, text))
    except (ReadError, ParseError) as why:
        reader.gap(f"addresses: {why}")
        return None
    return {index: tuple(text for _, _, text in sorted(some)) for index, some in by_index.items()}


def _read_sysfs_view(reader: HostReader, link: NetlinkLink) -> SourceView:
    """A link of netlink with what sysfs states of it, where sysfs shows the same interface."""
    if link.kind and link.kind not in PORTS_OF_A_DEVICE:
        return SourceView(link, None, sysfs.DevicePlace(virtual=True))
    folder = f"{sysfs.CLASS}/{link.name}"
    files = reader.attributes(folder, ("ifindex", "address"), source=f"{sysfs.CLASS}/*")
    if (sysfs.whole(files.get("ifindex")), sysfs.mac(files.get("address"))) == (link.index, link.mac):
        return _read_sysfs_facts(reader, link, folder)
    return SourceView(link, None, sysfs.DevicePlace(link.parent_pci), awake=_awake(reader, link.parent_pci))


def _note_other_namespace(reader: HostReader, links: tuple[NetlinkLink, ...]) -> None:
    """State which devices' interfaces sysfs shows that are not in our network namespace."""
    others = sorted(set(reader.names(sysfs.CLASS) or ()) - {link.name for link in links}, key=natural)
    names = [name for name in others if sysfs.place(reader, f"{sysfs.CLASS}/{name}").pci]
    if names:
        reader.gap(f"in another network namespace, and not described: {', '.join(names)}")


def _read_sysfs_facts(reader: HostReader, link: NetlinkLink, folder: str) -> SourceView:
    """What sysfs adds to a link. The last thing that is read here is whether the device sleeps."""
    place = sysfs.place(reader, folder)
    if place.pci is None and link.parent_pci:
        place = sysfs.DevicePlace(link.parent_pci)
    if place.virtual:
        return SourceView(link, folder, place)
    dev_port = reader.attributes(folder, ("dev_port",), source=f"{sysfs.CLASS}/*").get("dev_port")
    driver = reader.link(f"{folder}/device/driver")
    return SourceView(
        link,
        folder,
        place,
        awake=_awake(reader, place.pci),
        dev_port=sysfs.whole(dev_port),
        driver=driver.rsplit("/", 1)[-1] if driver else None,
    )


def _awake(reader: HostReader, pci: str | None) -> bool:
    status = f"{sysfs.PCI}/*/power/runtime_status"
    return pci is None or reader.text(status.replace("*", pci), source=status) not in SLEEPING


def _counters_of_netlink(reader: HostReader, one: SourceView) -> dict[str, int] | None:
    request = netlink.statistics_request(one.link.index or 0)
    try:
        payloads = reader.messages(netlink.ROUTE, request, netlink.NEW_STATS, "rtnetlink RTM_GETSTATS")
        return rtnetlink.parse_statistics(payloads[0]) if payloads else None
    except (ReadError, ParseError) as why:
        reader.gap(f"counters: {why}")
        return None


def _counters_of_sysfs(reader: HostReader, one: SourceView) -> dict[str, int] | None:
    names = rtnetlink.COUNTERS.split()
    if one.folder is None:
        return None
    files = reader.attributes(f"{one.folder}/statistics", names, source=f"{sysfs.CLASS}/*/statistics")
    return {name: number for name in names if (number := sysfs.whole(files.get(name))) is not None} or None


def _speeds(reader: HostReader, seen: list[SourceView]) -> dict[str, int]:
    """Mbit/s of the interfaces of PCI devices that are up; one that does not know answers with an error."""
    speeds: dict[str, int] = {}
    deadline = time.monotonic() + SPEED_SECONDS
    for one in seen:
        if not (one.folder and one.place.pci and one.awake and one.link.operstate == "up"):
            continue
        if time.monotonic() > deadline:
            reader.gap(f"some speeds: the kernel's network lock was busy for more than {SPEED_SECONDS} s")
            break
        try:
            speed = sysfs.whole(as_text(reader.host.read(f"{one.folder}/speed")))
        except ReadError:
            continue
        if speed:
            speeds[one.link.name] = speed
            reader.answered(f"{sysfs.CLASS}/*/speed")
    return speeds


def _arp_settings(
    reader: HostReader, seen: list[SourceView], addresses: Mapping[int, tuple[str, ...]]
) -> dict[str, dict[str, int]]:
    """How the kernel answers ARP on interfaces of PCI devices, where several have an IPv4 address."""
    names = [
        one.link.name
        for one in seen
        if one.place.pci and one.awake and any("." in address for address in addresses.get(one.link.index or 0, ()))
    ]
    if len(names) < 2:
        return {}
    of_all, own = _arp_values(reader, "all"), {name: _arp_values(reader, name) for name in names}
    # The kernel takes the larger of what is set for all and for one interface
    return {
        name: {key: max(value, of_all[key]) for key, value in values.items() if key in of_all}
        for name, values in own.items()
        if values and of_all
    }


def _arp_values(reader: HostReader, interface: str) -> dict[str, int]:
    try:
        contents = reader.host.attributes(f"{ARP}/{interface}", ARP_SETTINGS)
    except ReadError:
        return {}  # not in this source
    texts = {name: as_text(content) for name, content in contents.items() if not isinstance(content, ReadError)}
    if texts:
        reader.answered(f"{ARP}/*")
    return {name: value for name, text in texts.items() if (value := sysfs.whole(text)) is not None}


def _netdev(
    one: SourceView,
    links: tuple[NetlinkLink, ...],
    addresses: Mapping[int, tuple[str, ...]] | None,
    counters: Mapping[str, Mapping[str, int] | None],
    speeds: Mapping[str, int],
) -> Netdev:
    link = one.link
    bond: dict[str, str | tuple[str, ...]] | None = None
    if link.kind == "bond":
        slaves = (other.name for other in links if other.master == link.name)
        bond = {**(link.bond or {}), "slaves": tuple(sorted(slaves, key=natural))}
    vlan: dict[str, int | str] | None = None
    if link.vlan_id is not None:
        vlan_values = {"parent": link.lower or None, "egress_map": link.vlan_egress}
        vlan = {"id": link.vlan_id, **{key: value for key, value in vlan_values.items() if value is not None}}
    return Netdev(
        name=link.name,
        address=one.place.pci,
        dev_port=one.dev_port,
        mac=link.mac,
        addresses=link.addresses if addresses is None else addresses.get(link.index or 0, ()),
        operstate=link.operstate,
        admin_up=None if link.flags is None else bool(link.flags & rtnetlink.ADMIN_UP),
        carrier=link.carrier,
        carrier_changes=link.carrier_changes,
        carrier_up_count=link.carrier_up_count,
        carrier_down_count=link.carrier_down_count,
        speed_mbit_s=speeds.get(link.name),
        mtu=link.mtu,
        type=link.type,
        driver=one.driver,
        master=link.master,
        bond=bond,
        vlan=vlan,
        virtual=one.place.virtual,
        kind=link.kind,
        port_name=link.port_name,
        counters=counters.get(link.name) or link.statistics,
    )
