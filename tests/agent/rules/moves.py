"""Machines whose counters moved: healthy ones with every counter and a window in which nothing moved, and changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.model.gpu import C2c, GpuPcie
from agent.model.nic import Netdev, Qos
from agent.model.report import CountersWindow
from agent.rules.context import RuleContext
from agent.rules.rule import Fail, NotApplicable, Result, Rule, Unknown
from tests.agent.rules.build import (
    answers,
    changed_gpus,
    changed_netdev,
    changed_nic,
    changed_port,
    changed_ports,
    fails,
    function,
    gpu_id,
    nic_id,
    node,
    server,
    topology,
)
from tests.agent.rules.rows import nvlinks

HOUR = 3600.0
NIC, GPU = nic_id(1), gpu_id(1)
PORT, NETDEV = f"port:{NIC}/1", f"netdev:{NIC}"
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
    case = changed_ports(_quiet(server(ethernet=True)), counters=_stand(_PORT), hw_counters=_stand(_MLX5))
    for n in range(4):
        qos = Qos(pfc=[priority == 3 for priority in range(8)])
        case = changed_netdev(case, n, counters=_stand(_ETHERNET), qos=qos)
    return case


def infiniband() -> RuleContext:
    """Four InfiniBand rails with all counters; an hour in which nothing moved."""
    return changed_ports(_quiet(server()), counters=_stand(_PORT), hw_counters=_stand(_MLX5))


def gpus() -> RuleContext:
    """Four GPUs, their NVLinks, C2C and PCIe functions with all counters; an hour in which nothing moved."""
    case = _quiet(server())
    links = [msgspec.structs.replace(link, errors=_stand(_NVLINK)) for link in nvlinks()]
    case = changed_gpus(
        case,
        pcie_counters=_stand(_GPU_PCIE),
        c2c=C2c(enabled=True, errors=_stand(_C2C)),
        links=links,
        pstate="P0",
        pcie=GpuPcie(generation=5, width=16, max_generation=5, max_width=16),
    )
    aer = {kind: _stand(names) for kind, names in _AER.items()}
    return topology(case, pci=[msgspec.structs.replace(item, aer=aer) for item in case.topology.pci])


def moved(case: RuleContext, subject: str, counters: Mapping[str, int], seconds: float | None = None) -> RuleContext:
    """The same machine after these counters of one subject of the window moved by so much."""
    assert case.window is not None
    table = {**case.window.moved, subject: {**case.window.moved.get(subject, {}), **counters}}
    window = msgspec.structs.replace(case.window, moved=table, seconds=seconds or case.window.seconds)
    return replace(case, window=window)


def reset(case: RuleContext, subject: str, counter: str = "*", why: str = "restarted") -> RuleContext:
    """The same machine with counters that could not be compared."""
    assert case.window is not None
    gaps = {**case.window.not_compared, subject: {counter: why}}
    return replace(case, window=msgspec.structs.replace(case.window, not_compared=gaps, moved={}))


def gap(case: RuleContext, subject: str, counter: str, why: str = "restarted") -> RuleContext:
    """The same machine with one counter that could not be compared; all others moved as they did."""
    assert case.window is not None
    gaps = {**case.window.not_compared, subject: {counter: why}}
    return replace(case, window=msgspec.structs.replace(case.window, not_compared=gaps))


def without_window(case: RuleContext) -> RuleContext:
    """The first run on this machine."""
    return replace(case, window=None)


def storage(case: RuleContext) -> RuleContext:
    """The NIC that is looked at carries storage."""
    return changed_nic(case, 1, role="storage")


def without(case: RuleContext, *names: str) -> RuleContext:
    """The port and the interface that are looked at do not count these."""
    port = case.topology.nics[1].ports[0]
    remaining = {
        table: {name: count for name, count in getattr(port, table).items() if name not in names}
        for table in ("counters", "hw_counters")
    }
    case = changed_port(case, 1, **remaining)
    for n, netdev in enumerate(case.topology.netdevs):
        if netdev.id == NIC:
            counters = {name: count for name, count in netdev.counters.items() if name not in names}
            case = changed_netdev(case, n, counters=counters)
    return case


def severities(rule: Rule, case: RuleContext) -> list[tuple[str, str]]:
    """Subject and severity of each fault."""
    return [(fault.subject, fault.severity or rule.severity) for fault in fails(rule, case)]


def one(rule: Rule, case: RuleContext, subject: str) -> Result:
    """The one answer about a subject."""
    (answer,) = answers(rule, case, subject)
    return answer


def bond(case: RuleContext) -> RuleContext:
    """The port that is looked at hangs on a bond, whose one member has the cable."""
    above = Netdev(id="bond0", label="bond0", bond={"mode": "802.3ad"}, counters={"rx_bytes": 1})
    return topology(
        changed_port(changed_netdev(case, 1, master="bond0"), 1, netdevs=["bond0"]),
        netdevs=[*changed_netdev(case, 1, master="bond0").topology.netdevs, above],
    )


# What keeps every rule silent that counts on a port, whatever moved
PORT_GUARDS = [
    pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
    pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
    pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
    pytest.param(lambda c: function(c, NIC, physical_function=nic_id(0)), NotApplicable, id="virtual function"),
    pytest.param(lambda c: reset(c, PORT), Unknown, id="port restarted"),
    pytest.param(lambda c: node(c, uptime_seconds=HOUR + 899), Unknown, id="the window began while the host settled"),
    pytest.param(lambda c: changed_port(c, 1, counters={}, hw_counters={}), Unknown, id="no counter was read"),
]
# The same of rules that count on the interface of a RoCE port
WIRE_GUARDS = [
    *PORT_GUARDS[:4],
    pytest.param(lambda c: reset(c, NETDEV), Unknown, id="interface restarted"),
    PORT_GUARDS[5],
    pytest.param(lambda c: changed_netdev(c, 1, counters={}), Unknown, id="no counter was read"),
    pytest.param(lambda c: changed_netdev(c, 1, counters={"rx_bytes": 9}), Unknown, id="the kernel's counters alone"),
    pytest.param(lambda c: changed_port(c, 1, netdevs=[]), Unknown, id="no interface in sight"),
    pytest.param(lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="another namespace"),
]


def silent(rule: Rule, case: RuleContext, kind: type[Any]) -> None:
    """No fault at all, and answers of that kind about the port that was looked at."""
    assert [] == fails(rule, case)
    about = [*answers(rule, case, PORT), *answers(rule, case, NETDEV)]
    assert about
    assert all(isinstance(answer, kind) for answer in about), about


def alike(rule: Rule, cases: RuleContext, expected: str) -> None:
    """The fault is one finding for the node, and one of three ports stays one of three."""
    (fault,) = fails(rule, cases)
    assert isinstance(fault, Fail)
    assert ("node", expected) == (fault.subject, fault.severity)


def _quiet(case: RuleContext) -> RuleContext:
    return replace(case, window=CountersWindow(since="2026-05-01T10:00:00Z", seconds=HOUR))


def _stand(names: tuple[str, ...]) -> dict[str, int]:
    return dict.fromkeys(names, STOOD_AT)
