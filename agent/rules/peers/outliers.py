"""Counts since boot or load that no peer has: without an earlier sample they are the only sign of an old fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence

import msgspec

from agent.model.counters import gpu_counters, port_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function
from agent.rules.pages import read_limit
from agent.rules.peers.parts import PeerPart, list_parts
from agent.rules.rule import Fail, NotApplicable, Pass, Result, rule
from agent.rules.wording import count_of, find_median

_LEAST = read_limit("counter-outlier.count")
_TIMES = read_limit("counter-outlier.times")
_PEERS = 3  # that are needed to call one an outlier
_BUSIER = 10  # times the packets of its peers: it alone carries the traffic
_BILLION = 1_000_000_000
_PCIE, _WIRE, _TRANSPORT, _MEMORY, _LINK, _LOST = "pcie", "wire", "transport", "memory", "link", "lost"
_TOTAL = "TOTAL_ERR_COR"
_CORRECTABLE = f"correctable.{_TOTAL}"
# Errors by family and name; of one fault several of a family count, and it is one finding. Not among them: pause, CNP,
# ECN, waits and discards, which traffic makes, and bits that FEC corrects
COUNTERS: Mapping[str, Mapping[str, str]] = {
    _PCIE: {
        _CORRECTABLE: "correctable PCIe errors",
        "correctable": "correctable PCIe errors",
        "replays": "PCIe replays",
        "bad_tlp": "bad PCIe packets",
        "bad_dllp": "bad PCIe link packets",
        "receiver_errors": "PCIe receiver errors",
    },
    _MEMORY: {"umc.correctable": "corrected memory errors"},
    _LOST: {"umc.uncorrectable": "uncorrectable memory errors"},  # one is enough
    _LINK: {
        "xgmi_wafl.correctable": "corrected XGMI errors",
        "c2c_replays": "NVLink-C2C replays",
        "crc": "NVLink CRC errors",
        "crc_flit": "NVLink CRC errors",
        "crc_data": "NVLink CRC errors",
        "replay": "NVLink replays",
    },
    _WIRE: {
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
    _TRANSPORT: {
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
        **dict.fromkeys(
            ("req_transport_retries_exceeded", "max_retry_exceeded", "req_tx_retry_excd_err"),
            "queue pairs that gave up",
        ),
    },
}
_ANY = COUNTERS[_LOST].keys()
_ERRORS = frozenset(name for family in COUNTERS.values() for name in family)
_REORDERED = frozenset({  # what adaptive routing makes, without a fault
    "out_of_sequence", "packet_seq_err", "oos_drop_count", "seq_err_naks_rcvd", "resp_rx_outouf_seq",
    "req_rx_pkt_seq_err", "Rcvd Out of order packets", "Nak Sequence Error",
})  # fmt: skip
_PACKETS = (
    *("port_rcv_packets", "port_xmit_packets", "rx_pkts", "tx_pkts"),  # mlx5, bnxt
    *("rx_rdma_ucast_pkts", "tx_rdma_ucast_pkts"),  # ionic
)
_IMPACT = {
    _PCIE: "Each is repeated by the hardware; with so many errors a slot, riser or connector may lose its link.",
    _MEMORY: "Memory with so many corrections is likely to have an uncorrectable error next.",
    _LOST: "Data was lost: a job ended, or computed with wrong data.",
    _LINK: "Each is repeated by the hardware; such a link slows all traffic on it.",
    _WIRE: "A cable, module or port with so many errors loses packets: collectives wait for timeouts on this rail.",
    _TRANSPORT: "Packets of this rail were lost and sent again, which slows every collective that uses it.",
}


_SITUATIONS = {
    _PCIE: "",
    _MEMORY: "memory-errors",
    _LOST: "memory-errors",
    _LINK: "gpu-link",
    _WIRE: "network",
    _TRANSPORT: "network",
}


class Counts(msgspec.Struct, frozen=True):
    """The counters of one part."""

    part: PeerPart
    values: Mapping[str, int]
    packets: int | None = None


@rule("counter-outlier")
def counter_outlier(case: RuleContext) -> Iterator[Result]:
    groups: dict[tuple[str, str, str], list[Counts]] = defaultdict(list)
    for counts in _list_counts(case):
        part = counts.part
        groups[part.kind, part.role, part.product].append(counts)
    least = case.threshold(_LEAST)
    for group in groups.values():
        for counts in group:
            if len(group) <= _PEERS:
                why = Reason("nothing-to-compare", detail="too few peers to compare its counts with")
                yield NotApplicable(counts.part.subject, why)
            elif large := {name for name, count in counts.values.items() if count >= least or (count and name in _ANY)}:
                yield from _judge(case, counts, group, large)
            else:
                yield Pass(counts.part.subject)


def _list_counts(case: RuleContext) -> Iterator[Counts]:
    of_ports: dict[str, list[Netdev]] = defaultdict(list)
    listed: set[str] = set()
    for nic in case.topology.nics:
        for port in nic.ports:
            own = [case.netdevs[name] for name in port.netdevs if name in case.netdevs]
            of_ports[f"{nic.id}/{port.port}"] = [netdev for netdev in own if netdev.vlan is None]
            listed |= {netdev.id for netdev in own}
    for part in case.once(list_parts):
        if not isinstance(part, PeerPart):
            continue
        if part.kind == "gpu":
            yield Counts(part, _choose_errors({**gpu_counters(part.row), **_count_pcie_errors(case, part)}))
        elif part.kind == "link":
            yield Counts(part, _choose_errors(part.row.errors))
        elif part.kind == "nic":
            yield Counts(part, _choose_errors(_count_pcie_errors(case, part)))
        elif part.kind == "port":
            values = port_counters(part.row)
            errors = _choose_errors(values)
            for netdev in of_ports[part.key]:
                errors |= _choose_errors(netdev.counters)
            known = [values[name] for name in _PACKETS if name in values]
            yield Counts(part, errors, sum(known) if known else None)
        elif part.kind == "netdev" and part.row.id not in listed and "parent" not in (part.row.vlan or {}):
            yield Counts(part, _choose_errors(part.row.counters))


def _count_pcie_errors(case: RuleContext, part: PeerPart) -> Mapping[str, int]:
    function = find_function(case, part.row)
    correctable = function.aer.get("correctable", {}) if function and function.aer else {}
    return {_CORRECTABLE: correctable[_TOTAL]} if _TOTAL in correctable else {}


def _choose_errors(counters: Mapping[str, int] | None) -> dict[str, int]:
    """Those that count errors: a port has two hundred others."""
    return {name: counters[name] for name in counters.keys() & _ERRORS} if counters else {}


def _judge(case: RuleContext, counts: Counts, group: Sequence[Counts], large: Container[str]) -> Iterator[Result]:
    others = [other for other in group if other is not counts]
    faults: list[Result] = []
    for family, names in COUNTERS.items():
        odd = [name for name in names if name in large and _is_odd(case, counts, others, name)]
        if odd:
            faults.append(_fail(counts, others, family, odd))
    yield from faults or [Pass(counts.part.subject)]


def _is_odd(case: RuleContext, counts: Counts, others: Sequence[Counts], name: str) -> bool:
    count = counts.values[name]
    if case.moved(counts.part.subject, name, counts.values) is not None:
        return False  # two samples say what happens now
    usual = _usual_count(others, name)
    if name in _ANY:
        return usual == 0
    if usual is None or count < case.threshold(_TIMES) * max(usual, 1) or (name in _REORDERED and _is_reordered(case)):
        return False
    if counts.packets is None:
        return True
    packets = [other.packets for other in others if other.packets is not None]
    if packets and counts.packets > _BUSIER * find_median(packets):
        return False
    return count * _BILLION >= case.threshold(_LEAST) * counts.packets


def _is_reordered(case: RuleContext) -> bool:
    """Whether packets may overtake each other here."""
    from agent.rules.roce.port_counters import adaptive_routing  # lazy: few nodes have such a count

    return adaptive_routing(case) is not None


def _usual_count(others: Sequence[Counts], name: str) -> float | None:
    """The median of its peers; None where too few count it."""
    known = [other.values[name] for other in others if name in other.values]
    return find_median(known) if len(known) >= _PEERS else None


def _fail(counts: Counts, others: Sequence[Counts], family: str, odd: Sequence[str]) -> Fail:
    part = counts.part
    most = max(odd, key=lambda name: counts.values[name])
    usual = _usual_count(others, most) or 0
    sure = family != _TRANSPORT or counts.packets is not None
    return Fail(
        subject=part.subject,
        label=part.label,
        summary=f"{count_of(counts.values[most], COUNTERS[family][most])} since boot or the load of its driver, not "
        f"dated; its {len(others)} peers have {usual:g} in the middle",
        impact=_IMPACT[family],
        evidence=tuple(
            Evidence(
                what=f"{COUNTERS[family][name]} ({name})",
                value=f"{counts.values[name]}; peers {_usual_count(others, name) or 0:g} in the middle",
                source=_SOURCES.get(part.kind, "ethtool -S"),
            )
            for name in odd
        ),
        severity="info" if part.role.startswith("storage") else "error" if family == _LOST else None,
        confidence="medium" if sure else "low",
        cause=family,
        situation=_SITUATIONS[family],
        places=part.ids,
    )


_SOURCES = {
    "gpu": "nvidia-smi -q, aer_dev_correctable of sysfs",
    "link": "nvidia-smi nvlink -e",
    "nic": "aer_dev_correctable of sysfs",
    "port": "counters and hw_counters of /sys/class/infiniband, ethtool -S",
}
