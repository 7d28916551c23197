"""gdr-mrrs-small."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.pcie.registers import Gear, nic_gear, not_told, register
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_LEAST = Threshold("gdr-mrrs-small.bytes", 4096, "maximum read request size of a fast rail, bytes")
_FAST_GBIT_S = 100.0


@rule(
    "gdr-mrrs-small",
    "warning",
    needs=("pci|lspci", "rdma|rdma_tools"),
    references=("PCIE-014", "gdr-mrrs-small"),
    thresholds=(_LEAST,),
)
def gdr_mrrs_small(case: Case) -> Iterator[Answer]:
    """A fast rail asks for memory in small pieces.

    ## What it checks
    The maximum read request size (MRRS) of every mlx5 rail with an active port of 100 Gb/s or more.

    ## Why it matters
    What a rail sends it first reads from GPU or host memory. In pieces of 512 bytes that are 8 times as many requests
    as with 4096, and from 200 Gb/s on they limit the rate.

    ## How it is decided
    MRRS (DevCtl) is below 4096 bytes. Where all rails are so, it is one finding for the node.

    ## What keeps it silent
    - NICs of other makers, EFA; NICs that are no rails; no active port of 100 Gb/s: not applicable.
    - Virtual functions and machines: the hypervisor's setting. Devices that sleep or are gone: not applicable.
    - Without CAP_SYS_ADMIN it cannot be read, and which NICs are rails may not be known: unknown.

    ## How to confirm
    `lspci -vvv -s ADDRESS | grep MaxReadReq`

    ## How to fix
    Set it in the BIOS, or after every boot `setpci -s ADDRESS CAP_EXP+08.w=5000:7000`. If the rail reaches its line
    rate as it is, leave it.

    ## Source
    NVIDIA nic-configuration-operator (4096 as its PCI optimisation); PCI Express Base Specification, Device Control.
    """
    if not case.topology.gpus and case.bus_unread is None:
        yield NotApplicable("node", "no GPU")
        return
    if case.no_rail_known:
        yield Unknown("node", case.no_rail_known)
        return
    answers = (_judge(case, each) if isinstance(each, Gear) else each for each in nic_gear(case))
    yield from folded(answers, "small read requests on every rail")


def _judge(case: Case, each: Gear) -> Answer:
    nic = each.nic
    if nic is None or nic.role != "rail":
        return NotApplicable(each.subject, "no rail")
    if not (nic.driver or "").startswith("mlx5"):
        return NotApplicable(each.subject, "not an mlx5 NIC: what suits it is not known")
    rates = [port.rate_gbit_s or 0.0 for port in nic.ports if port.state == "ACTIVE"]
    if max(rates, default=0.0) < _FAST_GBIT_S:
        return NotApplicable(each.subject, f"no active port of {_FAST_GBIT_S:g} Gb/s")
    size, least = each.function.max_read_request_bytes, int(case.threshold(_LEAST))
    if size is None:
        return Unknown(each.subject, not_told(each.function, "the read request size"))
    if size >= least:
        return Pass(each.subject)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"it reads memory in pieces of {size} bytes; {least} are usual for {max(rates):g} Gb/s",
        impact=f"{-(-least // size)} times as many read requests for what it sends: a limit from 200 Gb/s on.",
        remedy="Set MaxReadReq to 4096 in the BIOS, or with setpci after every boot; leave it if line rate is reached.",
        evidence=(register(each.function, "MRRS", f"{size} bytes", "DevCtl: MaxReadReq"),),
        places=each.places,
    )
