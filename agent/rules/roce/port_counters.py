"""RoCE ports with their counters, and sums that several rules need."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from agent.model.counters import netdev_counters, port_counters
from agent.model.nic import Netdev, Nic, Port
from agent.model.reasons import Reason, Settle
from agent.rules import applicability
from agent.rules.applicability import behind
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import CountedSubject, CounterDelta, Counters, delta, sum_deltas
from agent.rules.nccl.settings import effective_settings, parse_number
from agent.rules.roce.ports import ELSEWHERE, NOT_SHOWN, RocePort, roce_ports
from agent.rules.rule import Result

# What sysfs and netlink count of every interface: where nothing else is there, the driver's own were not read
_KERNEL_COUNTS = (
    r"carrier_(changes|(up|down)_count)|[rt]x_(packets|bytes|errors|dropped|compressed|nohandler|fifo_errors)"
    r"|rx_(crc|frame|length|missed|over)_errors|tx_(aborted|carrier|heartbeat|window)_errors|collisions|multicast"
    r"|rx_otherhost_dropped|dcb_pfc_(sent|received)_\d"
)
# Packets of RDMA, by driver: of the port, its driver's own, the interface's (mlx5, bnxt, irdma)
_SENT = (
    *("port_xmit_packets", "unicast_xmit_packets", "rdma_tx_packets", "tx_pkts", "TxUDP"),
    "tx_rdma_ucast_pkts",  # ionic
    "roce_tx_all_pkt_num",  # Ascend
)
_RECEIVED = (
    *("port_rcv_packets", "unicast_rcv_packets", "rdma_rx_packets", "rx_pkts", "RxUDP"),
    *("rx_rdma_ucast_pkts", "roce_rx_all_pkt_num"),
)
_PRIORITIES = range(8)
# Frames that this NIC dropped because it had no buffer: of a priority, of the whole port, of RoCE alone (bnxt)
ADAPTIVE_ROUTING = "NCCL_IB_ADAPTIVE_ROUTING"
PORT_DISCARDS = ("rx_discards_phy",)
KERNEL_DISCARDS = ("rx_fifo_errors", "rx_missed", "rx_missed_errors")  # of any driver, where its own are not there
ROCE_DISCARDS = ("rx_roce_discards",)


class RocePortCounters(msgspec.Struct, frozen=True):
    """One RoCE port with its counters, and those of the interface below it."""

    roce: RocePort
    rdma: Counters
    cabled_netdev: Netdev | None  # the interface that has the cable: of a bond one of its members
    eth: Counters
    place: CountedSubject


def read_ports(context: RuleContext, down: bool = False) -> Iterator[RocePortCounters | Result]:
    """Every RoCE port of a rail or storage NIC; an answer for every other, or for the node."""
    inside = [(nic, port) for nic in context.accelerator_nics for port in nic.ports if port.hw_counters]
    for each in roce_ports(context, down):
        if isinstance(each, RocePort):
            yield _read_port(each, each.netdev)
        elif not (inside and each.subject == "node"):  # "no RoCE port"
            yield each
    yield from (_read_inside(nic, port) for nic, port in inside if down or port.state == "ACTIVE")


watch_ports = behind(applicability.has_roce_counters)(read_ports)


def watch_interfaces(context: RuleContext) -> Iterator[RocePortCounters | Result]:
    """Those of `watch_ports` by interface; unknown where none is in sight."""
    yield from by_interface(context, watch_ports(context))


def by_interface(
    context: RuleContext, ports: Iterator[RocePortCounters | Result]
) -> Iterator[RocePortCounters | Result]:
    """Ports by the interfaces that have their cables."""
    for port in ports:
        if not isinstance(port, RocePortCounters):
            yield port
        elif port.roce.nic.state == "other_namespace":
            yield port.place.unknown(ELSEWHERE)
        elif port.roce.nic.accelerator is not None:
            yield port
        elif port.cabled_netdev is None:
            yield port.place.unknown(NOT_SHOWN)
        elif port.cabled_netdev.bond is not None:
            bond = port.cabled_netdev.label
            below = [netdev for netdev in context.topology.netdevs if netdev.master == bond]
            yield from (_read_port(port.roce, netdev) for netdev in below)
            if not below:
                yield port.place.unknown("not-shown", detail=f"the members of {bond} are not visible here")
        else:
            yield port


def rdma_packets(context: RuleContext, counters: RocePortCounters, received: bool = False) -> int | None:
    """RDMA packets that a port sent or received in the window; None where nothing counts them."""
    for name in _RECEIVED if received else _SENT:
        if name in counters.rdma.now:
            return context.counter_delta(counters.rdma.subject, name, counters.rdma.now)
    name = f"{'rx' if received else 'tx'}_vport_rdma_unicast_packets"
    return context.counter_delta(counters.eth.subject, name, counters.eth.now)


def rdma_bytes(context: RuleContext, counters: RocePortCounters, received: bool = False) -> int | None:
    """Bytes of RDMA that a port sent or received in the window; None where nothing counts them."""
    way, word = ("rx", "rcv") if received else ("tx", "xmit")
    name = f"{way}_vport_rdma_unicast_bytes"
    if name in counters.eth.now:
        return context.counter_delta(counters.eth.subject, name, counters.eth.now)
    words = context.counter_delta(
        counters.rdma.subject, f"port_{word}_data", counters.rdma.now
    )  # of four bytes, as the PMA counts
    return None if words is None else 4 * words


def delta_by_priority(context: RuleContext, counters: RocePortCounters, counter: str) -> dict[int, int]:
    """How a counter "tx_prio{}_bytes" moved, by priority; without those that are not there or not known."""
    moves = {p: context.counter_delta(counters.eth.subject, counter.format(p), counters.eth.now) for p in _PRIORITIES}
    return {priority: move for priority, move in moves.items() if move is not None}


def lossless_priorities(counters: RocePortCounters) -> frozenset[int] | None:
    """Priorities with PFC on; None where that was not read."""
    qos = counters.cabled_netdev.qos if counters.cabled_netdev else None
    return frozenset(p for p, on in enumerate(qos.pfc) if on) if qos and qos.pfc else None


def roce_priorities(context: RuleContext, counters: RocePortCounters) -> frozenset[int] | None:
    """Priorities that may carry RoCE here: with PFC, or with a tenth of the bytes of a port that mostly does RDMA.

    None where nothing states it: then it may be any.
    """
    received = delta_by_priority(context, counters, "rx_prio{}_bytes")
    rdma = rdma_bytes(context, counters, received=True)
    total = sum(received.values())
    if not total or rdma is None or 2 * rdma < total:
        return lossless_priorities(counters) or None
    return frozenset(p for p, count in received.items() if 10 * count >= total) | (
        lossless_priorities(counters) or frozenset()
    )


def delta_of_discards(context: RuleContext, counters: RocePortCounters) -> CounterDelta | Result:
    """Received frames that this NIC dropped without a buffer: by priority where it counts so, else of the port."""
    per_priority = [f"rx_prio{p}_{kind}" for p in _PRIORITIES for kind in ("discards", "buf_discard", "cong_discard")]
    sets = (per_priority, PORT_DISCARDS, KERNEL_DISCARDS)
    of_port = next((names for names in sets if not counters.eth.now.keys().isdisjoint(names)), PORT_DISCARDS)
    return sum_deltas(delta(context, counters.eth, of_port), delta(context, counters.rdma, ROCE_DISCARDS))


def describe_loss(context: RuleContext, counters: RocePortCounters) -> str:
    """Where the loss is, in a sentence: this host where its own discards moved, else somewhere else."""
    if counters.roce.nic.accelerator is not None:
        return "Look for drops on the switches and on the peers, and whether PFC protects the class of HCCL."
    here = delta_of_discards(context, counters)
    if not isinstance(here, CounterDelta) or (here.gap and not here.total):
        return "Whether this host drops frames itself is not known: look at rx_discards_phy here, then at the switches."
    if here.total:
        return f"This host dropped {here.total} received frames itself: correct its PFC class, headroom and PCIe first."
    return "Nothing was dropped on this host: look for drops on the switches and on the peers."


def adaptive_routing(context: RuleContext) -> str | None:
    """What states that packets may overtake each other here; None where nothing does."""
    declared = context.settings.facts.get("adaptive_routing")
    if declared is not None:
        return "declared: facts.adaptive_routing of the configuration" if declared else None
    enabled = (setting for setting in effective_settings(context, ADAPTIVE_ROUTING) if parse_number(setting.value) == 1)
    return next((f"{ADAPTIVE_ROUTING}=1 ({setting.source})" for setting in enabled), None)


def _read_port(roce: RocePort, cabled_netdev: Netdev | None) -> RocePortCounters:
    port, member = roce.port, cabled_netdev if cabled_netdev is not roce.netdev else None  # of a bond
    subject = f"netdev:{member.id}" if member else roce.subject
    label = f"{roce.label} {member.label}" if member else roce.label
    ids = roce.ids | ({cabled_netdev.id} if cabled_netdev else frozenset())
    return RocePortCounters(
        roce,
        Counters(roce.subject, port_counters(port), lambda name: _port_source(roce, name)),
        cabled_netdev,
        _interface_counters(cabled_netdev, roce.subject),
        CountedSubject(subject, label, ids, roce.nic),
    )


def _read_inside(nic: Nic, port: Port) -> RocePortCounters:
    """A port inside an accelerator: the host has no interface of it, and its own counters are of wire and RDMA."""
    roce = RocePort(nic, port, None)
    counters = Counters(roce.subject, port_counters(port), lambda name: _accelerator_source(nic, name))
    return RocePortCounters(roce, counters, None, counters, CountedSubject(roce.subject, roce.label, roce.ids, nic))


def _accelerator_source(nic: Nic, name: str) -> str:
    option = "link_stat" if name == "link_down_events" else "pfc_stat" if "_duration_" in name else "stat"
    return f"hccn_tool -i {nic.label.removeprefix('NPU')} -{option} -g"


def _interface_counters(cabled_netdev: Netdev | None, port: str) -> Counters:
    if cabled_netdev is None:
        return Counters(port, {}, str, NOT_SHOWN)
    label = cabled_netdev.label
    unread = None
    if all(re.fullmatch(_KERNEL_COUNTS, name) for name in cabled_netdev.counters or ()):
        unread = Reason(
            "not-shown",
            Settle("command", f"ethtool -S {label}"),
            detail=f"the driver's own counters of {label} could not be read (ethtool -S)",
        )
    return Counters(
        f"netdev:{cabled_netdev.id}", netdev_counters(cabled_netdev), lambda name: _ethtool_source(label, name), unread
    )


def _ethtool_source(label: str, name: str) -> str:
    return f"/sys/class/net/{label}/{name}" if name.startswith("carrier_") else f"ethtool -S {label}"


def _port_source(roce: RocePort, name: str) -> str:
    return f"{roce.folder}/{'hw_counters' if name in roce.port.hw_counters else 'counters'}/{name}"
