"""InfiniBand ports with their counters, and what several rules ask of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agent.model.counters import netdev_counters, port_counters
from agent.rules import gates
from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.infiniband.ports import IbPort, ib_ports
from agent.rules.rule import Answer, NotApplicable
from agent.rules.runtime import Counters, Moved, Place, moved

LINK_DOWNED = "link_downed"


class Watched(NamedTuple):
    """One InfiniBand port with its counters, and those of the IPoIB interface above it."""

    ib: IbPort
    counters: Counters
    ipoib: tuple[Counters, ...]
    place: Place


def watched(case: Case) -> Iterator[Watched | Answer]:
    """Every InfiniBand port of a rail or storage NIC; an answer for every other, or for the node."""
    shut = gates.infiniband_runtime(case)
    if shut is not None:
        yield shut
        return
    for each in ib_ports(case):
        yield _watched(case, each) if isinstance(each, IbPort) else each


def by_port(case: Case, judge: Callable[[Watched], Answer], alike: str) -> Iterator[Answer]:
    """What a rule says of every port; one finding where all have the fault: "`alike` on every InfiniBand port"."""
    answers = (judge(each) if isinstance(each, Watched) else each for each in watched(case))
    yield from folded(answers, f"{alike} on every InfiniBand port")


def went_down(case: Case, each: Watched) -> Answer | None:
    """Why errors of this window prove nothing: the link went down, and came up with them."""
    counters = [
        moved(case, each.counters, [LINK_DOWNED]),
        *(moved(case, c, ["carrier_down_count"]) for c in each.ipoib),
    ]
    if any(isinstance(count, Moved) and count.total for count in counters):
        return NotApplicable(each.place.subject, "its link went down in the window: see ib-link-flap")
    return None


def _watched(case: Case, each: IbPort) -> Watched:
    port = each.port
    folder = f"/sys/class/infiniband/{each.nic.rdma_device or each.nic.label}/ports/{port.port}"

    def file(name: str) -> str:
        return f"{folder}/{'hw_counters' if name in port.hw_counters else 'counters'}/{name}"

    above = [case.netdevs[name] for name in sorted(port.netdevs) if name in case.netdevs]
    plain = [netdev for netdev in above if netdev.vlan is None]
    return Watched(
        each,
        Counters(each.subject, port_counters(port), file),
        tuple(Counters(f"netdev:{n.id}", netdev_counters(n), _reader(n.label)) for n in plain),
        Place(each.subject, each.label, each.places, each.nic),
    )


def _reader(label: str) -> Callable[[str], str]:
    return lambda name: f"/sys/class/net/{label}/{name}" if name.startswith("carrier_") else f"ethtool -S {label}"
