"""ib-rate-mixed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.counting import named, share_lost
from agent.rules.infiniband.ports import IbPort, ib_ports, no_infiniband, rate_unparsed
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("ib-rate-mixed", "warning", needs=("rdma|rdma_tools",), references=("ib-rate-mixed",))
def ib_rate_mixed(case: Case) -> Iterator[Answer]:
    """InfiniBand rails of one node run at different rates.

    ## What it checks
    The rates of the active InfiniBand ports of all rails.

    ## Why it matters
    NCCL builds its channels for the slowest rail: seven rails at 400 Gb/s beside one at 200 move as much as eight at
    200, half of what they could.

    ## How it is decided
    Two rails are active and their rates differ. One finding for the node. Where a port is slower than others of its own
    board, ib-rate-degraded names it and stands for this one; what remains are rails of different kinds.

    ## What keeps it silent
    - Storage, management and other NICs are not compared; nor are ports that are not active.
    - Rails that answer to different subnet managers (LID): two fabrics may differ by design.
    - A rate that the kernel has no name for (SDR on ConnectX-5 and later): unknown, and left out.
    - Fewer than two active InfiniBand rails: not applicable.

    ## How to confirm
    `grep . /sys/class/infiniband/*/ports/1/rate`

    ## How to fix
    Replace the slower NIC or cable, or leave the slower rails out of the job (`NCCL_IB_HCA`).

    ## Source
    NCCL `src/graph/paths.cc` and `src/graph/search.cc`; Azure `check_hw_ib`.
    """
    ports: list[IbPort] = []
    for each in ib_ports(case):
        if not isinstance(each, IbPort):
            if isinstance(each, Unknown):
                yield each
        elif each.nic.role == "rail" and each.port.state == "ACTIVE":
            if each.port.rate_gbit_s is None or rate_unparsed(case, each):
                yield Unknown(each.subject, "its rate is not known")
            else:
                ports.append(each)
    if len(ports) < 2:
        if case.probe_failure("rdma|rdma_tools") is None or no_infiniband(case):
            yield NotApplicable("node", "fewer than two active InfiniBand rails")
        return
    mixed = [fabric for fabric in _fabrics(ports) if len({each.port.rate_gbit_s for each in fabric}) > 1]
    yield _fault(mixed[0]) if mixed else Pass("node")


def _fabrics(ports: list[IbPort]) -> list[list[IbPort]]:
    """Ports by the subnet manager that they answer to: a second fabric may be slower by design."""
    found: dict[int | None, list[IbPort]] = {}
    for each in ports:
        found.setdefault(each.port.sm_lid, []).append(each)
    return list(found.values())


def _fault(ports: list[IbPort]) -> Fail:
    rates = [each.port.rate_gbit_s or 0.0 for each in ports]
    slowest, fastest = min(rates), max(rates)
    slow = [each for each in ports if (each.port.rate_gbit_s or 0.0) < fastest]
    return Fail(
        subject="node",
        label="node",
        summary=f"InfiniBand rails run at {slowest:g} and {fastest:g} Gb/s; slower: {named([e.label for e in slow])}",
        impact=f"every rail runs as fast as the slowest: {share_lost(slowest, fastest)} less on the faster ones.",
        remedy="Replace the slower NIC or cable, or leave the slower rails out of the job (NCCL_IB_HCA).",
        evidence=tuple(each.evidence("rate", f"{each.port.rate_gbit_s:g} Gb/s", "rate") for each in ports),
        places=frozenset().union(*(each.places for each in slow)),
    )
