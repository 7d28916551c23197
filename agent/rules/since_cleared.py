"""Counters of a source that can give no second sample: what their values alone state, or two outputs of one command.

A value is a sum since a driver was loaded, a device was reset or someone cleared it, and no source states when. Only
counters that faults move are used, from a value on that starts of links, restarts of switches and ends of jobs do not
reach; beside others of the same source, or against the traffic that it counts, where it does. Nothing is assumed of
congestion: healthy hosts pause.

Two outputs of one command show what grew, and few texts state over which time. It is taken as an hour, which is far
more than people wait: a limit for a minute is reached by sixty times as many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from agent.model.counters import NETDEV, PORT, list_counted, port_counters
from agent.model.nic import Nic, Port
from agent.model.report import CountersWindow
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import HOUR, SINCE_CLEARED, format_seconds
from agent.rules.fragments import (
    ASSUMED_TYPES,
    COUNTED_BY_ROCE,
    NO_SAMPLE,
    assume_rdma_device,
    lower_to_note,
    of_interface,
)
from agent.rules.rule import Fail, Result, Rule, Unknown

_FRAMES = (
    *("rx_packets_phy", "rx_ucast_packets", "rx_unicast.nic", "rx_good_frames", "rx_packets"),
    *("port_rcv_packets", "unicast_rcv_packets", "mac_rx_total_pkt_num"),
)
_SENT = ("port_xmit_packets", "unicast_xmit_packets")
_RDMA = (  # packets of RDMA, which rules compare with: they move in good health, and are no fault
    *("tx_pkts", "TxUDP", "rdma_tx_packets", "tx_rdma_ucast_pkts", "roce_tx_all_pkt_num"),
    *("rx_pkts", "RxUDP", "rdma_rx_packets", "rx_rdma_ucast_pkts", "roce_rx_all_pkt_num"),
    *("tx_vport_rdma_unicast_packets", "rx_vport_rdma_unicast_packets", "rx_bits_phy", "rcvd_pkts", "sent_pkts"),
)
_SPECIFIED = 1e-7  # of frames: what a bit error rate of 1e-12 damages of long ones (IEEE 802.3, InfiniBand)
_LOSS = 1e-6  # of frames: where RoCE begins to lose speed


class Floor(NamedTuple):
    """From which value on a counter is evidence by itself."""

    least: int
    share: float = 0.0  # of the traffic, where the source counts it
    traffic: Sequence[str] = ()
    only_of_traffic: bool = False  # no evidence where the source counts no traffic


_DAMAGED = Floor(1000, _SPECIFIED, _FRAMES)
_DOWNS = Floor(20)  # of a host that ran for a year
_RETRIES = Floor(1000, _LOSS, _RDMA)
FLOORS: Mapping[str, Floor] = {
    **dict.fromkeys(
        (
            *("rx_crc_errors_phy", "rx_symbol_err_phy", "rx_fcs_err_frames", "frames_rx_bad_fcs", "rx_crc_errors.nic"),
            *("rx_crc_errors", "rx_pcs_symbol_err_phy", "rx_fec_uncorrectable_blocks", "fec_uncorrectable_blocks"),
            *("fec_uncorr_blocks", "mac_rx_fcs_err_pkt_num", "symbol_error", "port_rcv_errors"),
            "port_rcv_remote_physical_errors",
        ),
        _DAMAGED,
    ),
    **dict.fromkeys(("link_down_events_phy", "link_down_events", "carrier_down_count", "link_downed"), _DOWNS),
    "rx_errors": Floor(1000, 1e-5, _FRAMES),  # frames of a length that the interface does not take, too
    "rx_corrected_bits_phy": Floor(1, 0.0, ("rx_bits_phy",), only_of_traffic=True),
    "rx_icrc_encapsulated": Floor(100),
    "link_error_recovery": Floor(20),
    "local_link_integrity_errors": Floor(10),
    "excessive_buffer_overrun_errors": Floor(10),
    "port_xmit_discards": Floor(1000, _LOSS, _SENT, only_of_traffic=True),
    **dict.fromkeys(
        ("rx_discards_phy", "rx_roce_discards", "rx_fifo_errors", "rx_missed", "rx_missed_errors"),
        Floor(1000, _LOSS, _FRAMES, only_of_traffic=True),
    ),
    **dict.fromkeys(("local_ack_timeout_err", "to_retransmits", "RTO", "requester_timeout"), _RETRIES),
    **dict.fromkeys(("packet_seq_err", "seq_err_naks_rcvd", "roce_new_pkt_rty_num"), _RETRIES),
    "tx_pause_storm_error_events": Floor(1),
    "tx_pause_storm_warning_events": Floor(100),
    "outbound_pci_buffer_overflow": Floor(1000),
}
_BY_PRIORITY = "rx_prio"
_LARGE = 100  # times its floor
_ORDER = ("packet_seq_err",)
_GROWN = "between two outputs of the source"
_PEERS, _TIMES = 3, 10  # others of the source, and how far beyond the worst of them
_LEAST = 10  # however few its peers have
_NO_NUMBER = frozenset({(1 << 32) - 1, (1 << 64) - 1})


class CountedMachine(NamedTuple):
    """A machine without a second sample, and the same as if one with other counters had been taken. `is_note`: by
    large values, beside which nothing shows how large."""

    waiting: RuleContext
    counted: RuleContext
    is_note: bool = False


def list_counted_machines(assumed: RuleContext) -> list[CountedMachine]:
    """A machine whose counters began at 0 when they were last cleared, where one is evidence; and one whose counters
    grew between two outputs of the source. Interfaces of which one is, and which no port names, have one assumed."""
    why = assumed.why_not_counted
    window = assumed.window
    grown = window if assumed.recorded and window and window.since is None and window.moved else None
    if grown is None and (why is None or why.code != NO_SAMPLE):
        return []
    machines: list[CountedMachine] = []
    if grown:
        began = f"in {format_seconds(grown.seconds)}" if grown.seconds else _GROWN
        machines.append(_build_machine(assumed, replace(grown, seconds=grown.seconds or HOUR), began))
    subjects = dict(_list_counters(assumed))
    compared = {subject for subject in subjects if window and "*" not in window.not_compared.get(subject, {"*": ""})}
    unnamed = {
        f"{PORT}:{nic.id}/{port.port}"
        for nic in assumed.topology.nics
        for port in nic.ports
        if port.link_layer is None and _find_layer(port) != "Ethernet"
    }
    moved: dict[str, dict[str, int]] = {}
    gaps: dict[str, dict[str, str]] = {}
    for subject, counters in subjects.items():
        evidence = {name: value for name, value in counters.items() if _is_evidence(name, subject, subjects)}
        if evidence and not (grown and subject in compared):
            moved[subject] = evidence | {name: counters[name] for name in _RDMA if name in counters}
            moved[subject] |= _list_priorities(evidence, counters)
        gaps[subject] = {
            name: str(why)
            for name in counters
            if name not in FLOORS and name not in _RDMA and not name.startswith(_BY_PRIORITY)
        }
    if large := {subject: found for subject in subjects if (found := _find_large(subject, subjects, moved, unnamed))}:
        window = CountersWindow(moved=large, not_compared=gaps)
        machines.append(_build_machine(assumed, window, SINCE_CLEARED, "Ethernet")._replace(is_note=True))
    if moved:
        machines.append(_build_machine(assumed, CountersWindow(moved=moved, not_compared=gaps), SINCE_CLEARED))
    return machines


def _find_large(
    subject: str,
    subjects: Mapping[str, Mapping[str, int]],
    moved: Mapping[str, Mapping[str, int]],
    unnamed: Collection[str],
) -> dict[str, int]:
    """Counters that are worth a note: far above their floor, where the source does not count their traffic; packets
    out of order of a port that may be InfiniBand or not. On InfiniBand these come with adaptive routing."""
    counters, evidence = subjects[subject], moved.get(subject, {})
    large = {
        name: value
        for name, value in counters.items()
        if (floor := FLOORS.get(name)) is not None and value not in _NO_NUMBER
        if (subject in unnamed and name in _ORDER and name in evidence)
        or (
            floor.only_of_traffic
            and floor.least > 1
            and value >= _LARGE * floor.least
            and not any(counters.get(one) for one in floor.traffic)
        )
    }
    return large | _list_priorities(large, counters)


def _list_priorities(evidence: Collection[str], counters: Mapping[str, int]) -> dict[str, int]:
    """By priority what is counted for the port: rules ask for it where a port counts so."""
    names = (name for name in counters if name.startswith(_BY_PRIORITY)) if "rx_discards_phy" in evidence else ()
    return {name: counters[name] for name in names}


def _build_machine(
    assumed: RuleContext, window: CountersWindow, began: str, layer: str | None = None
) -> CountedMachine:
    moved = window.moved
    named = {name for nic in assumed.topology.nics for port in nic.ports for name in port.netdevs}
    ports = [
        assume_rdma_device(netdev)
        for netdev in assumed.topology.netdevs
        if f"{NETDEV}:{netdev.id}" in moved and netdev.label not in named and not (netdev.bond or netdev.vlan)
    ]
    nics = [_assume_in_use(nic, moved, layer) for nic in assumed.topology.nics]
    waiting = replace(
        assumed,
        topology=replace(assumed.topology, nics=[*nics, *ports]),
        accelerator_nics=tuple(_assume_in_use(nic, moved, layer) for nic in assumed.accelerator_nics),
        window=None,
    )
    return CountedMachine(waiting, replace(waiting, window=window, assumed_window=began))


def _assume_in_use(nic: Nic, moved: Mapping[str, Mapping[str, int]], layer: str | None) -> Nic:
    """The NIC with its ports that counted errors in use, where no output shows their state."""
    ports = [
        replace(port, state=port.state or "ACTIVE", link_layer=port.link_layer or layer or _find_layer(port))
        if f"{PORT}:{nic.id}/{port.port}" in moved
        else port
        for port in nic.ports
    ]
    return replace(nic, ports=ports)


def _find_layer(port: Port) -> str:
    return "Ethernet" if any(port.hw_counters.get(name) for name in COUNTED_BY_ROCE) else "InfiniBand"


def _list_counters(context: RuleContext) -> Iterator[tuple[str, Mapping[str, int]]]:
    for item in list_counted(context.topology):
        if item.subject.startswith((f"{PORT}:", f"{NETDEV}:")):
            yield item.subject, item.counters
    for nic in context.accelerator_nics:
        for port in nic.ports:
            yield f"{PORT}:{nic.id}/{port.port}", port_counters(port)


def _is_evidence(name: str, subject: str, subjects: Mapping[str, Mapping[str, int]]) -> bool:
    floor, counters = FLOORS.get(name), subjects[subject]
    value = counters[name]
    if floor is None or value in _NO_NUMBER:
        return False
    traffic = next((counters[one] for one in floor.traffic if counters.get(one)), None)
    if traffic is None and floor.only_of_traffic:
        return False
    if traffic is not None and value < floor.share * (traffic + value):
        return False
    others = [other[name] for key, other in subjects.items() if key != subject and name in other]
    stands_out = len(others) >= _PEERS and value >= max(_LEAST, _TIMES * max(others))
    return value >= floor.least or (stands_out and 10 * value >= floor.least)


def find_since_cleared(machine: CountedMachine, rule: Rule, answers: Sequence[Result]) -> Iterator[Fail]:
    """Faults that a rule finds in the values alone, of subjects for which it has no second sample."""
    if not any(isinstance(answer, Unknown) for answer in answers):
        return
    before = list(rule.check(machine.waiting))
    waiting = {a.subject: a.reason for a in before if isinstance(a, Unknown) and a.reason.code == NO_SAMPLE}
    if not waiting:
        return
    known = {answer.subject for answer in (*before, *answers) if isinstance(answer, Fail)}
    for fault in rule.check(machine.counted):
        why = waiting.get(fault.subject) or waiting.get("node")
        if isinstance(fault, Fail) and why is not None and fault.subject not in known:
            low = (
                replace(fault, confidence="low", depends_on=why)
                if machine.counted.assumed_window == SINCE_CLEARED
                else replace(fault, confidence="medium" if fault.confidence == "high" else fault.confidence)
            )
            low = lower_to_note(low) if machine.is_note else low
            yield of_interface(low) if _is_assumed(machine, fault.subject) else low


def _is_assumed(machine: CountedMachine, subject: str) -> bool:
    nic = machine.waiting.nics.get(subject.partition(":")[2].rpartition("/")[0])
    return nic is not None and nic.node_type in ASSUMED_TYPES
