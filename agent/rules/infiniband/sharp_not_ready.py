"""ib-sharp-not-ready."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE, evidence_of, no_rails, rdma_rails
from agent.rules.nccl.settings import Effective, effective, files_unread, jobs_unread, number
from agent.rules.nccl.users import mapped
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY, _OFF = "NCCL_COLLNET_ENABLE", "NCCL_IBEXT_DISABLE"


@rule("ib-sharp-not-ready", "info", needs=("nccl", "rdma|rdma_tools"), references=("ib-sharp-not-ready",))
def ib_sharp_not_ready(case: Case) -> Iterator[Answer]:
    """SHARP is asked for, and something that it needs is missing on this node.

    ## What it checks
    Where `NCCL_COLLNET_ENABLE=1` is set on a node with InfiniBand rails: NCCL's SHARP plugin.

    ## Why it matters
    SHARP adds up in the switches: each byte of an allreduce crosses the link once and not twice, up to 2 times the
    bandwidth. Without its plugin NCCL takes rings and trees instead, and says nothing.

    ## How it is decided
    `NCCL_IBEXT_DISABLE=1` is set beside it; or running jobs have NCCL mapped, and none of them a network plugin
    (`libnccl-net*.so`).

    ## What keeps it silent
    - Nobody asks for SHARP; no active InfiniBand rail: not applicable.
    - No job runs: what is installed says nothing, for containers bring their own. Passes.
    - NCCL's files or running jobs could not be read: unknown. Whether `sharp_am` runs, no node can see.

    ## How to confirm
    `NCCL_DEBUG=INFO` prints "CollNet" channels; `sharp_hello`

    ## How to fix
    Load HPC-X (its `nccl_rdma_sharp_plugin` on LD_LIBRARY_PATH), remove `NCCL_IBEXT_DISABLE`, start `sharp_am`.

    ## Source
    NVIDIA SHARP, using SHARP with NCCL; HPC-X manual, nccl_rdma_sharp_plugin.
    """
    yield from (silent := list(no_rails(case)))
    if silent:
        return
    why = files_unread(case)
    asked = [each for each in effective(case, _KEY) if number(each.value)]
    if not any(each.port.link_layer == "InfiniBand" for each in rdma_rails(case)):
        yield NotApplicable("node", "no active InfiniBand rail")
    elif not asked:
        yield Unknown("node", why) if why else NotApplicable("node", f"{_KEY} is not set: nobody asks for SHARP")
    else:
        yield _judge(case, asked)


def _judge(case: Case, asked: list[Effective]) -> Answer:
    off = [each for each in effective(case, _OFF) if number(each.value)]
    users = mapped(case, "libnccl.so")
    why = jobs_unread(case)
    if not off and (not users or mapped(case, "libnccl-net")):
        return Unknown("node", why) if why else Pass("node")
    missing = f"{_OFF}={off[0].value} switches its plugin off" if off else "jobs have no network plugin mapped"
    return Fail(
        subject="node",
        label="node",
        summary=f"{_KEY}={asked[0].value} asks for SHARP, and {missing}",
        impact="allreduce runs over rings and trees: up to 50 % less bandwidth than with SHARP.",
        remedy=f"Remove {_OFF}." if off else "Put HPC-X's nccl_rdma_sharp_plugin on the library path of the jobs.",
        evidence=(
            *evidence_of(_KEY, asked),
            *evidence_of(_OFF, off),
            *(Evidence(what="libnccl", value=row.path, source="/proc/*/maps") for row in users[:2]),
        ),
        cause="switched off" if off else "no plugin",
        places=NODE,
    )
