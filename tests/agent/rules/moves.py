"""Machines whose counters moved: healthy ones with every counter and a window in which nothing moved, and changes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from agent.model.gpu import C2c, GpuPcie
from agent.model.nic import Qos
from agent.model.report import CountersWindow
from agent.rules.context import RuleContext
from agent.rules.rule import Result, Rule
from tests.agent.rules.build import (
    answers,
    changed_gpus,
    changed_netdev,
    changed_ports,
    fails,
    nic_id,
    server,
    topology,
)
from tests.agent.rules.rows import nvlinks

HOUR = 3600.0
NIC = nic_id(1)
PORT = f"port:{NIC}/1"
STOOD_AT = 5_000_000_000  # what counters stand at that did not move: says nothing

_MLX5 = (
    *("packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "out_of_sequence", "duplicate_request"),
    *("req_transport_retries_exceeded", "rnr_nak_retry_err", "out_of_buffer", "rx_icrc_encapsulated"),
    *("roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart_trans", "rp_cnp_ignored", "rp_cnp_handled"),
    *("np_cnp_sent", "np_ecn_marked_roce_packets"),
)
_PORT = (
    *("port_xmit_packets", "port_rcv_packets", "port_xmit_data", "port_rcv_data", "port_xmit_wait"),
    *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors"),
    *("port_xmit_discards", "port_xmit_constraint_errors", "port_rcv_constraint_errors"),
    *("local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped"),
)
_ETHERNET = (
    *("carrier_down_count", "link_down_events_phy", "rx_discards_phy", "rx_crc_errors_phy", "rx_symbol_err_phy"),
    *("rx_pcs_symbol_err_phy", "rx_corrected_bits_phy", "rx_bits_phy", "rx_pause_ctrl_phy", "rx_unsupported_op_phy"),
    *("tx_pause_storm_warning_events", "tx_pause_storm_error_events", "outbound_pci_stalled_wr_events"),
    *("outbound_pci_buffer_overflow", "dev_out_of_buffer", "rx_pci_signal_integrity", "tx_pci_signal_integrity"),
    *("rx_vport_rdma_unicast_bytes", "tx_vport_rdma_unicast_bytes", "rx_prio3_pause", "rx_prio3_pause_duration"),
    *("tx_prio3_pause_duration", *(f"{way}_prio{n}_bytes" for way in ("rx", "tx") for n in range(8))),
    *(f"rx_prio{n}_discards" for n in range(8)),
)
_AER = {
    "correctable": ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "TOTAL_ERR_COR"),
    "nonfatal": ("DLP", "SDES", "TLP", "UnsupReq", "TOTAL_ERR_NONFATAL"),
    "fatal": ("DLP", "SDES", "TLP", "UnsupReq", "TOTAL_ERR_FATAL"),
}
_GPU_PCIE = ("replays", "replay_rollovers", "l0_to_recovery")
_C2C = ("interrupts", "replays", "replays_back_to_back")
_NVLINK = (
    *("replay", "recovery", "crc", "malformed_packets", "local_link_integrity", "transmit_discards", "recoveries"),
    *("recoveries_successful", "recoveries_failed", "symbol", "effective"),
)


def roce() -> RuleContext:
    """Four RoCE rails with all counters of mlx5 and PFC on priority 3; an hour in which nothing moved."""
    context = changed_ports(_quiet(server(ethernet=True)), counters=_stand(_PORT), hw_counters=_stand(_MLX5))
    for n in range(4):
        qos = Qos(pfc=[priority == 3 for priority in range(8)])
        context = changed_netdev(context, n, counters=_stand(_ETHERNET), qos=qos)
    return context


def infiniband() -> RuleContext:
    """Four InfiniBand rails with all counters; an hour in which nothing moved."""
    return changed_ports(_quiet(server()), counters=_stand(_PORT), hw_counters=_stand(_MLX5))


def gpus() -> RuleContext:
    """Four GPUs, their NVLinks, C2C and PCIe functions with all counters; an hour in which nothing moved."""
    context = _quiet(server())
    links = [msgspec.structs.replace(link, errors=_stand(_NVLINK)) for link in nvlinks()]
    context = changed_gpus(
        context,
        pcie_counters=_stand(_GPU_PCIE),
        c2c=C2c(enabled=True, errors=_stand(_C2C)),
        links=links,
        pstate="P0",
        pcie=GpuPcie(generation=5, width=16, max_generation=5, max_width=16),
    )
    aer = {kind: _stand(names) for kind, names in _AER.items()}
    return topology(context, pci=[msgspec.structs.replace(item, aer=aer) for item in context.topology.pci])


def moved(context: RuleContext, subject: str, counters: Mapping[str, int], seconds: float | None = None) -> RuleContext:
    """The same machine after these counters of one subject of the window moved by so much."""
    assert context.window is not None
    table = {**context.window.moved, subject: {**context.window.moved.get(subject, {}), **counters}}
    window = msgspec.structs.replace(context.window, moved=table, seconds=seconds or context.window.seconds)
    return replace(context, window=window)


def reset(context: RuleContext, subject: str, counter: str = "*", why: str = "restarted") -> RuleContext:
    """The same machine with counters that could not be compared."""
    assert context.window is not None
    gaps = {**context.window.not_compared, subject: {counter: why}}
    return replace(context, window=msgspec.structs.replace(context.window, not_compared=gaps, moved={}))


def without_window(context: RuleContext) -> RuleContext:
    """The first run on this machine."""
    return replace(context, window=None)


def severities(rule: Rule, context: RuleContext) -> list[tuple[str, str]]:
    """Subject and severity of each fault."""
    return [(fault.subject, fault.severity or rule.severity) for fault in fails(rule, context)]


def one(rule: Rule, context: RuleContext, subject: str) -> Result:
    """The one answer about a subject."""
    (answer,) = answers(rule, context, subject)
    return answer


def _quiet(context: RuleContext) -> RuleContext:
    return replace(context, window=CountersWindow(since="2026-05-01T10:00:00Z", seconds=HOUR))


def _stand(names: tuple[str, ...]) -> dict[str, int]:
    return dict.fromkeys(names, STOOD_AT)
