"""RoCE ports with their counters, and sums that several rules need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from agent.model.counters import netdev_counters, port_counters
from agent.model.nic import Netdev
from agent.rules import gates
from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.nccl.settings import effective, number
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.rule import Answer, Unknown
from agent.rules.runtime import Counters, Moved, Place, moved, together

# What sysfs and netlink count of every interface: where nothing else is there, the driver's own were not read
_KERNEL_COUNTS = re.compile(
    r"carrier_(changes|(up|down)_count)|[rt]x_(packets|bytes|errors|dropped|compressed|nohandler|fifo_errors)"
    r"|rx_(crc|frame|length|missed|over)_errors|tx_(aborted|carrier|heartbeat|window)_errors|collisions|multicast"
    r"|rx_otherhost_dropped|dcb_pfc_(sent|received)_\d"
)
# Packets of RDMA, by driver: of the port, its driver's own, the interface's (mlx5, bnxt, irdma)
_SENT = ("port_xmit_packets", "unicast_xmit_packets", "rdma_tx_packets", "tx_pkts", "TxUDP")
_RECEIVED = ("port_rcv_packets", "unicast_rcv_packets", "rdma_rx_packets", "rx_pkts", "RxUDP")
_PRIORITIES = range(8)
# Frames that this NIC dropped for want of a buffer: of a priority, of the whole port, of RoCE alone (bnxt)
ADAPTIVE_ROUTING = "NCCL_IB_ADAPTIVE_ROUTING"
PORT_DISCARDS = ("rx_discards_phy",)
ROCE_DISCARDS = ("rx_roce_discards",)


class Watched(NamedTuple):
    """One RoCE port with its counters, and those of the interface below it."""

    roce: RocePort
    rdma: Counters
    wire: Netdev | None  # the interface that has the cable: of a bond one of its members
    eth: Counters
    place: Place


def by_port(case: Case, judge: Callable[[Watched], Answer], alike: str) -> Iterator[Answer]:
    """What a rule says of every active RoCE port; one finding where all have the fault: "`alike` on every port"."""
    yield from _by(watched(case), judge, f"{alike} on every RoCE port")


def by_wire(case: Case, judge: Callable[[Watched], Answer], alike: str) -> Iterator[Answer]:
    """The same of every interface that has a cable: the members of a bond one by one."""
    yield from _by(wires(case), judge, f"{alike} on every RoCE port")


def watched(case: Case, down: bool = False) -> Iterator[Watched | Answer]:
    """Every RoCE port of a rail or storage NIC; an answer for every other, or for the node."""
    shut = gates.roce_runtime(case)
    if shut is not None:
        yield shut
        return
    for each in roce_ports(case, down):
        yield _watched(each, each.netdev) if isinstance(each, RocePort) else each


def wires(case: Case, down: bool = False) -> Iterator[Watched | Answer]:
    """The same by interface; unknown where none is in sight."""
    for each in watched(case, down):
        if not isinstance(each, Watched):
            yield each
        elif each.roce.nic.state == "other_namespace":
            yield Unknown(each.place.subject, "its interface is in another network namespace")
        elif each.wire is None:
            yield Unknown(each.place.subject, "no interface of it is visible here (another network namespace?)")
        elif each.wire.bond is not None:
            bond = each.wire.label
            below = [netdev for netdev in case.topology.netdevs if netdev.master == bond]
            yield from (_watched(each.roce, netdev) for netdev in below)
            if not below:
                yield Unknown(each.place.subject, f"the members of {bond} are not visible here")
        else:
            yield each


def packets(case: Case, each: Watched, received: bool = False) -> int | None:
    """RDMA packets that a port sent or received in the window; None where nothing counts them."""
    for name in _RECEIVED if received else _SENT:
        if name in each.rdma.now:
            return case.moved(each.rdma.subject, name, each.rdma.now)
    name = f"{'rx' if received else 'tx'}_vport_rdma_unicast_packets"
    return case.moved(each.eth.subject, name, each.eth.now)


def rdma_bytes(case: Case, each: Watched, received: bool = False) -> int | None:
    """Bytes of RDMA that a port sent or received in the window; None where nothing counts them."""
    way, word = ("rx", "rcv") if received else ("tx", "xmit")
    name = f"{way}_vport_rdma_unicast_bytes"
    if name in each.eth.now:
        return case.moved(each.eth.subject, name, each.eth.now)
    words = case.moved(each.rdma.subject, f"port_{word}_data", each.rdma.now)  # of four bytes, as the PMA counts
    return None if words is None else 4 * words


def by_priority(case: Case, each: Watched, counter: str) -> dict[int, int]:
    """How a counter "tx_prio{}_bytes" moved, by priority; without those that are not there or not known."""
    moves = {p: case.moved(each.eth.subject, counter.format(p), each.eth.now) for p in _PRIORITIES}
    return {priority: move for priority, move in moves.items() if move is not None}


def lossless(each: Watched) -> frozenset[int] | None:
    """Priorities with PFC on; None where that was not read."""
    qos = each.wire.qos if each.wire else None
    return frozenset(p for p, on in enumerate(qos.pfc) if on) if qos and qos.pfc else None


def roce_priorities(case: Case, each: Watched) -> frozenset[int] | None:
    """Priorities that may carry RoCE here: with PFC, or with a tenth of the bytes of a port that mostly does RDMA.

    None where nothing says so: then it may be any.
    """
    received, rdma = by_priority(case, each, "rx_prio{}_bytes"), rdma_bytes(case, each, received=True)
    total = sum(received.values())
    if not total or rdma is None or 2 * rdma < total:
        return lossless(each) or None
    return frozenset(p for p, count in received.items() if 10 * count >= total) | (lossless(each) or frozenset())


def discards(case: Case, each: Watched) -> Moved | Answer:
    """Received frames that this NIC dropped for want of buffers: by priority where it counts so, else of the port."""
    per_priority = [f"rx_prio{p}_{kind}" for p in _PRIORITIES for kind in ("discards", "buf_discard", "cong_discard")]
    of_port = per_priority if any(name in each.eth.now for name in per_priority) else PORT_DISCARDS
    return together(moved(case, each.eth, of_port), moved(case, each.rdma, ROCE_DISCARDS))


def dropped_here(case: Case, each: Watched) -> str:
    """Where the loss is, in a sentence: this host where its own discards moved, else somewhere else."""
    here = discards(case, each)
    if not isinstance(here, Moved) or (here.gap and not here.total):
        return "Whether this host drops frames itself is not known: look at rx_discards_phy here, then at the switches."
    if here.total:
        return f"This host dropped {here.total} received frames itself: mend its PFC class, headroom and PCIe first."
    return "Nothing was dropped on this host: look for drops on the switches and on the peers."


def adaptive_routing(case: Case) -> str | None:
    """Who says that packets may overtake each other here; None where nobody does."""
    said = (each for each in effective(case, ADAPTIVE_ROUTING) if number(each.value) == 1)
    return next((f"{ADAPTIVE_ROUTING}=1 ({each.source})" for each in said), None)


def _watched(roce: RocePort, wire: Netdev | None) -> Watched:
    port, member = roce.port, wire if wire is not roce.netdev else None  # of a bond
    subject = f"netdev:{member.id}" if member else roce.subject
    label = f"{roce.label} {member.label}" if member else roce.label
    places = roce.places | ({wire.id} if wire else frozenset())
    return Watched(
        roce,
        Counters(roce.subject, port_counters(port), lambda name: _file(roce, name)),
        wire,
        _of_interface(wire, roce.subject),
        Place(subject, label, places, roce.nic),
    )


def _of_interface(wire: Netdev | None, port: str) -> Counters:
    if wire is None:
        return Counters(port, {}, str, "no interface of it is visible here (another network namespace?)")
    label = wire.label
    unread = None
    if all(_KERNEL_COUNTS.fullmatch(name) for name in wire.counters):
        unread = f"the driver's own counters of {label} could not be read (ethtool -S)"
    return Counters(f"netdev:{wire.id}", netdev_counters(wire), lambda name: _where(label, name), unread)


def _where(label: str, name: str) -> str:
    return f"/sys/class/net/{label}/{name}" if name.startswith("carrier_") else f"ethtool -S {label}"


def _file(roce: RocePort, name: str) -> str:
    return f"{roce.folder}/{'hw_counters' if name in roce.port.hw_counters else 'counters'}/{name}"


def _by(found: Iterator[Watched | Answer], judge: Callable[[Watched], Answer], alike: str) -> Iterator[Answer]:
    answers = (judge(each) if isinstance(each, Watched) else each for each in found)
    yield from folded(answers, alike)
