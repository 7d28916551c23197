"""RDMA devices as the kernel's RDMA netlink shows them (rdma/rdma_netlink.h, nldev): protocol, interface of a port,
and whether devices are shared between network namespaces. No privilege is needed.

Attributes follow the message header directly. Saved outputs of `rdma system` and `rdma dev` state the same.
"""

from __future__ import annotations

import re
import struct

from probes import netlink
from probes.host.interface import Absent, Failed, Host, ReadError
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.netlink import IS_DUMP, IS_REQUEST, attribute, attributes, parse_text, parse_unsigned
from probes.probe import Reading
from probes.text import ParseError, natural

RDMA = 20  # NETLINK_RDMA
GET, PORT_GET, SYSTEM_GET = (5 << 10 | command for command in (1, 5, 6))  # RDMA_NL_NLDEV, RDMA_NLDEV_CMD_*
DEVICE_INDEX, DEVICE_NAME, PORT_INDEX, FIRMWARE = 1, 2, 3, 5  # RDMA_NLDEV_ATTR_*
INTERFACE_NAME, NAMESPACE_MODE, PROTOCOL = 51, 66, 67
MODES = {0: "exclusive", 1: "shared"}
PROTOCOLS = ("ib", "roce", "iw", "opa", "usnic")
MOST_DEVICES = 1024
U32 = struct.Struct("=I")
SAVED_SYSTEM = (("rdma", "system"), ("rdma", "system", "show"))
SAVED_DEVICES = (("rdma", "dev"), ("rdma", "dev", "show"))


class NetlinkDevice(NamedTuple):
    """One RDMA device."""

    name: str
    protocol: str | None = None  # ib | roce | iw | opa | usnic
    interfaces: tuple[tuple[int, str], ...] = ()  # port and its network interface


class RdmaNetlinkFacts(NamedTuple):
    """Every device of our RDMA namespace, sorted by name. Empty: there is none."""

    devices: tuple[NetlinkDevice, ...]
    namespaces: str | None = None  # shared | exclusive


def read(host: Host) -> Reading:
    """All of it. Raises ReadError; Absent where the kernel has no RDMA netlink and no output is saved."""
    reader = HostReader(host)
    try:
        payloads = _ask(reader, GET, "RDMA_NLDEV_CMD_GET")
    except ReadError as why:
        facts = _read_saved(reader)
        if facts is None:
            if why.code == "EPROTONOSUPPORT":
                raise Absent("RDMA netlink is not there: the kernel module ib_core is not loaded") from why
            raise
        return Reading(facts, reader.sources, reader.missing)
    parsed = parse_devices(payloads)
    devices = tuple(_with_ports(reader, index, device) for index, device in parsed[:MOST_DEVICES])
    facts = RdmaNetlinkFacts(tuple(sorted(devices, key=lambda d: natural(d.name))), _namespaces(reader))
    return Reading(facts, reader.sources, reader.missing)


def question(kind: int, device: int | None = None) -> bytes:
    """Devices (GET), the ports of one (PORT_GET), or the settings of the whole system (SYSTEM_GET).

    >>> len(question(GET)), len(question(PORT_GET, 0))
    (16, 24)
    """
    body = b"" if device is None else attribute(DEVICE_INDEX, U32.pack(device))
    return netlink.request(kind, IS_REQUEST if kind == SYSTEM_GET else IS_REQUEST | IS_DUMP, body)


def parse_devices(payloads: list[bytes]) -> list[tuple[int, NetlinkDevice]]:
    """Index and device; one without index or name is left out. Raises Failed for what is no list of attributes."""
    devices = []
    for values in map(_attributes, payloads):
        index, name = parse_unsigned(values.get(DEVICE_INDEX)), parse_text(values.get(DEVICE_NAME))
        protocol = parse_text(values.get(PROTOCOL))
        if index is not None and name:
            devices.append((index, NetlinkDevice(name, protocol if protocol in PROTOCOLS else None)))
    return devices


def parse_ports(payloads: list[bytes]) -> tuple[tuple[int, str], ...]:
    """Ports that have a network interface in our namespace. Raises Failed."""
    rows = []
    for values in map(_attributes, payloads):
        port, interface = parse_unsigned(values.get(PORT_INDEX)), parse_text(values.get(INTERFACE_NAME))
        if port is not None and interface:
            rows.append((port, interface))
    return tuple(sorted(set(rows)))


def parse_system(text: str) -> str | None:
    r"""`rdma system`: shared or exclusive.

    >>> parse_system("netns shared copy-on-fork on\n"), parse_system("netns what")
    ('shared', None)
    """
    match = re.search(r"\bnetns (shared|exclusive)\b", text)
    return match[1] if match else None


def parse_dev(text: str) -> tuple[NetlinkDevice, ...]:
    """`rdma dev`: "0: mlx5_0: node_type ca protocol roce fw ..". Older versions do not print the protocol."""
    devices = {}
    for line in text.splitlines()[:MOST_DEVICES]:
        match = re.match(r"[0-9]{1,6}: ([\w.-]{1,64}): (.*)", line)
        if match:
            protocol = re.search(r"\bprotocol (\w{1,16})", match[2])
            known = protocol[1] if protocol and protocol[1] in PROTOCOLS else None
            devices[match[1]] = NetlinkDevice(match[1], known)
    return tuple(sorted(devices.values(), key=lambda device: natural(device.name)))


def _with_ports(reader: HostReader, index: int, device: NetlinkDevice) -> NetlinkDevice:
    try:
        return device._replace(interfaces=parse_ports(_ask(reader, PORT_GET, "RDMA_NLDEV_CMD_PORT_GET", index)))
    except ReadError as why:
        reader.gap(f"ports of {device.name}: {why.reason}")
        return device


def _namespaces(reader: HostReader) -> str | None:
    try:
        payloads = _ask(reader, SYSTEM_GET, "RDMA_NLDEV_CMD_SYS_GET")
        mode = parse_unsigned(_attributes(payloads[0]).get(NAMESPACE_MODE)) if payloads else None
    except ReadError as why:
        reader.gap(f"namespaces: {why.reason}")
        return None
    return None if mode is None else MODES.get(mode)


def _ask(reader: HostReader, kind: int, name: str, device: int | None = None) -> list[bytes]:
    """Payloads of the answer's messages. Raises ReadError."""
    return reader.messages(RDMA, question(kind, device), kind, f"RDMA netlink {name}")


def _read_saved(reader: HostReader) -> RdmaNetlinkFacts | None:
    outputs = {argv: reader.output(*argv) for argv in SAVED_SYSTEM + SAVED_DEVICES if reader.host.has_output(*argv)}
    if not outputs:
        return None
    devices = next((parsed for argv in SAVED_DEVICES if (parsed := parse_dev(outputs.get(argv) or ""))), ())
    modes = (parse_system(outputs.get(argv) or "") for argv in SAVED_SYSTEM)
    return RdmaNetlinkFacts(devices, next((mode for mode in modes if mode), None))


def _attributes(payload: bytes) -> dict[int, bytes]:
    try:
        return attributes(payload)
    except ParseError as why:
        raise Failed(f"RDMA netlink: {why}") from why
