"""Counts since boot or load that no peer has: without an earlier sample they are the only sign of an old fault."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence

import msgspec

from agent.model.counters import gpu_counters, port_counters
from agent.model.error_counters import CUT, ERROR_COUNTERS, GPU_LINK, LOST, MEMORY, PCIE, TRANSPORT, WIRE
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import device_label, find_device_id, find_function
from agent.rules.pages import read_limit
from agent.rules.pcie.links import pcie_links
from agent.rules.peers.parts import PeerPart, list_parts
from agent.rules.rule import Fail, Result, rule
from agent.rules.wording import count_of, find_median

_LEAST = read_limit("counter-outlier.count")
_TIMES = read_limit("counter-outlier.times")
_PEERS = 3  # that are needed to call one an outlier
_BUSIER = 10  # times the packets of its peers: it alone carries the traffic
_BILLION = 1_000_000_000
_ANY = ERROR_COUNTERS[LOST].keys() | ERROR_COUNTERS[CUT].keys()
_ERRORS = frozenset(name for family in ERROR_COUNTERS.values() for name in family)
_AER = ("correctable.", "nonfatal.", "fatal.")
_NAMES: Mapping[str, Mapping[str, str]] = {  # of errors, by the name in a table that begins with a prefix
    prefix: {name.removeprefix(prefix): name for name in _ERRORS if name.startswith(prefix)} for prefix in ("", *_AER)
}
_REORDERED = frozenset({  # what adaptive routing makes, without a fault
    "out_of_sequence", "packet_seq_err", "oos_drop_count", "seq_err_naks_rcvd", "resp_rx_outouf_seq",
    "req_rx_pkt_seq_err", "Rcvd Out of order packets", "Nak Sequence Error",
})  # fmt: skip
_PACKETS = (
    *("port_rcv_packets", "port_xmit_packets", "rx_pkts", "tx_pkts"),  # mlx5, bnxt
    *("rx_rdma_ucast_pkts", "tx_rdma_ucast_pkts"),  # ionic
)
_IMPACT = {
    CUT: "Each ended a transaction or reset the link: a job on this device failed then, and may again.",
    PCIE: "Each is repeated by the hardware; with so many errors a slot, riser or connector may lose its link.",
    MEMORY: "Memory with so many corrections is likely to have an uncorrectable error next.",
    LOST: "Data was lost: a job ended, or computed with wrong data.",
    GPU_LINK: "Each is repeated by the hardware; such a link slows all traffic on it.",
    WIRE: "A cable, module or port with so many errors loses packets: collectives wait for timeouts on this rail.",
    TRANSPORT: "Packets of this rail were lost and sent again, which slows every collective that uses it.",
}


_SITUATIONS = {
    CUT: "",
    PCIE: "",
    MEMORY: "memory-errors",
    LOST: "memory-errors",
    GPU_LINK: "gpu-link",
    WIRE: "network",
    TRANSPORT: "network",
}


Tables = Sequence[tuple[str, Mapping[str, int]]]  # of counters, each with what begins the names of its errors


class Counts(msgspec.Struct, frozen=True):
    """The counters of one part."""

    part: PeerPart
    tables: Tables
    packets: int | None = None

    @property
    def is_zero(self) -> bool:
        """Whether nothing was counted: seen without a look at any name, and so it is of most parts."""
        return not any(any(table.values()) for _, table in self.tables)

    def list_errors(self) -> dict[str, int]:
        """The counts of errors among them, of several tables the largest."""
        errors: dict[str, int] = {}
        for prefix, table in self.tables:
            names = _NAMES.get(prefix, {})
            for name in names.keys() & table.keys():
                error = names[name]
                errors[error] = max(table[name], errors.get(error, 0))
        return errors


class PartErrors(msgspec.Struct, frozen=True):
    """A part, and what it has counted of errors."""

    part: PeerPart
    values: Mapping[str, int]
    packets: int | None


@rule("counter-outlier")
def counter_outlier(context: RuleContext) -> Iterator[Result]:
    groups: dict[tuple[str, str, str], list[Counts]] = defaultdict(list)
    for counts in _list_counts(context):
        part = counts.part
        groups[part.kind, part.role, part.product].append(counts)
    least = context.threshold(_LEAST)
    for group in groups.values():
        if len(group) <= _PEERS:
            why = Reason("nothing-to-compare", detail="too few peers to compare its counts with")
            yield from (counts.part.not_applicable(why) for counts in group)
        elif all(counts.is_zero for counts in group):
            yield from (counts.part.passes() for counts in group)
        else:
            yield from _judge_group(
                context, [PartErrors(one.part, one.list_errors(), one.packets) for one in group], least
            )


def _judge_group(context: RuleContext, group: Sequence[PartErrors], least: float) -> Iterator[Result]:
    for counts in group:
        large = {name for name, count in counts.values.items() if count >= least or (count and name in _ANY)}
        if large:
            yield from _judge(context, counts, group, large)
        else:
            yield counts.part.passes()


def _list_counts(context: RuleContext) -> Iterator[Counts]:
    of_ports: dict[str, list[Netdev]] = defaultdict(list)
    listed: set[str] = set()
    for nic in context.topology.nics:
        for port in nic.ports:
            netdevs = [context.netdevs[name] for name in port.netdevs if name in context.netdevs]
            of_ports[f"{nic.id}/{port.port}"] = [netdev for netdev in netdevs if netdev.vlan is None]
            listed |= {netdev.id for netdev in netdevs}
    for part in context.once(list_parts):
        if not isinstance(part, PeerPart):
            continue
        if part.kind == "gpu":
            own = _list_pcie_tables(context, find_function(context, part.row))
            yield Counts(part, [("", gpu_counters(part.row)), *own])
        elif part.kind == "link":
            yield Counts(part, [("", part.row.errors)])
        elif part.kind == "nic":
            yield Counts(part, _list_pcie_tables(context, find_function(context, part.row)))
        elif part.kind == "port":
            yield _count_port(part, of_ports[part.key])
        elif part.kind == "netdev" and part.row.id not in listed and "parent" not in (part.row.vlan or {}):
            yield Counts(part, [("", part.row.counters or {})])
    yield from _list_guest_ports(context)
    yield from _list_link_counts(context)


def _count_port(part: PeerPart, netdevs: Sequence[Netdev] = ()) -> Counts:
    values = port_counters(part.row)
    packets = [values[name] for name in _PACKETS if name in values]
    tables = [("", values), *(("", netdev.counters or {}) for netdev in netdevs)]
    return Counts(part, tables, sum(packets) if packets else None)


def _list_guest_ports(context: RuleContext) -> Iterator[Counts]:
    """Of rails in a virtual machine: the provider sets them up, so nothing else of them is compared."""
    for nic in context.rails if context.virtual_machine else ():
        for port in nic.ports:
            if port.state == "ACTIVE":
                key, label, product = f"{nic.id}/{port.port}", f"{nic.label}/{port.port}", find_device_id(context, nic)
                ids = frozenset({nic.id, key})
                yield _count_port(PeerPart("port", f"port:{key}", label, port, ids, key, "rail", product))


def _list_link_counts(context: RuleContext) -> Iterator[Counts]:
    """Of the links of PCIe switches and NVSwitches."""
    below = [link.child for link in pcie_links(context)]
    below += [
        context.functions[switch.pci] for switch in context.topology.nvswitches if switch.pci in context.functions
    ]
    for function in below:
        if function.id not in context.gpu_by_pci and function.id not in context.nic_by_pci:
            product, label = f"{function.vendor}:{function.device}", device_label(context, function.id)
            ids = frozenset({function.id})
            part = PeerPart("pci", f"pci:{function.id}", label, function, ids, function.id, "", product)
            yield Counts(part, _list_pcie_tables(context, function))


def _list_pcie_tables(context: RuleContext, function: PciFunction | None) -> Tables:
    """Those of both ends of its link; of several functions the first has what the port above counted."""
    above = context.functions.get(function.parent or "") if function and function.id.endswith(".0") else None
    return [(f"{kind}.", table) for end in (function, above) if end and end.aer for kind, table in end.aer.items()]


def _judge(
    context: RuleContext, counts: PartErrors, group: Sequence[PartErrors], large: Container[str]
) -> Iterator[Result]:
    others = [other for other in group if other is not counts]
    faults: list[Result] = []
    for family, names in ERROR_COUNTERS.items():
        odd = [name for name in names if name in large and _is_odd(context, counts, others, name)]
        if odd:
            faults.append(_fail(counts, others, family, odd))
    yield from faults or [counts.part.passes()]


def _is_odd(context: RuleContext, counts: PartErrors, others: Sequence[PartErrors], name: str) -> bool:
    count = counts.values[name]
    if context.counter_delta(counts.part.subject, name, counts.values) is not None:
        return False  # two samples state what happens now
    usual = _usual_count(others, name)
    if name in _ANY:
        return usual == 0
    if (
        usual is None
        or count < context.threshold(_TIMES) * max(usual, 1)
        or (name in _REORDERED and _is_reordered(context))
    ):
        return False
    if counts.packets is None:
        return True
    packets = [other.packets for other in others if other.packets is not None]
    if packets and counts.packets > _BUSIER * find_median(packets):
        return False
    return count * _BILLION >= context.threshold(_LEAST) * counts.packets


def _is_reordered(context: RuleContext) -> bool:
    """Whether packets may overtake each other here."""
    from agent.rules.roce.port_counters import adaptive_routing  # lazy: few nodes have such a count

    return adaptive_routing(context) is not None


def _usual_count(others: Sequence[PartErrors], name: str) -> float | None:
    """The median of its peers; None where too few count it."""
    known = [other.values[name] for other in others if name in other.values]
    return find_median(known) if len(known) >= _PEERS else None


def _fail(counts: PartErrors, others: Sequence[PartErrors], family: str, odd: Sequence[str]) -> Fail:
    part = counts.part
    most = max(odd, key=lambda name: counts.values[name])
    usual = _usual_count(others, most) or 0
    sure = family != TRANSPORT or counts.packets is not None
    return part.fail(
        summary=f"{count_of(counts.values[most], ERROR_COUNTERS[family][most])} since boot or the load of its "
        f"driver, not dated; its {len(others)} peers have {usual:g} in the middle",
        impact=_IMPACT[family],
        evidence=tuple(
            Evidence(
                f"{ERROR_COUNTERS[family][name]} ({name})",
                f"{counts.values[name]}; peers {_usual_count(others, name) or 0:g} in the middle",
                _AER_FILES if family == CUT else find_counter_source(part),
            )
            for name in odd
        ),
        severity="info" if part.role.startswith("storage") else "error" if family == LOST else None,
        confidence="medium" if sure else "low",
        cause=family,
        situation=_SITUATIONS[family],
    )


_AER_FILES = "aer_dev_fatal, aer_dev_nonfatal of sysfs"
_CORRECTABLE = "aer_dev_correctable of sysfs"
_LINK_TOOLS = {"nvlink": "nvidia-smi nvlink -e", "xgmi": "amd-smi xgmi --metric"}  # the others are of Ascend NPUs
_SOURCES = {
    "gpu": f"nvidia-smi -q, {_CORRECTABLE}",
    "nic": _CORRECTABLE,
    "pci": _CORRECTABLE,
    "port": "counters and hw_counters of /sys/class/infiniband, ethtool -S",
}


def find_counter_source(part: PeerPart) -> str:
    """What shows its counters."""
    if part.kind == "link":
        return _LINK_TOOLS.get(part.row.protocol, "npu-smi info -t hccs")
    if part.kind == "gpu" and part.row.vendor not in ("NVIDIA", None):
        return _CORRECTABLE
    return _SOURCES.get(part.kind, "ethtool -S")
