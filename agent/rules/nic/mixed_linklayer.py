"""ib-mixed-linklayer."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nccl.hcas import Hca, no_rails, rdma_rails, wanted
from agent.rules.nccl.settings import effective, files_unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_NEAR = ("PIX", "PXB")
_KEY = "NCCL_IB_HCA"


@rule("ib-mixed-linklayer", "error", needs=("rdma|rdma_tools",), references=("ib-mixed-linklayer",))
def ib_mixed_linklayer(case: Case) -> Iterator[Answer]:
    """Rails of one node are partly InfiniBand and partly Ethernet, and NCCL is not told which to take.

    ## What it checks
    The link layers of all active rails, and what `NCCL_IB_HCA` takes of them.

    ## Why it matters
    NCCL does not connect one kind with the other ("incompatible devices"): jobs end at their start, or 100 % of a
    rail's traffic takes another way. A VPI card that came back from service with the wrong `LINK_TYPE` does this.

    ## How it is decided
    Active rails of both kinds, of which the list for all jobs takes both. Where both kinds lie behind a PCIe switch of
    a GPU (PIX, PXB): error. Else warning: an Ethernet NIC for the front end that nothing tells from a rail.

    ## What keeps it silent
    - `NCCL_IB_HCA` in a file takes one kind only.
    - Storage, management and software devices, clouds' own NICs, ports that are not active.
    - No active rail, or rails of one kind: not applicable, passes.
    - NCCL's files could not be read: unknown, where there are both kinds.

    ## How to confirm
    `grep . /sys/class/infiniband/*/ports/*/link_layer`; `mlxconfig -d DEVICE q | grep LINK_TYPE`

    ## How to fix
    `mlxconfig -d DEVICE set LINK_TYPE_P1=1` (InfiniBand) or `2` (Ethernet) and reset; or name one kind:
    `NCCL_IB_HCA==mlx5_0,mlx5_3`.

    ## Source
    NCCL `src/transport/net_ib/connect.cc` and `init.cc`; NVIDIA mlxconfig, LINK_TYPE_P1.
    """
    yield from (silent := list(no_rails(case)))
    if silent:
        return
    rails = rdma_rails(case)
    if len(rails) < 2:
        yield NotApplicable("node", "one active RDMA rail")
    elif not _is_mixed(rails):
        yield Pass("node")
    else:
        why = files_unread(case)
        lists = [each for each in effective(case, _KEY) if each.scope == "system"]
        if why:
            yield Unknown("node", f"rails of both kinds, and what {_KEY} takes is not known: {why}")
        elif lists and not _is_mixed([e for e in rails if wanted(lists[0].value).takes(e.name, e.port.port)]):
            yield Pass("node")
        else:
            yield _fault(case, rails)


def _is_mixed(rails: list[Hca]) -> bool:
    return len({each.port.link_layer for each in rails}) > 1


def _fault(case: Case, rails: list[Hca]) -> Fail:
    kinds = {kind: [each for each in rails if each.port.link_layer == kind] for kind in ("InfiniBand", "Ethernet")}
    fewer = min(kinds.values(), key=len)
    near = all(any(_is_near(case, each) for each in of_kind) for of_kind in kinds.values())
    told = "; ".join(f"{kind}: {named([each.label for each in of_kind])}" for kind, of_kind in kinds.items())
    return Fail(
        subject="node",
        label="node",
        summary=f"rails of two kinds, and {_KEY} takes both: {told}",
        impact="NCCL does not connect one kind with the other: jobs end at their start, or lose these rails (100 %).",
        remedy=f"Set the card's LINK_TYPE back (mlxconfig), or name one kind in {_KEY}.",
        evidence=tuple(
            Evidence(
                what=f"link layer of {each.label}",
                value=each.port.link_layer or "",
                source=f"/sys/class/infiniband/{each.name}/ports/{each.port.port}/link_layer",
            )
            for each in rails[:16]
        ),
        severity="error" if near else "warning",
        places=frozenset().union(*({each.nic.id, f"{each.nic.id}/{each.port.port}"} for each in fewer)),
    )


def _is_near(case: Case, each: Hca) -> bool:
    """Whether a GPU lies behind the same PCIe switches."""
    return any(path.kind in _NEAR for path in case.paths_of.get(each.nic.id, ()) if _to_gpu(case, path.a, path.b))


def _to_gpu(case: Case, a: str, b: str) -> bool:
    return a in case.gpus or b in case.gpus
