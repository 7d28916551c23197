"""RoCE ports with their counters, and sums that several rules need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from agent.model.counters import netdev_counters, port_counters
from agent.model.nic import Netdev, Nic, Port
from agent.model.reasons import Reason, Settle
from agent.rules import gates
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import CounterDelta, Counters, Subject, delta, sum_deltas
from agent.rules.nccl.settings import effective_settings, parse_number
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.roce.ports import NOT_SHOWN, RocePort, roce_ports
from agent.rules.rule import Result, Unknown

# What sysfs and netlink count of every interface: where nothing else is there, the driver's own were not read
_KERNEL_COUNTS = re.compile(
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
# Frames that this NIC dropped because no buffer was free: of a priority, of the whole port, of RoCE alone (bnxt)
ADAPTIVE_ROUTING = "NCCL_IB_ADAPTIVE_ROUTING"
PORT_DISCARDS = ("rx_discards_phy",)
ROCE_DISCARDS = ("rx_roce_discards",)


class RocePortCounters(msgspec.Struct, frozen=True):
    """One RoCE port with its counters, and those of the interface below it."""

    roce: RocePort
    rdma: Counters
    wire: Netdev | None  # the interface that has the cable: of a bond one of its members
    eth: Counters
    place: Subject


Judge = Callable[[RuleContext, RocePortCounters], Result]


def for_each_port(case: RuleContext, judge: Judge, alike: str) -> Iterator[Result]:
    """What a rule says of every active RoCE port; one finding where all have the fault: "`alike` on every port"."""
    yield from _for_each(case, watch_ports(case), judge, alike)


def for_each_interface(case: RuleContext, judge: Judge, alike: str) -> Iterator[Result]:
    """The same of every interface that has a cable: the members of a bond one by one."""
    yield from _for_each(case, watch_interfaces(case), judge, alike)


def watch_ports(case: RuleContext, down: bool = False) -> Iterator[RocePortCounters | Result]:
    """Every RoCE port of a rail or storage NIC; an answer for every other, or for the node."""
    shut = gates.has_roce_counters(case)
    if shut is not None:
        yield shut
        return
    yield from read_ports(case, down)


def read_ports(case: RuleContext, down: bool = False) -> Iterator[RocePortCounters | Result]:
    """The same, also where there is no earlier sample."""
    inside = [(nic, port) for nic in case.accelerator_nics for port in nic.ports if port.hw_counters]
    for each in roce_ports(case, down):
        if isinstance(each, RocePort):
            yield _read_port(each, each.netdev)
        elif not (inside and each.subject == "node"):  # "no RoCE port"
            yield each
    yield from (_read_inside(nic, port) for nic, port in inside if down or port.state == "ACTIVE")


def watch_interfaces(case: RuleContext) -> Iterator[RocePortCounters | Result]:
    """Those of `watch_ports` by interface; unknown where none is in sight."""
    yield from by_interface(case, watch_ports(case))


def by_interface(case: RuleContext, ports: Iterator[RocePortCounters | Result]) -> Iterator[RocePortCounters | Result]:
    """Ports by the interfaces that have their cables."""
    for port in ports:
        if not isinstance(port, RocePortCounters):
            yield port
        elif port.roce.nic.state == "other_namespace":
            yield Unknown(
                port.place.subject, Reason("namespace-hides", detail="its interface is in another network namespace")
            )
        elif port.roce.nic.accelerator is not None:
            yield port
        elif port.wire is None:
            yield Unknown(
                port.place.subject,
                Reason(
                    "namespace-hides",
                    detail="no interface of it is visible here: in another network namespace, or not in this source",
                ),
            )
        elif port.wire.bond is not None:
            bond = port.wire.label
            below = [netdev for netdev in case.topology.netdevs if netdev.master == bond]
            yield from (_read_port(port.roce, netdev) for netdev in below)
            if not below:
                yield Unknown(
                    port.place.subject, Reason("not-shown", detail=f"the members of {bond} are not visible here")
                )
        else:
            yield port


def rdma_packets(case: RuleContext, counters: RocePortCounters, received: bool = False) -> int | None:
    """RDMA packets that a port sent or received in the window; None where nothing counts them."""
    for name in _RECEIVED if received else _SENT:
        if name in counters.rdma.now:
            return case.moved(counters.rdma.subject, name, counters.rdma.now)
    name = f"{'rx' if received else 'tx'}_vport_rdma_unicast_packets"
    return case.moved(counters.eth.subject, name, counters.eth.now)


def rdma_bytes(case: RuleContext, counters: RocePortCounters, received: bool = False) -> int | None:
    """Bytes of RDMA that a port sent or received in the window; None where nothing counts them."""
    way, word = ("rx", "rcv") if received else ("tx", "xmit")
    name = f"{way}_vport_rdma_unicast_bytes"
    if name in counters.eth.now:
        return case.moved(counters.eth.subject, name, counters.eth.now)
    words = case.moved(
        counters.rdma.subject, f"port_{word}_data", counters.rdma.now
    )  # of four bytes, as the PMA counts
    return None if words is None else 4 * words


def delta_by_priority(case: RuleContext, counters: RocePortCounters, counter: str) -> dict[int, int]:
    """How a counter "tx_prio{}_bytes" moved, by priority; without those that are not there or not known."""
    moves = {p: case.moved(counters.eth.subject, counter.format(p), counters.eth.now) for p in _PRIORITIES}
    return {priority: move for priority, move in moves.items() if move is not None}


def lossless_priorities(counters: RocePortCounters) -> frozenset[int] | None:
    """Priorities with PFC on; None where that was not read."""
    qos = counters.wire.qos if counters.wire else None
    return frozenset(p for p, on in enumerate(qos.pfc) if on) if qos and qos.pfc else None


def roce_priorities(case: RuleContext, counters: RocePortCounters) -> frozenset[int] | None:
    """Priorities that may carry RoCE here: with PFC, or with a tenth of the bytes of a port that mostly does RDMA.

    None where nothing says so: then it may be any.
    """
    received, rdma = delta_by_priority(case, counters, "rx_prio{}_bytes"), rdma_bytes(case, counters, received=True)
    total = sum(received.values())
    if not total or rdma is None or 2 * rdma < total:
        return lossless_priorities(counters) or None
    return frozenset(p for p, count in received.items() if 10 * count >= total) | (
        lossless_priorities(counters) or frozenset()
    )


def delta_of_discards(case: RuleContext, counters: RocePortCounters) -> CounterDelta | Result:
    """Received frames that this NIC dropped because no buffer was free: by priority if it counts so, else of all."""
    per_priority = [f"rx_prio{p}_{kind}" for p in _PRIORITIES for kind in ("discards", "buf_discard", "cong_discard")]
    of_port = per_priority if any(name in counters.eth.now for name in per_priority) else PORT_DISCARDS
    return sum_deltas(delta(case, counters.eth, of_port), delta(case, counters.rdma, ROCE_DISCARDS))


def describe_loss(case: RuleContext, counters: RocePortCounters) -> str:
    """Where the loss is, in a sentence: this host where its own discards moved, else somewhere else."""
    if counters.roce.nic.accelerator is not None:
        return "Look for drops on the switches and on the peers, and whether PFC protects the class of HCCL."
    here = delta_of_discards(case, counters)
    if not isinstance(here, CounterDelta) or (here.gap and not here.total):
        return "Whether this host drops frames itself is not known: look at rx_discards_phy here, then at the switches."
    if here.total:
        return f"This host dropped {here.total} received frames itself: correct its PFC class, headroom and PCIe first."
    return "Nothing was dropped on this host: look for drops on the switches and on the peers."


def adaptive_routing(case: RuleContext) -> str | None:
    """Who says that packets may overtake each other here; None where nobody does."""
    declared = case.settings.facts.get("adaptive_routing")
    if declared is not None:
        return "declared: facts.adaptive_routing of the configuration" if declared else None
    enabled = (setting for setting in effective_settings(case, ADAPTIVE_ROUTING) if parse_number(setting.value) == 1)
    return next((f"{ADAPTIVE_ROUTING}=1 ({setting.source})" for setting in enabled), None)


def _read_port(roce: RocePort, wire: Netdev | None) -> RocePortCounters:
    port, member = roce.port, wire if wire is not roce.netdev else None  # of a bond
    subject = f"netdev:{member.id}" if member else roce.subject
    label = f"{roce.label} {member.label}" if member else roce.label
    places = roce.places | ({wire.id} if wire else frozenset())
    return RocePortCounters(
        roce,
        Counters(roce.subject, port_counters(port), lambda name: _port_source(roce, name)),
        wire,
        _interface_counters(wire, roce.subject),
        Subject(subject, label, places, roce.nic),
    )


def _read_inside(nic: Nic, port: Port) -> RocePortCounters:
    """A port inside an accelerator: the host has no interface of it, and its own counters are of wire and RDMA."""
    roce = RocePort(nic, port, None)
    counters = Counters(roce.subject, port_counters(port), lambda name: _accelerator_source(nic, name))
    return RocePortCounters(roce, counters, None, counters, Subject(roce.subject, roce.label, roce.places, nic))


def _accelerator_source(nic: Nic, name: str) -> str:
    option = "link_stat" if name == "link_down_events" else "pfc_stat" if "_duration_" in name else "stat"
    return f"hccn_tool -i {nic.label.removeprefix('NPU')} -{option} -g"


def _interface_counters(wire: Netdev | None, port: str) -> Counters:
    if wire is None:
        return Counters(port, {}, str, NOT_SHOWN)
    label = wire.label
    unread = None
    if all(_KERNEL_COUNTS.fullmatch(name) for name in wire.counters or ()):
        unread = Reason(
            "not-shown",
            Settle("command", f"ethtool -S {label}"),
            detail=f"the driver's own counters of {label} could not be read (ethtool -S)",
        )
    return Counters(f"netdev:{wire.id}", netdev_counters(wire), lambda name: _ethtool_source(label, name), unread)


def _ethtool_source(label: str, name: str) -> str:
    return f"/sys/class/net/{label}/{name}" if name.startswith("carrier_") else f"ethtool -S {label}"


def _port_source(roce: RocePort, name: str) -> str:
    return f"{roce.folder}/{'hw_counters' if name in roce.port.hw_counters else 'counters'}/{name}"


def _for_each(
    case: RuleContext, items: Iterator[RocePortCounters | Result], judge: Judge, alike: str
) -> Iterator[Result]:
    answers = (judge(case, counters) if isinstance(counters, RocePortCounters) else counters for counters in items)
    yield from aggregate_node_wide(answers, f"{alike} on every RoCE port")
