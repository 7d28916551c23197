"""Counts since boot or load that no peer has: without an earlier sample they are the only sign of an old fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec

from agent.model.counters import aer_counters, gpu_counters, port_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function
from agent.rules.pages import read_limit
from agent.rules.peers.parts import PeerPart, list_parts
from agent.rules.rule import Fail, NotApplicable, Pass, Result, rule
from agent.rules.wording import count_of

_LEAST = read_limit("counter-outlier.count")
_TIMES = read_limit("counter-outlier.times")
_PEERS = 3  # that are needed to call one an outlier
_BUSIER = 10  # times the packets of its peers: it alone carries the traffic
_BILLION = 1_000_000_000
_PCIE, _WIRE, _TRANSPORT, _MEMORY, _LINK = "pcie", "wire", "transport", "memory", "link"
# Errors by family and name; of one fault several of a family count, and it is one finding. Not among them: pause, CNP,
# ECN, waits and discards, which traffic makes, and bits that FEC corrects
COUNTERS: Mapping[str, Mapping[str, str]] = {
    _PCIE: {
        "correctable.TOTAL_ERR_COR": "correctable PCIe errors",
        "correctable": "correctable PCIe errors",
        "replays": "PCIe replays",
        "bad_tlp": "bad PCIe packets",
        "bad_dllp": "bad PCIe link packets",
        "receiver_errors": "PCIe receiver errors",
    },
    _MEMORY: {"umc.correctable": "corrected memory errors"},
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
        "rx_fcs_err_frames": "packets received with CRC errors",  # bnxt
        "frames_rx_bad_fcs": "packets received with CRC errors",  # ionic
    },
    _TRANSPORT: {
        "out_of_sequence": "packets out of sequence",
        "packet_seq_err": "missing packets that a peer reported",
        "local_ack_timeout_err": "acknowledgement timeouts",
        "rx_icrc_encapsulated": "RoCE packets with CRC errors",
        **dict.fromkeys(("oos_drop_count", "resp_rx_outouf_seq"), "packets out of sequence"),  # bnxt, ionic
        **dict.fromkeys(("seq_err_naks_rcvd", "req_rx_pkt_seq_err"), "missing packets that a peer reported"),
        "to_retransmits": "acknowledgement timeouts",
        "req_tx_retry_excd_err": "queue pairs that gave up",  # ionic
    },
}
_ERRORS = frozenset(name for family in COUNTERS.values() for name in family)
_REORDERED = frozenset({  # what adaptive routing makes, without a fault
    "out_of_sequence", "packet_seq_err", "oos_drop_count", "seq_err_naks_rcvd", "resp_rx_outouf_seq",
    "req_rx_pkt_seq_err",
})  # fmt: skip
_PACKETS = (
    *("port_rcv_packets", "port_xmit_packets", "rx_pkts", "tx_pkts"),  # mlx5, bnxt
    *("rx_rdma_ucast_pkts", "tx_rdma_ucast_pkts"),  # ionic
)
_IMPACT = {
    _PCIE: "Each is repeated by the hardware; with so many errors a slot, riser or connector may lose its link.",
    _MEMORY: "Memory with so many corrections is likely to have an uncorrectable error next.",
    _LINK: "Each is repeated by the hardware; such a link slows all traffic on it.",
    _WIRE: "A cable, module or port with so many errors loses packets: collectives wait for timeouts on this rail.",
    _TRANSPORT: "Packets of this rail were lost and sent again, which slows every collective that uses it.",
}


_SITUATIONS = {_PCIE: "", _MEMORY: "memory-errors", _LINK: "gpu-link", _WIRE: "network", _TRANSPORT: "network"}


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
    for group in groups.values():
        for counts in group:
            subject = counts.part.subject
            if len(group) <= _PEERS:
                why = Reason("nothing-to-compare", detail="too few peers to compare its counts with")
                yield NotApplicable(subject, why)
            else:
                yield from _judge(case, counts, [other for other in group if other is not counts])


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
        elif part.kind == "netdev" and part.row.id not in listed and not part.row.vlan:
            yield Counts(part, _choose_errors(part.row.counters))


def _count_pcie_errors(case: RuleContext, part: PeerPart) -> Mapping[str, int]:
    function = find_function(case, part.row)
    return aer_counters(function) if function else {}


def _choose_errors(counters: Mapping[str, int] | None) -> dict[str, int]:
    """Those that count errors: a port has two hundred others."""
    return {name: counters[name] for name in counters.keys() & _ERRORS} if counters else {}


def _judge(case: RuleContext, counts: Counts, others: Sequence[Counts]) -> Iterator[Result]:
    subject = counts.part.subject
    faults, least = [], case.threshold(_LEAST)
    large = {name: count for name, count in counts.values.items() if count >= least}
    for family, names in COUNTERS.items():
        odd = [name for name in names if name in large and _is_odd(case, counts, others, name)]
        if odd:
            faults.append(_fail(counts, others, family, odd))
    yield from faults
    if not faults:
        yield Pass(subject)


def _is_odd(case: RuleContext, counts: Counts, others: Sequence[Counts], name: str) -> bool:
    count = counts.values[name]
    if case.moved(counts.part.subject, name, counts.values) is not None:
        return False  # two samples say what happens now
    usual = _usual_count(others, name)
    if usual is None or count < case.threshold(_TIMES) * max(usual, 1) or (name in _REORDERED and _is_reordered(case)):
        return False
    if counts.packets is None:
        return True
    packets = [other.packets for other in others if other.packets is not None]
    if packets and counts.packets > _BUSIER * median(packets):
        return False
    return count * _BILLION >= case.threshold(_LEAST) * counts.packets


def _is_reordered(case: RuleContext) -> bool:
    """Whether packets may overtake each other here."""
    from agent.rules.roce.port_counters import adaptive_routing  # lazy: few nodes have such a count

    return adaptive_routing(case) is not None


def _usual_count(others: Sequence[Counts], name: str) -> float | None:
    """The median of its peers; None where too few count it."""
    known = [other.values[name] for other in others if name in other.values]
    return median(known) if len(known) >= _PEERS else None


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
        severity="info" if part.role.startswith("storage") else None,
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
