"""pcie-uplink-oversubscribed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.pcie.wires import Wire, reach, unjudged, wires
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_RATIO = Threshold(
    "pcie-uplink-oversubscribed.ratio", 2.5, "devices' bandwidth over the uplink's, above which it is told"
)
_NOISE = 1.01


class _Shared(NamedTuple):
    """An uplink with more below it than it carries."""

    wire: Wire
    ratio: float
    below: float  # GB/s in one direction
    uplink: float


@rule(
    "pcie-uplink-oversubscribed",
    "info",
    needs=("pci|lspci",),
    references=("PCIE-010",),
    thresholds=(_RATIO,),
)
def pcie_uplink_oversubscribed(case: Case) -> Iterator[Answer]:
    """Devices below a PCIe switch can do more together than its uplink to the CPU.

    ## What it checks
    The upstream port of every switch with GPUs, NICs or drives below it.

    ## Why it matters
    Two Gen 5 x16 devices (126 GB/s in each direction) behind one x16 uplink (63) share it 2:1 when both move data from
    or to host memory at once: data loading and checkpoints slow down, GPUDirect below the switch does not.

    ## How it is decided
    The bandwidth that the links of all devices below can reach is added up and divided by what the uplink can reach.
    Above 2.5 (a GPU, its rail and a drive on one uplink are 2.1, as most boards are built) it is told, in one finding
    for the node. Boards are built so, too: it is information.

    ## What keeps it silent
    - Virtual machines, synthetic ports, links inside a card or chip; uplinks that nothing in use depends on.
    - Root ports, below which there is one device; an uplink that could not be read: unknown.

    ## How to confirm
    `lspci -tv`, and `lspci -vv -s ADDRESS | grep LnkCap:` on the switch and on what is below it.

    ## How to fix
    Nothing is broken. Spread what reads from host memory at the same time over several switches.

    ## Source
    PCI Express Base Specification (bandwidth of a lane); Linux `drivers/pci/pci.c`.
    """
    links = list(wires(case))
    ends = [wire for wire in links if not _is_port(wire)]
    shared: list[_Shared] = []
    for wire in links:
        if not _is_port(wire):
            continue
        silent, carried = unjudged(case, wire), reach(case, wire)
        if silent:
            yield silent
            continue
        each = [reach(case, end) for end in ends if wire.child in case.ancestors(end.child)]
        known = [bandwidth for bandwidth in each if bandwidth is not None]
        if carried is None or len(known) < len(each):
            yield Unknown(wire.subject, "what the uplink or a device below it can do is not known")
        elif sum(known) / carried > case.threshold(_RATIO) * _NOISE:
            shared.append(_Shared(wire, sum(known) / carried, sum(known), carried))
        else:
            yield Pass(wire.subject)
    if shared:
        yield _fault(sorted(shared, key=lambda each: each.wire.child.id))


def _is_port(wire: Wire) -> bool:
    return (wire.child.class_code or "").startswith("0x0604")


def _fault(shared: list[_Shared]) -> Fail:
    worst = max(shared, key=lambda each: (each.ratio, each.wire.child.id))
    places = [each.wire.child.id for each in shared]
    several, devices = len(shared) > 1, f"{worst.below:.1f}"
    return Fail(
        subject="node" if several else worst.wire.subject,
        label="node" if several else places[0],
        summary=f"{len(shared)} switch uplink{'s are' if several else ' is'} shared, {worst.ratio:.1f}:1 at most: "
        f"{named(places)}",
        impact=f"{worst.uplink:.1f} GB/s to host memory in each direction, for devices that could move {devices}.",
        remedy="Nothing is broken: spread what reads from host memory at the same time over several switches.",
        evidence=tuple(
            Evidence(
                what=f"below {each.wire.child.id}: {named(each.wire.users)}",
                value=f"{each.below:.1f} over {each.uplink:.1f} GB/s, {each.ratio:.1f}:1",
                source="lspci -tv",
            )
            for each in shared
        ),
        places=frozenset(places),
    )
