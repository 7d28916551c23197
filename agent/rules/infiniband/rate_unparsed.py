"""ib-rate-unparsed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.infiniband.ports import IbPort, device_number, ib_ports, rate_unparsed
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("ib-rate-unparsed", "info", needs=("rdma|rdma_tools",), references=("ib-rate-unparsed",))
def ib_rate_unparsed(case: Case) -> Iterator[Answer]:
    """The kernel has no name for the speed of an InfiniBand port, and shows the slowest.

    ## What it checks
    The rate of every active InfiniBand port of a rail or storage NIC.

    ## Why it matters
    Kernels that do not know a speed print SDR (10 Gb/s at 4X) for a port that runs at 400: whatever reads the rate,
    this tool and NCCL's estimate of bandwidth among them, is off by a factor of 40.

    ## How it is decided
    The port is active, says SDR, and its NIC is a ConnectX-5 or later, which has no reason to run so slowly. One
    finding where all ports say it.

    ## What keeps it silent
    - Older NICs, which may be on a fabric of that age; ports that are not active, of which SDR is the default.
    - Ports without a role, software devices, functions that a fabric manager owns: not applicable.
    - The rate, or which NIC it is, could not be read: unknown.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/rate` against `mlxlink -d DEVICE`

    ## How to fix
    A newer kernel, or DOCA-OFED, whose drivers know the speeds of all NICs that they drive.

    ## Source
    Linux `rate_show` in `drivers/infiniband/core/sysfs.c`.
    """
    answers = (_judge(case, each) if isinstance(each, IbPort) else each for each in ib_ports(case))
    yield from folded(answers, "the kernel cannot name the speed of any InfiniBand port")


def _judge(case: Case, each: IbPort) -> Answer:
    port = each.port
    if port.state != "ACTIVE":
        return NotApplicable(each.subject, f"{port.state}: a rate is told of active ports only")
    if port.rate_gbit_s is None:
        return Unknown(each.subject, "its rate could not be read")
    if port.speed == "SDR" and device_number(case, each.nic) is None:
        return Unknown(each.subject, "SDR, and which NIC it is could not be read")
    if not rate_unparsed(case, each):
        return Pass(each.subject)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{port.rate_gbit_s:g} Gb/s ({port.width} SDR) on {each.nic.model or 'a ConnectX-5 or later'}: "
        f"kernel {case.node.kernel or 'not told'} has no name for its speed",
        impact="the real rate is not known: up to 40 times what is shown. Rules about rates cannot judge this port.",
        remedy="A newer kernel, or DOCA-OFED.",
        evidence=(each.evidence("rate", f"{port.rate_gbit_s:g} Gb/s ({port.width} SDR)", "rate"),),
        severity="info",
        places=each.places,
    )
