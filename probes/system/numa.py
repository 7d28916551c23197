"""NUMA nodes: /sys/devices/system/node. A node without CPUs is GPU or CXL memory, not a socket.

Kernel page: Documentation/ABI/stable/sysfs-devices-node.
"""

import re

from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.system.cpu import parse_cpulist
from probes.text import ParseError, lazy_pattern, require

FOLDER = "/sys/devices/system/node"
NODE = lazy_pattern(r"node(\d{1,6})")
MEMORY = lazy_pattern(r"^(?:Node +\d{1,6} +)?MemTotal: +(\d{1,15}) kB", re.MULTILINE)
MOST_DISTANCES = 4096


class NumaNodeFacts(NamedTuple):
    """One NUMA node. Without CPUs it is GPU or CXL memory, not a socket."""

    id: int
    cpus: str | None  # cpulist; "" : none
    memory_mib: int | None = None
    distances: tuple[int, ...] = ()  # to every node, in id order


class NumaFacts(NamedTuple):
    """Every NUMA node, by id."""

    nodes: tuple[NumaNodeFacts, ...]


def read(host: Host) -> Reading:
    """Every node that is online. Raises ReadError where the kernel shows none."""
    reader = HostReader(host)
    ids = sorted(int(name[4:]) for name in host.listdir(FOLDER) if NODE.fullmatch(name))
    if not ids:
        raise Absent(f"{FOLDER}: no node")
    return Reading(NumaFacts(tuple(_node(reader, node, len(ids)) for node in ids)), reader.sources, reader.missing)


def parse_distances(text: str) -> tuple[int, ...]:
    """One row of the distance table. Raises ParseError.

    >>> parse_distances("10 21 80")
    (10, 21, 80)
    """
    row = text.split()
    if len(row) > MOST_DISTANCES or not all(word.isascii() and word.isdigit() and len(word) <= 6 for word in row):
        raise ParseError(f"not a row of NUMA distances: {text[:80]!r}")
    return tuple(int(word) for word in row)


def parse_memory_mib(text: str) -> int:
    """MemTotal of /proc/meminfo or of a node's meminfo, in MiB. Raises ParseError.

    >>> parse_memory_mib("Node 0 MemTotal:       97280 kB"), parse_memory_mib("MemTotal: 2052540 kB")
    (95, 2004)
    """
    match = require(MEMORY.search(text), f"no MemTotal in {text[:80]!r}")
    return int(match[1]) // 1024


def _node(reader: HostReader, node: int, nodes: int) -> NumaNodeFacts:
    files = reader.attributes(f"{FOLDER}/node{node}", ("cpulist", "distance", "meminfo"), source=f"{FOLDER}/node*")
    cpus = files.get("cpulist")
    memory_mib: int | None = None
    distances: tuple[int, ...] = ()
    if reader.parsed(cpus, parse_cpulist, f"node{node}: ") is None:
        cpus = None
    try:
        distances = parse_distances(files.get("distance", ""))
        memory_mib = parse_memory_mib(files["meminfo"]) if "meminfo" in files else None
    except ParseError as why:
        reader.gap(f"node{node}: {why}")
    if len(distances) != nodes:  # a row that does not fit cannot be read by position
        reader.gap(f"node{node}: {len(distances)} distances for {nodes} nodes" if distances else "no distances")
        distances = ()
    for name, value in (("cpulist", cpus), ("meminfo", memory_mib)):
        if value is None:
            reader.gap(f"no {name} for some nodes")
    return NumaNodeFacts(node, cpus, memory_mib, distances)
