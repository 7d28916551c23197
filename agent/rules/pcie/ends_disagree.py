"""pcie-ends-disagree."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import Link, PciFunction
from agent.rules.case import Case
from agent.rules.devices import pci_source
from agent.rules.pcie.wires import LANES, Wire, retrained, unjudged, wire_label, wires
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("pcie-ends-disagree", "info", needs=("pci|lspci",), references=("PCIE-005",))
def pcie_ends_disagree(case: Case) -> Iterator[Answer]:
    """The two ends of a PCIe link say different things of it.

    ## What it checks
    The links of GPUs, NICs that can do RDMA, NVMe drives and of the switches on their way: speed and lanes at the
    device and at the port above it.

    ## Why it matters
    Both describe the same wire, so one of 2 numbers is wrong, and what other findings say of this link is in doubt.

    ## How it is decided
    `current_link_speed` or `current_link_width` differ between the function and the port above it, both read in one
    scan. It is information: the link may have retrained between the two reads.

    ## What keeps it silent
    - Virtual machines, emulated and synthetic ports, links inside a card or chip: not applicable.
    - A GPU below its maximum may have changed its speed between the two reads: unknown.
    - Either end could not be read: unknown. The port above is no port of a link: not applicable.

    ## How to confirm
    `lspci -vv -s ADDRESS | grep LnkSta:` on both, a few times.

    ## How to fix
    Read both again. If it stays, update the firmware of the switch or the BIOS; look at the link's error counters.

    ## Source
    PCI Express Base Specification, Link Status; Linux `drivers/pci/pci-sysfs.c`.
    """
    for wire in wires(case):
        yield _judge(case, wire)


def _judge(case: Case, wire: Wire) -> Answer:
    silent = unjudged(case, wire)
    if silent:
        return silent
    here, there = wire.child.link, wire.parent.link if wire.parent else None
    if wire.parent is None or wire.parent.port_type in ("upstream", "bridge"):
        return NotApplicable(wire.subject, "the port above is not the other end of a link")
    if here is None or there is None or not (_whole(here) and _whole(there)):
        return Unknown(wire.subject, "speed and lanes are not known of both ends")
    if (here.speed_gt_s, here.width) == (there.speed_gt_s, there.width):
        return Pass(wire.subject)
    if here.quality.state != "conclusive" or there.quality.state != "conclusive":
        return Unknown(wire.subject, "a GPU below its maximum: it may have changed between the two reads")
    return Fail(
        subject=wire.subject,
        label=wire_label(case, wire),
        summary=f"the link is {_said(here)} at the device and {_said(there)} at the port above",
        impact="1 of 2 numbers is wrong: what is said of this link is in doubt.",
        remedy="Read both ends again; if they stay apart, update the firmware of the switch or the BIOS.",
        evidence=(*_row(case, wire.child, here), *_row(case, wire.parent, there), *retrained(wire)),
        confidence="medium",
        places=wire.places,
    )


def _whole(link: Link) -> bool:
    return link.speed_gt_s is not None and link.width in LANES


def _said(link: Link) -> str:
    return f"x{link.width} at {link.speed_gt_s:g} GT/s"


def _row(case: Case, function: PciFunction, link: Link) -> tuple[Evidence, ...]:
    source = pci_source(case, function.id, "current_link_speed")
    return (Evidence(what=f"link of {function.id}", value=_said(link), source=source),)
