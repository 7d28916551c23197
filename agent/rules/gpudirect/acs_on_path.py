"""gdr-acs-on-path."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import function_of, pci_source
from agent.rules.gpudirect.ways import Pair, pairs, passes_through, platform_kind
from agent.rules.pcie.registers import HIDDEN, hidden
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_REDIRECTS = ("RR", "CR", "UF")  # request redirect, completion redirect, upstream forwarding


@rule("gdr-acs-on-path", "error", needs=("pci|lspci",), references=("gdr-acs-on-path", "PCIE-022"))
def gdr_acs_on_path(case: Case) -> Iterator[Answer]:
    """ACS sends the traffic of a GPU and its rail up to the root complex, though both are behind one switch.

    ## What it checks
    On bare metal: the ACS control bits of the switches' downstream ports between each GPU and its rails.

    ## Why it matters
    Traffic that would stay below the switch goes up to the CPU and down again: NVIDIA and NCCL tell of less than 50 %
    of the bandwidth, and of hangs.

    ## How it is decided
    Request redirect (RR), completion redirect (CR) or upstream forwarding (UF) is on in a downstream port on the way of
    a pair that is PIX or PXB. Ports elsewhere do not matter, nor does source validation (SV) alone. Where all pairs of
    the node are so, it is one finding.

    ## What keeps it silent
    - Virtual machines, where ACS is the host's; hosts that hand devices to guests (vfio-pci), which need ACS; Grace and
      Direct NIC boards, where some bits must be on; clouds with a GPUDirect of their own: not applicable.
    - The NIC has ATS on and the port allows direct translated requests (DT): translated traffic is not redirected.
    - The pair meets at a host bridge or further away: not applicable, ACS is not what costs there.
    - The config space could not be read whole (it needs root): unknown.

    ## How to confirm
    `lspci -vvv -s PORT | grep ACSCtl` as root; `rdma_topo check` of rdma-core.

    ## How to fix
    Switch ACS or the IOMMU off in the BIOS; or at each boot `setpci -s PORT ECAP_ACS+0x6.w=0000` for the ports named;
    or `pci=disable_acs_redir=PORT` on the kernel command line.

    ## Source
    rdma-core `kernel-boot/rdma_topo`; NCCL user guide, troubleshooting (PCI Access Control Services); GDS best
    practices.
    """
    kind, guests = platform_kind(case), passes_through(case)
    faults: list[Fail] = []
    judged = 0
    for pair in pairs(case):
        if kind not in ("x86", "inline") or guests:
            yield NotApplicable(pair.subject, guests or _ELSEWHERE[kind])
            continue
        answer = _judge(case, pair)
        judged += isinstance(answer, Pass | Fail)
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    if len(faults) > 1 and len(faults) == judged:
        yield _together(faults)
    else:
        yield from faults


_ELSEWHERE = {
    "guest": "virtual machine: ACS is the host's",
    "cloud": "rails of a cloud with a GPUDirect of its own",
    "direct-nic": "a Direct NIC board: some ACS bits must be on (gdr-acs-directnic)",
    "grace": "Grace: NICs reach GPUs by C2C, and the kernel's ACS is right",
}


def _judge(case: Case, pair: Pair) -> Answer:
    if not pair.near:
        return NotApplicable(pair.subject, f"{pair.path.pcie_kind}: they do not meet at a switch")
    hops = [case.functions[hop] for hop in pair.path.hops if hop in case.functions]
    ports = [hop for hop in hops if hop.port_type == "downstream"]
    if len(hops) < len(pair.path.hops) or any(hop.port_type is None for hop in hops):
        unseen = any(hidden(hop) for hop in hops)
        return Unknown(pair.subject, HIDDEN if unseen else "which ports are between them is not known")
    redirecting = [port for port in ports if _redirects(case, pair, port)]
    if redirecting:
        return _fault(case, pair, redirecting)
    if any(port.acs is None for port in ports):
        return Unknown(pair.subject, HIDDEN)
    return Pass(pair.subject)


def _redirects(case: Case, pair: Pair, port: PciFunction) -> bool:
    if port.acs is None or not set(port.acs.control) & set(_REDIRECTS):
        return False
    nic = function_of(case, pair.nic)
    return not ("DT" in port.acs.control and nic is not None and nic.ats)


def _fault(case: Case, pair: Pair, ports: list[PciFunction]) -> Fail:
    return Fail(
        subject=pair.subject,
        label=pair.label,
        summary=f"ACS redirects peer traffic at {named([port.id for port in ports])}, below which both are",
        impact="their traffic goes up to the CPU and back: less than 50 % of the bandwidth, and sometimes a hang.",
        remedy="ACS or IOMMU off in the BIOS, or at each boot: "
        + "; ".join(f"setpci -s {port.id} ECAP_ACS+0x6.w=0000" for port in ports),
        evidence=tuple(
            Evidence(
                what=f"ACS control of {port.id}",
                value=" ".join(port.acs.control) if port.acs else "",
                source=pci_source(case, port.id, "config"),
            )
            for port in ports
        ),
        places=pair.places,
    )


def _together(faults: list[Fail]) -> Fail:
    """One finding for the node: nobody sets ACS for a single pair."""
    evidence = {row.what: row for fault in faults for row in fault.evidence}
    ports = [what.rpartition(" ")[2] for what in evidence]
    return Fail(
        subject="node",
        label="node",
        summary=f"ACS redirects the traffic of every GPU and its rails, at {named(ports)}",
        impact=faults[0].impact,
        remedy="ACS or IOMMU off in the BIOS, or at each boot for each of these ports: setpci -s PORT "
        "ECAP_ACS+0x6.w=0000",
        evidence=tuple(evidence.values()),
        places=frozenset().union(*(fault.places for fault in faults)),
    )
