"""Which counters of a report are compared between two samples, and what each is called there.

A window identifies a counter by subject and name; rules ask by the same functions, such as `aer_counters`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from agent.model.gpu import Gpu
from agent.model.nic import Netdev, Port
from agent.model.pci import PciFunction
from agent.model.topology import Topology

AER, GPU, LINK, PORT, NETDEV = "pci", "gpu", "link", "port", "netdev"
FABRIC_PORT = "ib_port"  # kind of events: ports as ibqueryerrors, perfquery and ibdiagnet state them, of switches too

# Widths of the InfiniBand port counters that stay at their end: InfiniBand Architecture Specification, PortCounters;
# Linux drivers/infiniband/core/sysfs.c
PORT_COUNTER_BITS: Mapping[str, int] = {
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "port_rcv_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16,
}
MAXIMUM_VALUE: Mapping[str, int] = {name: (1 << bits) - 1 for name, bits in PORT_COUNTER_BITS.items()}


class Counted(msgspec.Struct, frozen=True):
    """The counters of one subject of findings."""

    subject: str  # "pci:ID", "gpu:ID", "link:GPU-ID/7", "port:NIC-ID/1", "netdev:ID"
    counters: Mapping[str, int]
    twice: frozenset[str] = frozenset()  # names that two of its tables have: neither is compared
    wraps: frozenset[str] = frozenset()  # 32-bit ones, which go on from 0: mlx5's (drivers/infiniband/hw/mlx5)


def aer_counters(function: PciFunction) -> dict[str, int]:
    """ "correctable.RxErr" and its kin: names alone are those of two lists ("fatal.DLP", "nonfatal.DLP")."""
    return {f"{kind}.{name}": count for kind, row in (function.aer or {}).items() for name, count in row.items()}


def gpu_counters(gpu: Gpu) -> dict[str, int]:
    """Those of its PCIe link by their names ("replays"), of NVLink-C2C as "c2c_replays", of its blocks as
    "xgmi_wafl.correctable"."""
    errors = (gpu.c2c.errors if gpu.c2c else None) or {}
    return {
        **(gpu.pcie_counters or {}),
        **(gpu.error_counts or {}),
        **{f"c2c_{name}": count for name, count in errors.items()},
    }


def port_counters(port: Port) -> dict[str, int]:
    """`counters` and `hw_counters` of a port in one: no driver that we read of has a name in both."""
    return {**(port.counters or {}), **(port.hw_counters or {})}


def netdev_counters(netdev: Netdev) -> dict[str, int]:
    """Those of the kernel and the driver, and PFC frames by priority as DCB counts them ("dcb_pfc_sent_3")."""
    qos = netdev.qos
    if qos is None or not (qos.pfc_frames_sent or qos.pfc_frames_received):
        return netdev.counters or {}
    rows = (("dcb_pfc_sent", qos.pfc_frames_sent), ("dcb_pfc_received", qos.pfc_frames_received))
    return {**(netdev.counters or {}), **{f"{name}_{n}": count for name, row in rows for n, count in enumerate(row)}}


def list_counted(topology: Topology) -> Iterator[Counted]:
    """Every subject that has counters; those that matter most come first."""
    for function in topology.pci:
        yield Counted(f"{AER}:{function.id}", aer_counters(function))
    for gpu in topology.gpus:
        yield Counted(f"{GPU}:{gpu.id}", gpu_counters(gpu))
        for link in gpu.links:
            yield Counted(f"{LINK}:{gpu.id}/{link.link}", link.errors)
    for nic in topology.nics:
        for port in nic.ports:
            twice = frozenset(port.counters.keys() & port.hw_counters.keys())
            wraps = frozenset(port.hw_counters if (nic.driver or "").startswith("mlx5") else ())
            yield Counted(f"{PORT}:{nic.id}/{port.port}", port_counters(port), twice, wraps)
    for netdev in sorted(topology.netdevs, key=lambda netdev: netdev.nic is None):
        yield Counted(f"{NETDEV}:{netdev.id}", netdev_counters(netdev))
