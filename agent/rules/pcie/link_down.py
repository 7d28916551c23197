"""pcie-link-down."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.devices import WIDTH_PROVES_NOTHING, by_role, device_id, kernel_log, pci_source
from agent.rules.pcie.wires import NO_LINK, Wire, retrained, unjudged, wire_label, wires
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("pcie-link-down", "warning", needs=("pci|lspci",), references=("PCIE-004",))
def pcie_link_down(case: Case) -> Iterator[Answer]:
    """A GPU or NIC is on the bus, and its link says that it has no lanes.

    ## What it checks
    The link of every GPU and of every NIC that can do RDMA.

    ## Why it matters
    A link with 0 lanes carries 0 GB/s: the device answers for its registers at most, and every transfer fails.

    ## How it is decided
    `current_link_width` is 0 on a function that sits below a port and says that it could have lanes. GPUs and rails:
    warning; other NICs in use: info. Where the port above has its link switched off (Link Disable), it is told.

    ## What keeps it silent
    - Virtual functions, which have no link of their own; functions inside the host bridge, with no port above; drives.
    - Virtual machines, emulated and synthetic ports, links inside a card; superchips, whose PCIe proves nothing.
    - A device that sleeps, is gone (pcie-device-gone says so) or came or went during the scan; NICs without a use.
    - Link registers that could not be read: unknown.

    ## How to confirm
    `cat /sys/bus/pci/devices/ADDRESS/current_link_width`; `lspci -vv -s ADDRESS | grep LnkSta:`

    ## How to fix
    Reseat the card and power cycle the node. Where the port above shows `LnkDisable+`, find out who switched it off.

    ## Source
    Linux `drivers/pci/pci-sysfs.c`; PCI Express Base Specification, Link Status and Link Control.
    """
    for wire in wires(case):
        if wire.child.id in case.gpu_by_pci or wire.child.id in case.nic_by_pci:
            yield _judge(case, wire)


def _judge(case: Case, wire: Wire) -> Answer:
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu and device_id(case, gpu) in WIDTH_PROVES_NOTHING:
        return NotApplicable(wire.subject, "the PCIe width of this GPU proves nothing (superchip or B300 board)")
    silent, link = unjudged(case, wire), wire.child.link
    if silent and not (isinstance(silent, NotApplicable) and silent.reason == NO_LINK):
        return silent
    if link is None or link.width is None:
        return Unknown(wire.subject, "the source gives no lane count")
    if link.width:
        return Pass(wire.subject)
    if wire.parent is None or not link.max_width:
        return NotApplicable(wire.subject, "it says of itself that it has no lanes")
    return _fault(case, wire, link.max_width)


def _fault(case: Case, wire: Wire, most: int) -> Fail:
    nic = case.nic_by_pci.get(wire.child.id)
    off = wire.parent is not None and wire.parent.link_disabled is True
    return Fail(
        subject=wire.subject,
        label=wire_label(case, wire),
        summary=f"PCIe link has no lanes; the device could have {most}"
        + (": the port above has its link switched off" if off else ""),
        impact=f"0 of {most} lanes: nothing can be moved to or from it.",
        remedy="Find out who set Link Disable on the port above, and clear it."
        if off
        else "Reseat the card and power cycle the node; then try another slot.",
        evidence=(
            Evidence(
                what=f"current link width of {wire.child.id}",
                value="0",
                source=pci_source(case, wire.child.id, "current_link_width"),
            ),
            *_switched_off(wire),
            *retrained(wire),
            *kernel_log(case, wire.child.id),
        ),
        severity=(by_role("warning", nic) or "info") if nic else None,
        cause="disabled" if off else "",
        places=wire.places,
    )


def _switched_off(wire: Wire) -> tuple[Evidence, ...]:
    if wire.parent is None or wire.parent.link_disabled is None:
        return ()
    value = "set" if wire.parent.link_disabled else "not set"
    return (
        Evidence(
            what=f"Link Disable of {wire.parent.id}", value=value, source=f"lspci -vv -s {wire.parent.id} (LnkCtl)"
        ),
    )
