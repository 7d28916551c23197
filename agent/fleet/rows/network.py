"""Rows of NICs, their ports, network interfaces and addresses. Tuples are in the table's order, without the node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from agent.fleet.rows.device_shapes import Netdev, Nic, Port, Qos
from agent.fleet.rows.devices import Counts, Row


def nic_row(n: Nic, rail: int | None) -> Row:
    """A row of table nic."""
    return (
        n.id,
        n.label,
        rail,
        n.role,
        n.model,
        n.board_id,
        n.firmware,
        n.driver,
        n.rdma_device,
        n.node_guid,
        n.system_image_guid,
        n.numa_node,
        n.virtual_function,
        n.state,
    )


def port_row(n: Nic, p: Port, rail: int | None) -> Row:
    """A row of table port."""
    far, types = p.neighbor, {gid.type for gid in p.gids if gid.type}
    return (
        n.id,
        n.label,
        p.port,
        rail,
        p.link_layer,
        p.state,
        p.phys_state,
        p.rate_gbit_s,
        p.width,
        p.speed,
        p.lid,
        p.sm_lid,
        p.port_guid,
        p.active_mtu,
        ", ".join(sorted(types)) if p.gids_known or types else None,
        p.netdevs[0] if p.netdevs else None,
        far and far.node_guid,
        far and far.name,
        far and far.port,
        _subnet(p),
    )


def netdev_row(d: Netdev, rail: int | None) -> Row:
    """A row of table netdev. An empty list of DCB is what is not known."""
    q, module, neighbor = d.qos, d.module, d.neighbor
    return (
        d.id,
        d.label,
        d.nic,
        rail,
        d.mac,
        d.operstate,
        d.speed_gbit_s,
        d.mtu,
        d.driver,
        d.master,
        d.fec and d.fec.active,
        d.pause and d.pause.rx,
        d.pause and d.pause.tx,
        q and q.trust,
        (q and _bits(q.pfc)) or None,
        (q and _priorities(tuple(q.dscp_prio.items()))) or None,
        (q and " ".join(map(str, q.tc_bandwidth))) or None,
        (q and " ".join(f"{point}:{_bits(row)}" for point, row in sorted(q.ecn.items()) if row)) or None,
        module and module.vendor,
        module and module.part,
        module and module.serial,
        neighbor and neighbor.system,
        neighbor and neighbor.chassis,
        neighbor and neighbor.port,
    )


def pfc_counters(q: Qos) -> Counts:
    """PFC frames by priority as DCB counts them."""
    rows = (("dcb_pfc_sent", q.pfc_frames_sent), ("dcb_pfc_received", q.pfc_frames_received))
    return {f"{name}_{n}": count for name, row in rows for n, count in enumerate(row)}


def _subnet(p: Port) -> str | None:
    first = next((gid.gid for gid in p.gids if gid.index == 0), None) if p.link_layer == "InfiniBand" else None
    return first[:19].replace(":", "") if first and len(first) == 39 else None


def _bits(row: Sequence[bool]) -> str:
    return "".join("01"[each] for each in row)


@lru_cache(1024)
def _priorities(items: tuple[tuple[str, int], ...]) -> str:
    return " ".join(f"{dscp}:{priority}" for dscp, priority in sorted(items, key=_dscp))


def _dscp(item: tuple[str, int]) -> tuple[int, str]:
    return (int(item[0]), "") if item[0].isdecimal() and len(item[0]) < 9 else (1 << 30, item[0])
