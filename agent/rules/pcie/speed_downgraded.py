"""pcie-speed-downgraded."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import share_lost
from agent.rules.devices import lowered, on_c2c
from agent.rules.pcie.wires import (
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
    "pcie-speed-downgraded",
    "error",
    needs=("pci|lspci",),
    references=("PCIE-002",),
    absorbs=(
        "pcie-path-bottleneck",
        "pcie-ends-disagree",
        "profile-differs",
        "pcie-slower-than-siblings",
        "pcie-nic-starved",
        "roce-rt-host-bound",
    ),
)
def pcie_speed_downgraded(case: Case) -> Iterator[Answer]:
    """A PCIe link runs at a lower speed than both its ends can do.

    ## What it checks
    The same links as pcie-width-downgraded: GPUs, NICs that can do RDMA, NVMe drives, and the upstream ports of the
    switches on their way.

    ## Why it matters
    Every generation halves: x16 carries 63 GB/s in each direction at 32 GT/s, 31.5 at 16 GT/s, 15.8 at 8 GT/s. A 400
    Gb/s NIC needs 50.

    ## How it is decided
    A link should run at the lesser of what its two ends can do (`max_link_speed` of the function and of the port above
    it). It has failed where `current_link_speed` is below that. Where config space can be read and one end's target
    link speed (LnkCtl2) is what holds it there, the finding says so and is one step less grave: somebody set it.
    GPUs, rails and the switches above them: error. Storage and management NICs, and NVMe drives: warning.

    ## What keeps it silent
    - A GPU slows its link to 2.5 GT/s when idle. Only a sample taken in P0 (or in P2 and below while busy) is evidence;
      any other slow GPU is unknown.
    - Virtual functions, virtual machines, emulated and synthetic ports, links inside a card or chip: not applicable.
    - GPUs of superchips (GH200, GB200, GB300), which reach their CPU by C2C: not applicable.
    - A device that sleeps, is gone, or came or went during the scan; NICs without a use: not applicable.
    - Link registers that could not be read, and a port above that does not say what it can: unknown.

    ## How to confirm
    `lspci -vv -s ADDRESS | grep -E 'LnkCap:|LnkSta:|LnkCtl2:'`; for a GPU while a job runs on it.

    ## How to fix
    Reseat the card or riser, update the firmware of card and switch, look for correctable errors on the link (AER).
    Where the target link speed is below the maximum, look in the BIOS for a limit on that slot.

    ## Source
    Linux `drivers/pci/pci-sysfs.c`; PCI Express Base Specification, Link Control 2; DCGM `PcieMain.cpp` (P0 before and
    after the read).
    """
    for wire in wires(case):
        yield _judge(case, wire)


def _judge(case: Case, wire: Wire) -> Answer:
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu and on_c2c(case, gpu):
        return NotApplicable(wire.subject, "a superchip: its GPU reaches the CPU by C2C")
    silent = unjudged(case, wire)
    if silent:
        return silent
    link, expected = wire.child.link, expected_speed(case, wire)
    if link is None or link.speed_gt_s is None:
        return Unknown(wire.subject, "the source gives no link speed")
    if expected is None:
        return Unknown(wire.subject, "what both its ends can do is not known")
    if link.max_speed_gt_s is not None and link.speed_gt_s > link.max_speed_gt_s:
        return NotApplicable(wire.subject, "faster than the maximum that it states: its registers mean nothing")
    if link.speed_gt_s >= expected:
        return Pass(wire.subject)
    doubt = not_conclusive(wire)
    if doubt:
        return Unknown(wire.subject, f"{link.speed_gt_s:g} GT/s: {doubt}")
    return _fault(case, wire, link.speed_gt_s, expected)


def _fault(case: Case, wire: Wire, speed: float, expected: float) -> Fail:
    cap = _cap(case, wire, speed, expected)
    now, full = bandwidth(speed, wire.child.link.width if wire.child.link else None), _full(case, wire, expected)
    severity = wire.severity or "error"
    return Fail(
        subject=wire.subject,
        label=wire_label(case, wire),
        summary=f"PCIe link runs at {speed:g} GT/s; both its ends can do {expected:g} GT/s"
        + (": capped by target link speed" if cap else ""),
        impact=loss(now, full) or f"{share_lost(speed, expected)} of the link's speed.",
        remedy="Lift the limit on this slot's link speed in the BIOS, or whatever wrote LnkCtl2."
        if cap
        else "Reseat the card or its riser, update firmware of card and switch, look for correctable errors (AER).",
        evidence=(*both_ends(case, wire, "speed"), *cap, *retrained(wire), *kernel_said(case, wire.child.id)),
        severity=lowered(severity) if cap and severity == "error" else severity,
        cause="target-link-speed" if cap else "",
        places=wire.places,
    )


def _cap(case: Case, wire: Wire, speed: float, expected: float) -> tuple[Evidence, ...]:
    """The target link speeds that hold the link where it is."""
    return tuple(
        Evidence(
            what=f"target link speed of {end.id}",
            value=f"{end.link.target_speed_gt_s:g} GT/s",
            source=f"lspci -vv -s {end.id} (LnkCtl2; root)",
        )
        for end in (wire.child, wire.parent)
        if end
        and end.link
        and end.link.target_speed_gt_s is not None
        and speed <= end.link.target_speed_gt_s < expected
    )


def _full(case: Case, wire: Wire, expected: float) -> float | None:
    return bandwidth(expected, expected_width(case, wire))
