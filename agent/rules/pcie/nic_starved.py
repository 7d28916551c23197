"""pcie-nic-starved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.rules.case import Case
from agent.rules.counting import share_lost
from agent.rules.devices import by_role, lowered, pci_source
from agent.rules.pcie.needs import USABLE, Need, card_functions, carries, needed
from agent.rules.pcie.siblings import kind
from agent.rules.pcie.wires import LANES, Wire, bandwidth, kernel_said, unjudged, wires
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_USABLE = Threshold("pcie-nic-starved.usable_share", USABLE, "of a link's bandwidth that a NIC can use, 0 to 1")


class _Hop(NamedTuple):
    """A link on the way of a NIC to its CPU, and what it carries, GB/s in one direction."""

    wire: Wire
    gbyte_s: float


@rule(
    "pcie-nic-starved",
    "error",
    needs=("pci|lspci", "rdma|rdma_tools"),
    references=("PCIE-009",),
    absorbs=("pcie-slower-than-siblings", "roce-rt-host-bound"),
    thresholds=(_USABLE,),
)
def pcie_nic_starved(case: Case) -> Iterator[Answer]:
    """The PCIe link below a NIC is too slow for the rate of its port.

    ## What it checks
    The active ports of every NIC in use against the links between the NIC and its CPU.

    ## Why it matters
    A NIC at 400 Gb/s moves 50 GB/s in each direction; a Gen 4 x16 link carries 31.5 after line coding and about 27 in
    practice, so almost half the port is lost, and the NIC pauses the network or drops.

    ## How it is decided
    Of a link's bandwidth after line coding 87 % can be used (55 of 63 GB/s were measured on Gen 5 x16). Where that is
    less than the rate of one active port, the NIC starves: error on rails, warning on others. Where one port alone
    fits, and all active ports of the card together do not: warning. Where no slot would help, because the card itself
    cannot do more, or what it can do is not known: info. Where it is not the NIC's own link but the uplink of a switch
    above it, it is one step less grave, because traffic with GPUs below that switch does not cross it.

    ## What keeps it silent
    - The line coding of InfiniBand up to FDR, which its rates include, is taken off.
    - Ports that are not active; NICs without a use; virtual functions and machines; software devices.
    - Socket-direct and multi-host NICs, which have a second PCIe link: the links of one board are added.
    - Hops whose registers describe no real wire (synthetic ports, links inside a card): left out.
    - A NIC whose link could not be read: unknown.

    ## How to confirm
    `lspci -vv -s ADDRESS | grep LnkSta:` and `cat /sys/class/infiniband/DEVICE/ports/1/rate`

    ## How to fix
    Move the NIC to a slot with all lanes of its generation. Where the link runs below what it can, mend that first.

    ## Source
    nvbandwidth on 8 x H200 (55.1 of 63 GB/s); Linux `pcie_bandwidth_available()` in `drivers/pci/pci.c`.
    """
    links = {wire.child.id: wire for wire in wires(case)}
    seen: set[str] = set()
    for pci, nic in sorted(case.nic_by_pci.items()):
        function = case.functions.get(pci)
        if function is None:
            continue
        card = card_functions(case, function)
        lead = next((f for f in card if f.id in links), None)
        if lead is None or lead.id in seen:
            continue
        seen.add(lead.id)
        yield _judge(case, nic, links[lead.id], links)


def _judge(case: Case, nic: Nic, own: Wire, links: dict[str, Wire]) -> Answer:
    silent = unjudged(case, own)
    if isinstance(silent, NotApplicable) and "inside a card" not in silent.reason:
        return silent
    need = needed(case, own.child)
    if need is None:
        return NotApplicable(own.subject, "no port of it is active")
    if isinstance(silent, Unknown):
        return silent
    if silent is None and _carried(own) is None:
        return Unknown(own.subject, "what its link carries is not known")
    hops = list(_hops(case, own, links))
    if not hops:
        return Unknown(own.subject, "no link on its way to the CPU could be read")
    slowest = min(hops, key=lambda hop: hop.gbyte_s)
    usable = slowest.gbyte_s * case.threshold(_USABLE)
    usable += sum(_second_links(case, nic, links)) * case.threshold(_USABLE)
    if usable >= need.together / 8:
        return Pass(own.subject)
    rate = need.missed(usable)
    if not _could_do_more(case, own, links, rate):
        # so by design: not a cause of anything else
        return _fault(case, nic, own, slowest, need, usable, "info")._replace(places=frozenset())
    severity = "error" if rate == need.fastest else "warning"
    if slowest.wire.child.id != own.child.id:
        severity = lowered(severity)
    return _fault(case, nic, own, slowest, need, usable, by_role(severity, nic) or "info")


def _hops(case: Case, own: Wire, links: dict[str, Wire]) -> Iterator[_Hop]:
    """The readable links from the NIC up; those that describe no wire are left out."""
    above = (links[bridge.id] for bridge in case.ancestors(own.child) if bridge.id in links)
    for wire in (own, *above):
        carried = _carried(wire)
        if unjudged(case, wire) is None and carried is not None:
            yield _Hop(wire, carried)


def _carried(wire: Wire) -> float | None:
    """GB/s in one direction that a link carries now; None where speed or lanes are not known."""
    link = wire.child.link
    return bandwidth(link.speed_gt_s, link.width) if link and link.width in LANES else None


def _second_links(case: Case, nic: Nic, links: dict[str, Wire]) -> Iterator[float]:
    """The other PCIe links of a socket-direct or multi-host board: another slot, one system image."""
    own = (nic.pci or "").rpartition(".")[0]
    slots = {}
    for pci, other in case.nic_by_pci.items():
        slot = pci.rpartition(".")[0]
        same = nic.system_image_guid is not None and other.system_image_guid == nic.system_image_guid
        if same and slot != own:
            slots[slot] = pci
    for place in slots.values():
        wire = links.get(place)
        yield (_carried(wire) if wire else None) or 0.0


def _could_do_more(case: Case, own: Wire, links: dict[str, Wire], gbit_s: float) -> bool:
    """Whether the card itself, or another of its kind, says that it could carry that rate, in a better slot, or does
    carry it."""
    able = [wire.child.link for wire in (own, *links.values()) if wire.child.link and _alike(case, own, wire)]
    most = [bandwidth(link.max_speed_gt_s, link.max_width) for link in able]
    most += [bandwidth(link.speed_gt_s, link.width) for link in able]
    return any(each is not None and carries(each, gbit_s) for each in most)


def _alike(case: Case, own: Wire, other: Wire) -> bool:
    """The same card: by its ids; where the bus did not tell them, a NIC whose port runs at the same rate."""
    ids = kind(case, own)
    if own is other or ids is not None:
        return kind(case, other) == ids
    needs = [needed(case, wire.child) if wire.child.id in case.nic_by_pci else None for wire in (own, other)]
    return needs[0] is not None and needs[0] == needs[1]


def _fault(case: Case, nic: Nic, own: Wire, slowest: _Hop, need: Need, usable: float, severity: str) -> Fail:
    rate = need.missed(usable)
    link, place = slowest.wire.child.link, slowest.wire.child.id
    above = "" if place == own.child.id else f" of the switch above it ({place})"
    ports = "its port" if rate == need.fastest else "its ports together"
    return Fail(
        subject=own.subject,
        label=nic.label,
        summary=f"{ports} run at {rate:g} Gb/s ({rate / 8:g} GB/s); the PCIe link{above} can use {usable:.1f} GB/s"
        if rate != need.fastest
        else f"{ports} runs at {rate:g} Gb/s ({rate / 8:g} GB/s); the PCIe link{above} can use {usable:.1f} GB/s",
        impact=f"{share_lost(usable, rate / 8)} of the rate in each direction, and pauses or drops under load.",
        remedy="Move the NIC to a slot with all lanes of its generation.",
        evidence=(
            Evidence(
                what=f"link of {place}",
                value=f"x{link.width} at {link.speed_gt_s:g} GT/s: {slowest.gbyte_s:.1f} GB/s" if link else "",
                source=pci_source(case, place, "current_link_speed"),
            ),
            Evidence(
                what=f"rate of {nic.label}",
                value=f"{rate:g} Gb/s",
                source=f"/sys/class/infiniband/{nic.rdma_device or nic.label}/ports/1/rate",
            ),
            *kernel_said(case, own.child.id, place),
        ),
        severity=severity,
        cause="own-link" if place == own.child.id else "uplink",
        places=frozenset({place, *(function.id for function in card_functions(case, own.child))}),
    )
