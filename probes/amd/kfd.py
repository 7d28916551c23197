"""The graph of the compute driver: GPUs, their partitions and hives, and the links between them.

Kernel: drivers/gpu/drm/amd/amdkfd/kfd_topology.c, kfd_crat.h. Files are lines `key value`, world-readable; in a
container those of GPUs that it was not given answer EPERM. One GPU in several partitions is several nodes, whose
addresses differ in the function number alone; the bus has its function 0 only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.host.interface import Denied, Host, ReadError
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.text import ParseError, parse_digits, require

TOPOLOGY = "/sys/class/kfd/kfd/topology"
NODES = f"{TOPOLOGY}/nodes"
MOST_NODES, MOST_LINKS = 512, 1024
XGMI = 11  # CRAT_IOLINK_TYPE_XGMI
_VIRTUAL_FUNCTIONS = frozenset({0x74B5, 0x74B9})  # of MI300X and MI325X: their function number is their own
_PROPERTIES_LIMIT_BYTES = 16 << 10


class KfdLink(NamedTuple):
    """One directed link of a node."""

    type: int
    target: int  # the node that it leads to
    weight: int
    max_mbyte_s: int  # 0: not stated


class KfdNode(NamedTuple):
    """One GPU, or one partition of one."""

    number: int
    address: str  # of the PCI function that all partitions share
    device: int
    unique_id: int | None
    hive: int | None  # 0: in none; None: the driver is too old to report it
    gfx: int | None  # 90402 is gfx942
    render_minor: int | None
    links: tuple[KfdLink, ...] = ()
    links_unread: int = 0  # that the graph has beside them
    peer_links: tuple[KfdLink, ...] | None = None  # over PCIe, to GPUs outside its hive; None: the driver has no list


class KfdGraph(NamedTuple):
    """All GPU nodes, by number."""

    nodes: tuple[KfdNode, ...]


def read_graph(reader: HostReader) -> KfdGraph:
    """Raises Absent where there is no graph, Denied where no GPU of it may be seen. A graph without a GPU is one."""
    host = reader.host
    before = _generation(host)
    numbers = sorted(number for name in host.listdir(NODES) if (number := parse_digits(name, 5)) is not None)
    hidden = 0
    nodes: list[KfdNode] = []
    for number in numbers[:MOST_NODES]:
        try:
            node = _node(number, _properties(host, f"{NODES}/{number}/properties"))
        except Denied:
            hidden += 1
        except (ReadError, ParseError) as why:
            reader.gap(f"{NODES}/{number}: {why}")
        else:
            nodes += [node] if node else []
    if hidden:
        reader.gap(f"{hidden} GPUs of the graph may not be seen here: a container, or permissions of /dev/kfd")
    if not nodes and hidden:
        raise Denied(f"{NODES}: no GPU that may be seen")
    reader.answered(f"{NODES}/*/properties")
    first = {node.number for node in _first_of_each(nodes)}
    nodes = [_with_links(reader, node) if node.number in first else node for node in nodes]
    if _generation(host) != before:
        reader.gap("the graph of the driver changed while it was read")
    return KfdGraph(tuple(nodes))


def parse_properties(text: str) -> dict[str, int]:
    """The lines `key number` of a properties file. Raises ParseError where no line is one.

    >>> parse_properties("simd_count 416\\nunique_id 1801979520617338022\\n")["simd_count"]
    416
    """
    properties = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key and (number := parse_digits(value, 20)) is not None:
            properties[key] = number
    require(properties, f"no properties in {text[:60]!r}")
    return properties


def address_of(properties: Mapping[str, int]) -> str | None:
    """The PCI address of a node; a partition's number is in the function, or above bit 28.

    >>> address_of({"location_id": 25344, "domain": 0}), address_of({"location_id": 58631, "domain": 1})
    ('0000:63:00.0', '0001:e5:00.0')
    >>> address_of({"location_id": 0x202, "device_id": 0x74B5}), address_of({})
    ('0000:02:00.2', None)
    """
    location = properties.get("location_id")
    domain = properties.get("domain", 0)
    if not location or domain >= 1 << 32:
        return None
    bus, slot, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 7
    own = function if properties.get("device_id") in _VIRTUAL_FUNCTIONS else 0
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{own}"


def _first_of_each(nodes: Sequence[KfdNode]) -> list[KfdNode]:
    """One node for every GPU: its links stand for those of all its partitions."""
    return list({node.address: node for node in reversed(nodes)}.values())


def _node(number: int, properties: Mapping[str, int]) -> KfdNode | None:
    """A GPU node; None for a processor."""
    address = address_of(properties)
    if not properties.get("simd_count") or address is None:
        return None
    return KfdNode(
        number=number,
        address=address,
        device=properties.get("device_id", 0),
        unique_id=properties.get("unique_id") or None,
        hive=properties.get("hive_id"),
        gfx=properties.get("gfx_target_version"),
        render_minor=properties.get("drm_render_minor"),
    )


def _with_links(reader: HostReader, node: KfdNode) -> KfdNode:
    """Kernels before 6.0 have no folder p2p_links; later ones have one for each node, which may be empty."""
    folder = f"{NODES}/{node.number}"
    peers = reader.names(f"{folder}/p2p_links")
    links, unread = _links(reader, f"{folder}/io_links", reader.names(f"{folder}/io_links") or [])
    return node._replace(
        links=links,
        links_unread=unread,
        peer_links=_links(reader, f"{folder}/p2p_links", peers)[0] if peers is not None else None,
    )


def _links(reader: HostReader, folder: str, names: Sequence[str]) -> tuple[tuple[KfdLink, ...], int]:
    """The links of a folder, and how many others it has that could not be read."""
    links: list[KfdLink] = []
    unread = len(names[MOST_LINKS:])
    for name in names[:MOST_LINKS]:
        try:
            properties = _properties(reader.host, f"{folder}/{name}/properties")
            link = KfdLink(
                properties["type"],
                properties["node_to"],
                properties.get("weight", 0),
                properties.get("max_bandwidth", 0),
            )
        except Denied:
            continue  # it leads to a GPU that may not be seen
        except (ReadError, ParseError) as why:
            reader.gap(f"{folder}/{name}: {why}")
            unread += 1
        except KeyError as missing:
            reader.gap(f"{folder}/{name}: no {missing}")
            unread += 1
        else:
            links.append(link)
    return tuple(links), unread


def _properties(host: Host, path: str) -> dict[str, int]:
    return parse_properties(host.read(path, _PROPERTIES_LIMIT_BYTES).decode("ascii", "replace"))


def _generation(host: Host) -> bytes | None:
    """It moves when a GPU comes or goes."""
    try:
        return host.read(f"{TOPOLOGY}/generation_id", 64)
    except ReadError:
        return None
