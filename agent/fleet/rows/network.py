"""Rows of NICs, their ports, network interfaces and addresses. Tuples are in the table's order, without the node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec.json import Decoder

from agent.fleet.rows.device_fields import (
    NETDEV_ROWS,
    NIC_ROWS,
    PORT_ROWS,
    GidFields,
    Int,
    NetdevFields,
    NicFields,
    PortFields,
)
from agent.fleet.rows.devices import Row
from agent.fleet.rows.row_columns import MOST
from agent.fleet.tables import PORT_COUNTERS


def nic_row(n: NicFields, rail: int | None) -> Row:
    """A row of table nic."""
    return NIC_ROWS.row(n, rail=rail)


def port_row(n: NicFields, p: PortFields, rail: int | None) -> Row:
    """A row of table port."""
    far, types = p.neighbor, {gid.type for gid in p.gids if gid.type}
    return PORT_ROWS.row(
        p,
        nic=n.id,
        label=n.label,
        rail=rail,
        gid_types=", ".join(sorted(types)) if p.gids_known or types else None,
        netdev=p.netdevs[0] if p.netdevs else None,
        neighbor_guid=far and far.node_guid,
        neighbor_name=far and far.name,
        neighbor_port=far and far.port,
        subnet=_subnet(p),
        role=n.role,
        virtual_function=n.virtual_function,
        roce_gid_index=_roce_gid_index(p.gids),
    )


def port_counter_rows(nics: list[NicFields], rails: Mapping[str, int]) -> list[Row]:
    """Rows of table port_counter, of the ports that have counters."""
    return [
        (nic.id, nic.label, port.port, rails.get(nic.id), *_counts(port))
        for nic in nics
        for port in nic.ports
        if port.counters or port.hw_counters
    ]


def _counts(p: PortFields) -> list[int | None]:
    counts = map(p.counters.get, PORT_COUNTERS, map(p.hw_counters.get, PORT_COUNTERS))
    return [count if count is None or 0 <= count <= MOST else None for count in counts]  # 64 bits without sign


def netdev_row(d: NetdevFields, rail: int | None) -> Row:
    """A row of table netdev. An empty list of DCB is what is not known. Raises msgspec.DecodeError."""
    q, module, neighbor = d.qos, d.module, d.neighbor
    return NETDEV_ROWS.row(
        d,
        rail=rail,
        fec=d.fec and d.fec.active,
        pause_rx=d.pause and d.pause.rx,
        pause_tx=d.pause and d.pause.tx,
        trust=q and q.trust,
        pfc=(q and _bits(q.pfc)) or None,
        dscp_prio=(q and _priorities(bytes(q.dscp_prio))) or None,
        tc_bandwidth=(q and _words(q.tc_bandwidth)) or None,
        ecn=(q and _points(bytes(q.ecn))) or None,
        module_vendor=module and module.vendor,
        module_part=module and module.part,
        module_serial=module and module.serial,
        neighbor_system=neighbor and neighbor.system,
        neighbor_chassis=neighbor and neighbor.chassis,
        neighbor_port=neighbor and neighbor.port,
        prio_tc=(q and _words(q.prio_tc)) or None,
        cnp_dscp=q and q.cnp_dscp,
        cnp_priority=q and q.cnp_priority,
    )


@lru_cache(64)
def pfc_names(way: str, count: int) -> tuple[str, ...]:
    """Counters of PFC frames by priority, as DCB has them; `way`: sent, received."""
    return tuple(f"dcb_pfc_{way}_{n}" for n in range(count))


def _subnet(p: PortFields) -> str | None:
    first = next((gid.gid for gid in p.gids if gid.index == 0), None) if p.link_layer == "InfiniBand" else None
    return first[:19].replace(":", "") if first and len(first) == 39 else None


def _roce_gid_index(gids: list[GidFields]) -> int | None:
    """What NCCL_IB_GID_INDEX should be."""
    routed = [
        (not _IPV4.match(gid.gid), gid.index)
        for gid in gids
        if gid.type == "RoCE v2" and gid.gid and gid.index is not None and not gid.gid.startswith("fe80:")
    ]
    return min(routed)[1] if routed else None


_IPV4 = re.compile(r"(?:0000:){5}ffff:")


# Most nodes of a fleet are set up alike: what was made of a setting is remembered.
@lru_cache(1024)
def _bits(row: tuple[bool, ...]) -> str:
    return "".join("01"[bit] for bit in row)


@lru_cache(1024)
def _words(row: tuple[int, ...]) -> str:
    return " ".join(map(str, row))


@lru_cache(1024)
def _priorities(raw: bytes) -> str:
    return " ".join(f"{dscp}:{priority}" for dscp, priority in sorted(_PRIORITIES.decode(raw).items(), key=_dscp))


@lru_cache(1024)
def _points(raw: bytes) -> str:
    return " ".join(f"{point}:{_bits(row)}" for point, row in sorted(_POINTS.decode(raw).items()) if row)


def _dscp(item: tuple[str, int]) -> tuple[int, str]:
    return (int(item[0]), "") if item[0].isdecimal() and len(item[0]) < 9 else (1 << 30, item[0])


_PRIORITIES, _POINTS = Decoder(dict[str, Int]), Decoder(dict[str, tuple[bool, ...]])
