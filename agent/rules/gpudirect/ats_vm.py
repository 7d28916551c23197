"""gdr-ats-vm."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.devices import function_of, pci_source
from agent.rules.gpudirect.ways import Pair, pairs
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gdr-ats-vm", "error", needs=("pci|lspci",), references=("gdr-ats-vm",))
def gdr_ats_vm(case: Case) -> Iterator[Answer]:
    """In a virtual machine with a GPU and a whole NIC passed through, the NIC has no address translation service.

    ## What it checks
    ATS of the rails of a guest that was given physical functions, not virtual ones.

    ## Why it matters
    In a guest every address is translated. Without ATS each transfer goes up to the host's IOMMU: NVIDIA names ATS as
    needed for full GPUDirect bandwidth in guests, where else about 50 % are lost.

    ## How it is decided
    The NIC's ATS capability is there and off, or it has none, and its GPU is passed through, too.

    ## What keeps it silent
    - Bare metal; virtual functions and clouds, where the provider decides; Grace, whose CPU does not take part: not
      applicable.
    - The config space could not be read whole (it needs root): unknown.

    ## How to confirm
    `lspci -vvv -s ADDRESS | grep -A1 ATS` as root in the guest

    ## How to fix
    On the host: `mlxconfig -d DEVICE set ATS_ENABLED=true`, then a cold reboot; ACS of the host's ports to match.

    ## Source
    NVIDIA AI Enterprise, Optimizing VM configuration; rdma-core `kernel-boot/rdma_topo`.
    """
    cloud = any(line.startswith("cloud:") for line in case.platform.evidence)
    for pair in pairs(case):
        if not case.virtual_machine or cloud or case.node.arch == "aarch64":
            yield NotApplicable(pair.subject, "not a guest with devices of its own")
        else:
            yield _judge(case, pair)


def _judge(case: Case, pair: Pair) -> Answer:
    nic = function_of(case, pair.nic)
    if pair.nic.virtual_function or nic is None or nic.physical_function:
        return NotApplicable(pair.subject, "a virtual function: the provider decides")
    if nic.ats is None:
        return Unknown(pair.subject, "ATS of the NIC could not be read: it needs root (CAP_SYS_ADMIN)")
    if nic.ats:
        return Pass(pair.subject)
    return Fail(
        subject=pair.subject,
        label=pair.label,
        summary=f"{pair.nic.label} was passed through without ATS",
        impact="each transfer goes up to the host's IOMMU: about 50 % of the bandwidth.",
        remedy="On the host: mlxconfig -d DEVICE set ATS_ENABLED=true, then a cold reboot.",
        evidence=(Evidence(what="ATS", value="off", source=pci_source(case, nic.id, "config")),),
        places=pair.places,
    )
