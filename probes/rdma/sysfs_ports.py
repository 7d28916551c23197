"""Reads the ports of one RDMA device from sysfs: state, addresses, tables and counters.

Kernel page: Documentation/ABI/stable/sysfs-class-infiniband; source: drivers/infiniband/core/sysfs.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from probes.rdma import normalize as rdma_words
from probes.rdma.attributes import RdmaFiles
from probes.rdma.facts import Gid, RdmaPort

MOST_GIDS = 256  # entries of one GID table that are read
MOST_COUNTERS = 512  # files of one counter folder that are read (Omni-Path has thousands)
PKEY_BLOCK = 32  # a subnet manager writes P_Key tables in blocks of this many
ALL_ONES = (1 << 64) - 1  # what a driver prints for a counter that it could not read

_STATE = ("link_layer", "state", "phys_state", "rate", "lid", "sm_lid")
_COUNT = re.compile(r"[0-9]{1,20}")
_REPRESENTOR = re.compile(r"pf[0-9]{1,3}[sv]f[0-9]{1,4}$")  # of a virtual or sub-function: not the port's own
_NOT_COUNTERS = frozenset({"lifespan"})  # milliseconds for which the driver keeps its readings


def read_ports(ask: RdmaFiles, place: str, below: str | None, limited: bool) -> tuple[RdmaPort, ...]:
    """Every port of the device in folder `place`, which hangs from the device in folder `below`.

    Of a limited function neither counters nor tables are read.
    """
    numbers = _numbered(ask.listed(f"{place}/ports"))
    netdevs = _netdevs(ask, below)
    ports = [
        _port(ask, f"{place}/ports/{number}", number, _of_port(netdevs, number, len(numbers)), limited)
        for number in numbers
    ]
    if len(ports) == 1 and not limited:
        extra = _counters(ask, f"{place}/hw_counters")  # some drivers count by device
        if extra:
            ports[0] = ports[0]._replace(hw_counters={**extra, **(ports[0].hw_counters or {})})
    return tuple(ports)


def _port(ask: RdmaFiles, place: str, number: int, netdevs: set[str], limited: bool) -> RdmaPort:
    said = ask.attributes(place, _STATE)
    layer = said.get("link_layer")
    gids, gids_known = ([], False) if limited else _gids(ask, place)
    netdevs = netdevs | {gid.netdev for gid in gids if gid.netdev}
    return RdmaPort(
        port=number,
        link_layer=layer,
        state=_word(said.get("state")),
        phys_state=_word(said.get("phys_state")),
        rate_text=said.get("rate"),
        lid=rdma_words.number(said.get("lid")),
        sm_lid=rdma_words.number(said.get("sm_lid")),
        port_guid=_port_guid(gids) if layer == "InfiniBand" else None,
        gids=tuple(gids),
        gids_known=gids_known,
        pkeys=() if limited else tuple(_pkeys(ask, place)),
        netdevs=tuple(sorted(netdevs, key=rdma_words.in_order)),
        counters=None if limited else _counters(ask, f"{place}/counters"),
        hw_counters=None if limited else _counters(ask, f"{place}/hw_counters"),
    )


def _word(text: str | None) -> str | None:
    """ "4: ACTIVE" without its number."""
    return text.partition(": ")[2] or None if text else None


def _gids(ask: RdmaFiles, place: str) -> tuple[list[Gid], bool]:
    """(The used entries, whether the whole table was read)."""
    indexes = _numbered(ask.listed(f"{place}/gids"))
    before = ask.missing
    said = ask.attributes(f"{place}/gids", map(str, indexes[:MOST_GIDS]))
    used = {name: gid for name, text in said.items() if (gid := rdma_words.gid(text))}
    types = ask.attributes(f"{place}/gid_attrs/types", used) if used else {}
    netdevs = ask.attributes(f"{place}/gid_attrs/ndevs", used) if used else {}
    gids = [Gid(int(name), gid, types.get(name), netdevs.get(name)) for name, gid in used.items()]
    gids.sort(key=lambda gid: gid.index)
    return gids, 0 < len(indexes) <= MOST_GIDS and ask.missing == before


def _port_guid(gids: list[Gid]) -> str | None:
    """On InfiniBand GID 0 is the subnet prefix and the port GUID, by definition."""
    return gids[0].gid[20:] if gids and gids[0].index == 0 else None


def _pkeys(ask: RdmaFiles, place: str) -> list[str]:
    """Used P_Keys in table order. Each read can be a firmware command: an unused block ends the search."""
    indexes = iter(_numbered(ask.listed(f"{place}/pkeys")))
    used: list[str] = []
    while block := list(islice(indexes, PKEY_BLOCK)):
        said = ask.attributes(f"{place}/pkeys", map(str, block))
        found = [key for index in block if (key := said.get(str(index))) and rdma_words.number(key)]
        if not found:
            break
        used += found
    return used


def _counters(ask: RdmaFiles, folder: str) -> dict[str, int] | None:
    """Counters by name; those that the driver cannot give are left out. None where there is no such folder."""
    names = [name for name in ask.listed(folder) if name not in _NOT_COUNTERS]
    if not names:
        return None
    if len(names) > MOST_COUNTERS:
        ask.gap(f"{folder}: only {MOST_COUNTERS} of {len(names)} counters were read")
    said = ask.attributes(folder, names[:MOST_COUNTERS])
    read = {name: int(text) for name, text in sorted(said.items()) if _COUNT.fullmatch(text)}
    return {name: value for name, value in read.items() if value < ALL_ONES}


def _netdevs(ask: RdmaFiles, below: str | None) -> dict[str, int | None]:
    """Interface -> number of its port (from 0), for the interfaces of the device that an RDMA device hangs from."""
    found: dict[str, int | None] = {}
    for name in ask.listed(f"{below}/net") if below else ():
        if _REPRESENTOR.search(name):
            continue
        said = ask.attributes(f"{below}/net/{name}", ("dev_port", "dev_id"))
        found[name] = rdma_words.number(said.get("dev_port", said.get("dev_id")))
    return found


def _of_port(netdevs: dict[str, int | None], number: int, ports: int) -> set[str]:
    """The interfaces of one port; one that does not say its port belongs to the only one."""
    return {name for name, at in netdevs.items() if at == number - 1 or (at is None and ports == 1)}


def _numbered(names: Iterable[str]) -> list[int]:
    return sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) <= 6)
