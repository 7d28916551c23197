"""ib-ar-disabled."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE, evidence_of, no_rails, rdma_rails
from agent.rules.nccl.settings import effective, files_unread, number
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_IB_ADAPTIVE_ROUTING"


@rule("ib-ar-disabled", "info", needs=("nccl", "rdma|rdma_tools"), references=("ib-ar-disabled",))
def ib_ar_disabled(case: Case) -> Iterator[Answer]:
    """NCCL is told not to use adaptive routing on InfiniBand.

    ## What it checks
    `NCCL_IB_ADAPTIVE_ROUTING` in NCCL's files and in running jobs, on nodes with InfiniBand rails.

    ## Why it matters
    NCCL sends large messages so that their packets may take several ways, and does so on InfiniBand by itself. Switched
    off, all packets of a connection share one way, and flows that meet on one link get 50 % of it or less.

    ## How it is decided
    The variable is set to 0, in a file or a running job, and a rail is InfiniBand.

    ## What keeps it silent
    - It is not set, or set to 1: passes.
    - No active InfiniBand rail (on RoCE it is off unless asked for): not applicable.
    - NCCL's files could not be read: unknown. Whether the subnet manager routes adaptively, no node can see.

    ## How to confirm
    `grep -s NCCL_IB_ADAPTIVE_ROUTING /etc/nccl.conf`

    ## How to fix
    Remove the setting.

    ## Source
    NCCL `src/transport/net_ib/init.cc` (default by link layer).
    """
    yield from (silent := list(no_rails(case)))
    if silent:
        return
    off = [each for each in effective(case, _KEY) if number(each.value) == 0]
    if not any(each.port.link_layer == "InfiniBand" for each in rdma_rails(case)):
        yield NotApplicable("node", "no active InfiniBand rail")
    elif off:
        yield Fail(
            subject="node",
            label="node",
            summary=f"{_KEY}={off[0].value} in {off[0].source}",
            impact="flows that meet on one link get 50 % of it or less, while others are idle.",
            remedy="Remove the setting.",
            evidence=evidence_of(_KEY, off),
            places=NODE,
        )
    else:
        why = files_unread(case)
        yield Unknown("node", why) if why else Pass("node")
