"""What saved outputs show of the InfiniBand fabric around a node: ibnetdiscover, iblinkinfo, ibdiagnet's files.

Never asked of a live host: these tools send management packets (MADs) to every switch. A saved output is of the whole
fabric; what of it is about this node is found in assemble, by the GUIDs of its ports.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from probes.host.commands import IB_FABRIC_SAVED
from probes.host.interface import Absent, Failed, Host, ReadError
from probes.host_reader import HostReader
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError

if TYPE_CHECKING:
    from probes.fabric.topology import Fabric

DEVICES = "/sys/class/infiniband"
MOST_DEVICES, PORTS = 32, ("1", "2")
SHOWN = 3  # problems of one output
WITHOUT_LINKS = ("ibnodes",)


class SavedFabric(NamedTuple):
    """One output. `source`: the command, or the file of ibdiagnet."""

    source: str
    fabric: Fabric


class IbFabricFacts(NamedTuple):
    """Every output that shows links, in the order in which they are trusted."""

    saved: tuple[SavedFabric, ...]


def read(host: Host) -> Reading:
    """Raises Absent without any output, Failed where none can be understood."""
    ask = HostReader(host)
    saved: list[SavedFabric] = []
    for argv in outputs(host):
        output = ask.output(*argv)
        if output is None:
            continue
        from probes.fabric.files import read_fabric  # lazy: few sources hold a fabric

        source = " ".join(argv)
        fabric = read_fabric(output, source)
        for problem in fabric.problems[:SHOWN]:
            ask.gap(problem)
        if fabric.nodes and fabric.format_name not in WITHOUT_LINKS:
            saved.append(SavedFabric(source, fabric))  # without a link too: of a node whose cables are pulled
        elif not fabric.problems:
            ask.gap(f"{source}: contains no link")
    if not saved:
        raise (
            Failed(ask.missing) if ask.missing else Absent("no saved output of ibnetdiscover, iblinkinfo or ibdiagnet")
        )
    return Reading(IbFabricFacts(tuple(saved)), ask.sources, ask.missing)


def outputs(host: Host) -> Iterator[tuple[str, ...]]:
    """The commands of which there are outputs. sos asks one rail after the other: `iblinkinfo -C mlx5_0 -P 1`."""
    if host.live:
        return
    rails = [("-C", device, "-P", port) for device in _devices(host) for port in PORTS]
    for argv in IB_FABRIC_SAVED:
        yield from (command for command in (argv, *((*argv, *rail) for rail in rails)) if host.has_output(*command))


def _devices(host: Host) -> list[str]:
    names: dict[str, None] = dict.fromkeys(HostReader(host).names(DEVICES) or ())
    if host.has_output("ibstat"):
        with contextlib.suppress(ReadError, ParseError):
            from probes.rdma.ibstat import parse_ibstat

            names |= dict.fromkeys(device.name for device in parse_ibstat(host.run("ibstat").stdout).devices)
    return list(names)[:MOST_DEVICES]
