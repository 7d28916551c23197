"""Counters of errors by family: what both a node's rules and a fleet's questions compare among peers."""

from __future__ import annotations

from collections.abc import Mapping

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
