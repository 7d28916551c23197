"""pcie-mps-mismatch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.devices import away
from agent.rules.pcie.registers import Gear, gear, not_told, register
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_EMULATED = frozenset({"0x1b36"})  # QEMU: its ports say a payload size that limits nothing


@rule(
    "pcie-mps-mismatch",
    "error",
    needs=("pci|lspci",),
    references=("PCIE-011", "gdr-mps-mismatch"),
    absorbs=("pcie-mps-small", "pcie-mps-uneven"),
)
def pcie_mps_mismatch(case: Case) -> Iterator[Answer]:
    """A device may send larger PCIe packets than the port above it takes.

    ## What it checks
    The maximum payload size (MPS) of every GPU and NIC in use, and of every port on its way to the CPU: each against
    the port above it.

    ## Why it matters
    A packet of 512 bytes that meets a port set to 256 is a malformed TLP: a fatal error that takes the device off the
    bus. It shows only under load.

    ## How it is decided
    MPS (DevCtl) of the function below is larger than that of the port above. One finding for each such hop; GPUs, rails
    and ports above them: error, other NICs: warning.

    ## What keeps it silent
    - A smaller MPS below a larger one: legal (`pci=pcie_bus_perf` makes it so).
    - A device without a driver, which sends nothing; one that sleeps, is gone, or came or went during the scan.
    - Virtual functions and virtual machines, and ports that a hypervisor made up, wherever they are seen; NICs without
      a use: not applicable.
    - Without CAP_SYS_ADMIN only 64 bytes of config space can be read: unknown.

    ## How to confirm
    `lspci -vvv -s ADDRESS | grep MaxPayload` on the function and on the port above it.

    ## How to fix
    Boot with `pci=pcie_bus_safe`, or set the payload size in the BIOS, and reboot: do not mend it on a running host.

    ## Source
    PCI Express Base Specification, Device Control; Linux kernel parameters, `pci=pcie_bus_*`.
    """
    told: set[str] = set()
    for each in gear(case):
        yield from _judge(case, each, told) if isinstance(each, Gear) else (each,)


def _judge(case: Case, each: Gear, told: set[str]) -> Iterator[Answer]:
    unread: str | None = None
    failed = False
    way = [each.function, *case.ancestors(each.function)]
    if len(way) == 1:
        yield NotApplicable(each.subject, "no port above it")
        return
    if each.function.driver == "":
        yield NotApplicable(each.subject, "no driver is bound: it sends nothing")
        return
    for child, parent in pairwise(way):
        if away(parent):
            yield NotApplicable(each.subject, f"the port above it, {parent.id}: {away(parent)}")
            return
        if parent.vendor in _EMULATED:
            yield NotApplicable(each.subject, f"the port above it, {parent.id}, is an emulated one")
            return
        small, large = parent.max_payload_bytes, child.max_payload_bytes
        if small is None or large is None:
            unread = unread or not_told(parent if small is None else child, "the payload size")
        elif large > small:
            failed = True
            if child.id not in told:
                told.add(child.id)
                yield _fault(each, child, parent, large, small)
    if not failed:
        yield Unknown(each.subject, unread) if unread else Pass(each.subject)


def _fault(each: Gear, child: PciFunction, parent: PciFunction, large: int, small: int) -> Fail:
    return Fail(
        subject=f"pci:{child.id}",
        label=each.label if child.id == each.function.id else f"{child.id} above {each.label}",
        summary=f"it may send packets of {large} bytes; the port above it, {parent.id}, takes {small}",
        impact=f"a packet of more than {small} bytes is a fatal error that takes the device off the bus, under load.",
        remedy="Boot with pci=pcie_bus_safe, or set one payload size in the BIOS, and reboot.",
        evidence=(
            register(child, "MPS", f"{large} bytes", "DevCtl: MaxPayload"),
            register(parent, "MPS", f"{small} bytes", "DevCtl: MaxPayload"),
        ),
        severity=each.severity("error"),
        places=frozenset({child.id, parent.id, each.function.id}),
    )
