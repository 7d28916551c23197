"""pcie-aspm-on."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.devices import is_consumer
from agent.rules.folding import folded
from agent.rules.pcie.registers import Gear, gear, not_told, register
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("pcie-aspm-on", "info", needs=("pci|lspci",), references=("PCIE-017",))
def pcie_aspm_on(case: Case) -> Iterator[Answer]:
    """The link of a GPU or NIC may go to sleep between transfers (ASPM).

    ## What it checks
    Active State Power Management of the links of GPUs and of NICs in use.

    ## Why it matters
    A link in L1 takes 2 to 64 µs to wake: more than a small message takes from node to node (about 2 µs). Leaving it
    can also raise receiver errors.

    ## How it is decided
    ASPM (LnkCtl) is on at the device, and at the port above it where that is known (L0s at either). It is information.
    Where all are so, it is one finding for the node.

    ## What keeps it silent
    - Cards for games, virtual functions and machines, NICs without a use, devices that sleep or are gone.
    - A node without a port above the device: not applicable. Without CAP_SYS_ADMIN it cannot be read: unknown.

    ## How to confirm
    `lspci -vvv -s ADDRESS | grep -E 'LnkCtl:'`; `cat /sys/module/pcie_aspm/parameters/policy`

    ## How to fix
    Switch ASPM off in the BIOS, or boot with `pcie_aspm.policy=performance`.

    ## Source
    PCI Express Base Specification, Link Control; Linux `Documentation/ABI/testing/sysfs-bus-pci` (`link/*_aspm`).
    """
    answers = (_judge(case, each) if isinstance(each, Gear) else each for each in gear(case))
    yield from folded(answers, "links may sleep between transfers (ASPM) on every GPU and NIC")


def _judge(case: Case, each: Gear) -> Answer:
    function, port = each.function, case.functions.get(each.function.parent or "")
    if each.gpu and is_consumer(case, each.gpu):
        return NotApplicable(each.subject, "a card for desktops")
    if function.parent is None:
        return NotApplicable(each.subject, "no port above it: no link")
    if function.aspm is None:
        return Unknown(each.subject, not_told(function, "ASPM"))
    there = port.aspm if port else None
    states = [state for state in ("L0s", "L1") if _on(state, function.aspm, there)]
    if not states:
        return Pass(each.subject)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"its link may sleep between transfers: ASPM {' and '.join(states)} on",
        impact="2 to 64 µs to wake the link, at every first transfer after a pause."
        if "L1" in states
        else "less than 4 µs to wake the link, at every first transfer after a pause.",
        remedy="Switch ASPM off in the BIOS, or boot with pcie_aspm.policy=performance.",
        evidence=tuple(register(end, "ASPM", end.aspm, "LnkCtl") for end in (function, port) if end and end.aspm),
        places=each.places,
    )


def _on(state: str, here: str, there: str | None) -> bool:
    """L0s is of one direction; L1 needs both ends."""
    if state == "L0s":
        return state in here.split() or state in (there or "").split()
    return state in here.split() and (there is None or state in there.split())
