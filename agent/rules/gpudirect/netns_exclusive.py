"""gdr-netns-exclusive."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gdr-netns-exclusive", "info", needs=("rdma|rdma_tools",), references=("gdr-netns-exclusive",))
def gdr_netns_exclusive(case: Case) -> Iterator[Answer]:
    """RDMA devices belong to one network namespace each: a container sees only those that were moved into its own.

    ## What it checks
    The mode of the kernel's RDMA subsystem on nodes with RDMA devices.

    ## Why it matters
    In exclusive mode a container without its devices finds 0 of them, and NCCL takes TCP without a word.

    ## How it is decided
    The mode is `exclusive`. The kernel's default is `shared`.

    ## What keeps it silent
    - No GPU, no RDMA device: not applicable. The mode could not be read: unknown.

    ## How to confirm
    `rdma system show`

    ## How to fix
    Nothing where an RDMA CNI moves devices on purpose; else `rdma system set netns shared` before any container starts.

    ## Source
    Linux `include/uapi/rdma/rdma_netlink.h` (RDMA_NLDEV_SYS_ATTR_NETNS_MODE); rdma-system(8).
    """
    mode = case.software.rdma_namespaces
    if not case.topology.gpus and case.bus_unread is None:
        yield NotApplicable("node", "no GPU")
        return
    if not any(nic.rdma_device for nic in case.topology.nics):
        yield NotApplicable("node", "no RDMA device")
    elif mode is None:
        yield Unknown("node", "the mode of RDMA namespaces could not be read")
    elif mode == "shared":
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="RDMA devices are exclusive to one network namespace each",
            impact="a container without devices of its own finds 0 of them, and uses TCP.",
            remedy="Nothing where an RDMA CNI moves them on purpose; else rdma system set netns shared.",
            evidence=(Evidence(what="RDMA namespaces", value=mode, source="rdma system show"),),
            places=frozenset({"node"}),
        )
