"""gdr-soft-rdma."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.rules.case import Case
from agent.rules.nccl.settings import effective, files_unread, jobs_unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gdr-soft-rdma", "error", needs=("rdma|rdma_tools",), references=("gdr-soft-rdma",))
def gdr_soft_rdma(case: Case) -> Iterator[Answer]:
    """A software RDMA device is active beside the rails, and nothing keeps NCCL from using it.

    ## What it checks
    Active soft-RoCE and soft-iWARP devices (rxe, siw) on a node with rails, and `NCCL_IB_HCA`.

    ## Why it matters
    NCCL takes every verbs device that it finds: a ring over the CPU at some 10 Gb/s slows all of 8 rails.

    ## How it is decided
    A software device has an active port, the node has rails, and no setting of NCCL chooses devices.

    ## What keeps it silent
    - No rail (a laboratory); no active software port: not applicable.
    - `NCCL_IB_HCA` is set: gdr-nccl-hca-mismatch judges what it chooses.
    - NCCL's files or the jobs' environments could not be read: unknown.

    ## How to confirm
    `rdma link`; `env | grep NCCL_IB_HCA` in a job

    ## How to fix
    `rdma link delete rxe0`, or choose the rails: `NCCL_IB_HCA==mlx5_0,mlx5_1,...` in `/etc/nccl.conf`.

    ## Source
    NCCL `src/transport/net_ib/init.cc` (device enumeration).
    """
    soft = [nic for nic in case.topology.nics if nic.software and any(p.state == "ACTIVE" for p in nic.ports)]
    if not soft or not case.rails:
        yield NotApplicable("node", "no active software device beside rails")
        return
    chosen = effective(case, "NCCL_IB_HCA")
    unread = files_unread(case) or jobs_unread(case)
    for nic in soft:
        if chosen:
            yield Pass(f"port:{nic.id}/1")
        elif unread:
            yield Unknown(f"port:{nic.id}/1", f"whether NCCL_IB_HCA is set is not known: {unread}")
        else:
            yield _fault(case, nic)


def _fault(case: Case, nic: Nic) -> Fail:
    return Fail(
        subject=f"port:{nic.id}/1",
        label=nic.label,
        summary=f"{nic.label} is a software device, active beside {len(case.rails)} rails, and NCCL_IB_HCA is not set",
        impact=f"NCCL may build a ring over it: some 10 Gb/s, and all {len(case.rails)} rails wait.",
        remedy=f"rdma link delete {nic.label}, or choose the rails with NCCL_IB_HCA in /etc/nccl.conf.",
        evidence=(
            Evidence(what="RDMA device", value=f"{nic.label}, software, ACTIVE", source="rdma link"),
            Evidence(what="NCCL_IB_HCA", value="not set", source=", ".join(case.software.nccl.searched[:4])),
        ),
        places=frozenset({nic.id}),
    )
