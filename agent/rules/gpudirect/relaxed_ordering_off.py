"""gdr-relaxed-ordering-off."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.pcie.registers import Gear, nic_gear, not_told, register
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_IB_PCI_RELAXED_ORDERING"
# Root ports for which the kernel itself switches it off below (drivers/pci/quirks.c, quirk_relaxedordering_disable):
# Haswell and Broadwell Xeons 2f01-2f0e and 6f01-6f0e, AMD Seattle
_QUIRKS = frozenset(
    {("0x8086", f"0x{family}0{n:x}") for family in ("2f", "6f") for n in range(1, 0xF)}
    | {("0x1022", f"0x1a0{n}") for n in range(3)}
)


@rule(
    "gdr-relaxed-ordering-off",
    "info",
    needs=("pci|lspci",),
    references=("PCIE-015", "gdr-relaxed-ordering"),
)
def gdr_relaxed_ordering_off(case: Case) -> Iterator[Answer]:
    """A rail may not let its writes overtake each other (PCIe relaxed ordering).

    ## What it checks
    Relaxed Ordering (DevCtl) of every rail, and `NCCL_IB_PCI_RELAXED_ORDERING` in the settings of NCCL.

    ## Why it matters
    Strictly ordered writes wait for each other: on AMD EPYC, and with peers below different root ports, a rail of 200
    Gb/s and more may reach half its rate only.

    ## How it is decided
    The bit is off on a rail, or NCCL is told 0: info, on AMD processors warning. Where all rails are so, it is one
    finding for the node. ConnectX cards can be set to order as they like (`PCI_WR_ORDERING`), which the bit does not
    tell: medium confidence.

    ## What keeps it silent
    - Root ports that cannot do it, below which the kernel switches it off (Haswell, Broadwell): not applicable.
    - Virtual functions and machines, NICs that are no rails, devices that sleep or are gone: not applicable.
    - Without CAP_SYS_ADMIN it cannot be read, and which NICs are rails may not be known: unknown.

    ## How to confirm
    `lspci -vvv -s ADDRESS | grep RlxdOrd`; `mlxconfig -d ADDRESS q PCI_WR_ORDERING`

    ## How to fix
    Switch PCIe relaxed ordering on in the BIOS, or `mlxconfig -d ADDRESS set PCI_WR_ORDERING=1`; take the variable out
    of the settings of NCCL.

    ## Source
    Linux `pci_configure_relaxed_ordering()` and `drivers/pci/quirks.c`; NCCL `src/transport/net_ib/init.cc`.
    """
    if not case.topology.gpus and case.bus_unread is None:
        yield NotApplicable("node", "no GPU")
        return
    if case.no_rail_known:
        yield Unknown("node", case.no_rail_known)
        return
    amd = "amd" in (case.node.cpu.vendor or "").lower()
    answers = (_judge(case, each, amd) if isinstance(each, Gear) else each for each in nic_gear(case))
    yield from folded(answers, "relaxed ordering is off on every rail")
    yield from _setting(case, amd)


def _judge(case: Case, each: Gear, amd: bool) -> Answer:
    if each.nic is None or each.nic.role != "rail":
        return NotApplicable(each.subject, "no rail")
    above = case.ancestors(each.function)
    if any((port.vendor, port.device) in _QUIRKS for port in above[-1:]):
        return NotApplicable(each.subject, "its root port cannot do it: the kernel switches it off")
    on = each.function.relaxed_ordering
    if on is None:
        return Unknown(each.subject, not_told(each.function, "relaxed ordering"))
    if on:
        return Pass(each.subject)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary="its writes may not overtake each other: PCIe relaxed ordering is off",
        impact="up to 50 % of its rate into GPU memory, most of all on AMD EPYC.",
        remedy="Switch relaxed ordering on in the BIOS, or set PCI_WR_ORDERING=1 in the card.",
        evidence=(register(each.function, "relaxed ordering", "off", "DevCtl: RlxdOrd"),),
        severity="warning" if amd else None,
        confidence="medium",
        places=each.places,
    )


def _setting(case: Case, amd: bool) -> Iterator[Answer]:
    told = [each for each in case.software.nccl.settings if each.key.strip() == _KEY and each.value.strip() == "0"]
    if case.rails and told and not case.virtual_machine:
        yield Fail(
            subject="node",
            label="node",
            summary=f"{_KEY}=0: NCCL does not let writes of rails overtake each other",
            impact="up to 50 % of the rate into GPU memory, most of all on AMD EPYC.",
            remedy=f"Take {_KEY} out of {told[0].source}.",
            evidence=tuple(Evidence(what=_KEY, value=each.value, source=each.source) for each in told),
            severity="warning" if amd else None,
            confidence="medium",
            cause="nccl",
            places=frozenset({"node"}),
        )
