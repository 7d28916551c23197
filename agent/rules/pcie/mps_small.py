"""pcie-mps-small."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.devices import is_consumer
from agent.rules.folding import folded
from agent.rules.pcie.registers import Gear, gear, not_told, register
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_LEAST = 128
_BETTER = 256
_BY_DESIGN = "pcie_bus_peer2peer"


@rule("pcie-mps-small", "warning", needs=("pci|lspci",), references=("PCIE-012",))
def pcie_mps_small(case: Case) -> Iterator[Answer]:
    """A device sends PCIe packets of 128 bytes, where everything on its way takes 256.

    ## What it checks
    The maximum payload size (MPS) of every GPU and NIC in use, against what every function below its root port can do.

    ## Why it matters
    Each packet carries about 24 bytes besides its payload: with 128 bytes 84 % of the link are payload, with 256 it is
    91 %. About 8 % of the bandwidth are given away.

    ## How it is decided
    MPS (DevCtl) is 128, and the least that any function below the same root port supports (DevCap) is 256 or more. GPUs
    and rails: warning; other NICs: info. Where all are so, it is one finding for the node.

    ## What keeps it silent
    - `pci=pcie_bus_peer2peer` on the kernel command line sets 128 everywhere, on purpose: not applicable.
    - Something below the same root port can do no more than 128: it is as it must be.
    - Cards for games; virtual functions and machines; NICs without a use; devices that sleep or are gone.
    - Config space, or the kernel command line, could not be read: unknown.

    ## How to confirm
    `lspci -vvv -s ADDRESS | grep MaxPayload`: the first is what it can, the second what is set.

    ## How to fix
    Set the payload size in the BIOS to the largest or to automatic, or boot with `pci=pcie_bus_safe`.

    ## Source
    PCI Express Base Specification, Device Control; Linux kernel parameters, `pci=pcie_bus_*`.
    """
    answers = (_judge(case, each) if isinstance(each, Gear) else each for each in gear(case))
    yield from folded(answers, "PCIe packets of 128 bytes on every GPU and NIC")


def _judge(case: Case, each: Gear) -> Answer:
    if each.gpu and is_consumer(case, each.gpu):
        return NotApplicable(each.subject, "a card for desktops")
    above = case.ancestors(each.function)
    if not above:
        return NotApplicable(each.subject, "no port above it")
    if each.function.max_payload_bytes is None:
        return Unknown(each.subject, not_told(each.function, "the payload size"))
    if each.function.max_payload_bytes > _LEAST:
        return Pass(each.subject)
    kin = [f for f in case.topology.pci if above[-1] in (f, *case.ancestors(f)) and not f.physical_function]
    able = {f.id: f.max_payload_supported_bytes for f in kin}
    if any(size is not None and size < _BETTER for size in able.values()):
        return Pass(each.subject)
    if None in able.values():
        return Unknown(each.subject, not_told(next(f for f in kin if able[f.id] is None), "the payload size"))
    if case.node.cmdline is None:
        return Unknown(each.subject, f"128 bytes, and whether {_BY_DESIGN} asked for it is not known")
    if _BY_DESIGN in case.node.cmdline:
        return NotApplicable(each.subject, f"{_BY_DESIGN} on the kernel command line: set on purpose")
    return _fault(each, above[-1])


def _fault(each: Gear, top: PciFunction) -> Fail:
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"it sends PCIe packets of {_LEAST} bytes; everything below {top.id} can take {_BETTER}",
        impact="84 % of the link are payload instead of 91 %: about 8 % of its bandwidth.",
        remedy="Set the payload size in the BIOS to the largest or to automatic, or boot with pci=pcie_bus_safe.",
        evidence=(
            register(each.function, "MPS", f"{_LEAST} bytes", "DevCtl: MaxPayload"),
            register(
                each.function,
                "most that it can",
                f"{each.function.max_payload_supported_bytes} bytes",
                "DevCap: MaxPayload",
            ),
        ),
        severity=each.severity("warning"),
        places=each.places,
    )
