"""pcie-width-downgraded."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.counting import share_lost
from agent.rules.devices import WIDTH_PROVES_NOTHING, device_id
from agent.rules.pcie.wires import (
    LANES,
    OFTEN_HALF,
    Wire,
    bandwidth,
    both_ends,
    expected_speed,
    expected_width,
    kernel_said,
    loss,
    not_conclusive,
    retrained,
    unjudged,
    wire_label,
    wires,
)
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule(
    "pcie-width-downgraded",
    "error",
    needs=("pci|lspci",),
    references=("PCIE-001", "gdr-nic-pcie-degraded"),
    essential=True,
    absorbs=(
        "pcie-speed-downgraded",
        "pcie-path-bottleneck",
        "pcie-ends-disagree",
        "profile-differs",
        "pcie-slower-than-siblings",
        "pcie-nic-starved",
        "roce-rt-host-bound",
    ),
)
def pcie_width_downgraded(case: Case) -> Iterator[Answer]:
    """A PCIe link trained with fewer lanes than both its ends can do.

    ## What it checks
    The link of every GPU, every NIC that can do RDMA, every NVMe drive, and of the upstream port of every switch on
    their way to the CPU.

    ## Why it matters
    Half the lanes are half the bandwidth: a Gen 5 x16 link carries 63 GB/s in each direction, x8 carries 31.5. One
    GPU or rail at half speed slows the whole collective to it.

    ## How it is decided
    A link should have the lesser of what its two ends can do (`max_link_width` of the function and of the port above
    it). It has failed where `current_link_width` is below that. No table of expected values is asked, so a card in a
    narrower slot is no fault. One link gives one finding, named after the function below it.
    GPUs, rails and the switches above them: error. Storage and management NICs, and NVMe drives: warning.

    ## What keeps it silent
    - Virtual functions, virtual machines, emulated and synthetic ports, links inside a card or chip: not applicable.
    - Superchips (GH200, GB200, GB300) and B300 boards: their GPU's PCIe width proves nothing: not applicable.
    - A device that sleeps, is gone, or came or went during the scan; NICs without a use: not applicable.
    - An idle GPU at full width passes; an idle one that is narrower is unknown, because GPUs may narrow their link.
    - Link registers that could not be read, and a port above that does not say what it can: unknown.

    ## How to confirm
    `lspci -vv -s ADDRESS | grep -E 'LnkCap:|LnkSta:'` on the function and on the port above it.

    ## How to fix
    Reseat the card or riser and look for dirt or bent contacts. Check the slot's bifurcation in the BIOS. If it stays,
    move the card to another slot: the fault moves with the card, or stays with the slot.

    ## Source
    Linux `drivers/pci/pci-sysfs.c`; PCI Express Base Specification, Link Status; pciutils `ls-caps.c`; DCGM
    `diag-skus.yaml`.
    """
    for wire in wires(case):
        yield _judge(case, wire)


def _judge(case: Case, wire: Wire) -> Answer:
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu and device_id(case, gpu) in WIDTH_PROVES_NOTHING:
        return NotApplicable(wire.subject, "the PCIe width of this GPU proves nothing (superchip or B300 board)")
    silent = unjudged(case, wire)
    if silent:
        return silent
    link, expected = wire.child.link, expected_width(case, wire)
    if link is None or link.width not in LANES:
        return Unknown(wire.subject, "the source gives no lane count")
    if expected is None:
        return Unknown(wire.subject, "what both its ends can do is not known")
    if link.max_width is not None and link.width > link.max_width:
        return NotApplicable(wire.subject, "wider than the maximum that it states: its registers mean nothing")
    if link.width >= expected:
        return Pass(wire.subject)
    doubt = not_conclusive(wire)
    return Unknown(wire.subject, f"x{link.width}: {doubt}") if doubt else _fault(case, wire, link.width, expected)


def _fault(case: Case, wire: Wire, width: int, expected: int) -> Fail:
    gpu = case.gpu_by_pci.get(wire.child.id)
    often_half = gpu is not None and device_id(case, gpu) in OFTEN_HALF and width >= 8
    return Fail(
        subject=wire.subject,
        label=wire_label(case, wire),
        summary=f"PCIe link has {width} lanes; both its ends can do {expected}",
        impact=_impact(case, wire, width, expected),
        remedy="Reseat the card or its riser, check the slot's bifurcation in the BIOS, then try another slot.",
        evidence=(*both_ends(case, wire, "width"), *retrained(wire), *kernel_said(case, wire.child.id)),
        severity=wire.severity,
        confidence="medium" if often_half else "high",
        places=wire.places,
    )


def _impact(case: Case, wire: Wire, width: int, expected: int) -> str:
    link = wire.child.link
    now = bandwidth(link.speed_gt_s if link else None, width)
    full = bandwidth(expected_speed(case, wire), expected)
    return loss(now, full) or f"{share_lost(width, expected)} of the link's bandwidth, in each direction."
