"""Counters of a report: which are compared between two samples and what each is called there, and which count errors.

A window identifies a counter by subject and name; rules ask by the same functions, such as `aer_counters`. Counters of
errors are by family, as both a node's rules and a fleet's questions compare them among peers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from agent.model.gpu import Gpu
from agent.model.nic import Netdev, Port
from agent.model.pci import PciFunction
from agent.model.topology import Topology

AER, GPU, LINK, PORT, NETDEV = "pci", "gpu", "link", "port", "netdev"

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


PCIE, WIRE, TRANSPORT, MEMORY, GPU_LINK, LOST = "pcie", "wire", "transport", "memory", "link", "lost"
CUT = "transaction"
_CORRECTABLE = "correctable."  # of AER, by kind of error and in all
CORRECTABLE_TOTAL = f"{_CORRECTABLE}TOTAL_ERR_COR"
# Errors by family and name; of one fault several of a family count, and it is one finding. Not among them: pause, CNP,
# ECN, waits and discards, which traffic makes, and bits that FEC corrects
_AER = (
    *("DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC", "ACSViol"),
    *("UncorrIntErr", "BlockedTLP", "AtomicOpBlocked", "TLPBlockedErr", "PoisonTLPBlocked"),
)  # of uncorrectable errors all but UnsupReq, which drivers and tools cause
ERROR_COUNTERS: Mapping[str, Mapping[str, str]] = {
    CUT: {
        **{f"fatal.{name}": "fatal PCIe errors" for name in _AER},
        **{f"nonfatal.{name}": "non-fatal PCIe errors" for name in _AER},
    },
    PCIE: {
        CORRECTABLE_TOTAL: "correctable PCIe errors",
        "correctable": "correctable PCIe errors",
        "replays": "PCIe replays",
        "bad_tlp": "bad PCIe packets",
        "bad_dllp": "bad PCIe link packets",
        "receiver_errors": "PCIe receiver errors",
    },
    MEMORY: {"umc.correctable": "corrected memory errors"},
    LOST: {"umc.uncorrectable": "uncorrectable memory errors"},  # one is enough
    GPU_LINK: {
        "xgmi_wafl.correctable": "corrected XGMI errors",
        "c2c_replays": "NVLink-C2C replays",
        "crc": "NVLink CRC errors",
        "crc_flit": "NVLink CRC errors",
        "crc_data": "NVLink CRC errors",
        "replay": "NVLink replays",
    },
    WIRE: {
        "symbol_error": "symbol errors",
        "link_error_recovery": "recoveries of the link",
        "link_downed": "times that the link went down",
        "port_rcv_errors": "packets received with errors",
        "carrier_down_count": "times that the link went down",
        "link_down_events_phy": "times that the link went down",
        "rx_crc_errors_phy": "packets received with CRC errors",
        "rx_symbol_err_phy": "symbol errors",
        "rx_pcs_symbol_err_phy": "symbol errors",
        "fec_uncorrectable_blocks": "blocks that FEC could not correct",
        # bnxt_en, ionic, ice
        **dict.fromkeys(
            ("rx_fcs_err_frames", "frames_rx_bad_fcs", "rx_crc_errors.nic"), "packets received with CRC errors"
        ),
        "rx_pcs_symbol_err": "symbol errors",
        "rx_fec_uncorrectable_blocks": "blocks that FEC could not correct",
        **dict.fromkeys(("mac_local_faults.nic", "mac_remote_faults.nic"), "faults of the link"),
    },
    TRANSPORT: {
        "out_of_sequence": "packets out of sequence",
        "packet_seq_err": "missing packets that a peer reported",
        "local_ack_timeout_err": "acknowledgement timeouts",
        "rx_icrc_encapsulated": "RoCE packets with CRC errors",
        # bnxt_re, ionic_rdma, irdma
        **dict.fromkeys(
            ("oos_drop_count", "resp_rx_outouf_seq", "Rcvd Out of order packets"), "packets out of sequence"
        ),
        **dict.fromkeys(
            ("seq_err_naks_rcvd", "req_rx_pkt_seq_err", "Nak Sequence Error"), "missing packets that a peer reported"
        ),
        **dict.fromkeys(("to_retransmits", "RTO"), "acknowledgement timeouts"),
        "retrans_timeout_events": "retransmission timeouts",  # efa
        **dict.fromkeys(
            ("req_transport_retries_exceeded", "max_retry_exceeded", "req_tx_retry_excd_err"),
            "queue pairs that gave up",
        ),
    },
}
_FAMILIES = {name: (family, what) for family, names in ERROR_COUNTERS.items() for name, what in names.items()}


def find_error_family(name: str) -> tuple[str, str] | None:
    """The family of a counter and what it counts; None: it counts no error.

    >>> find_error_family("correctable.RxErr"), find_error_family("port_rcv_data")
    (('pcie', 'correctable PCIe errors'), None)
    """
    return _FAMILIES.get(CORRECTABLE_TOTAL if name.startswith(_CORRECTABLE) else name)
