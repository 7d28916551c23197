"""roce-gid-index-wrong."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.devices import lowered
from agent.rules.folding import as_one
from agent.rules.nccl.settings import Effective, effective, files_unread, number
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_IB_GID_INDEX"
_V1, _V2 = "IB/RoCE v1", "RoCE v2"


@rule(
    "roce-gid-index-wrong",
    "error",
    needs=("nccl", "rdma|rdma_tools"),
    references=("roce-gid-index-wrong",),
    absorbs=("roce-nccl-gid-default-old",),
)
def roce_gid_index_wrong(case: Case) -> Iterator[Answer]:
    """NCCL is told to use a GID that is empty, or of RoCE v1.

    ## What it checks
    The GID at the index that `NCCL_IB_GID_INDEX` names, on every active RoCE rail.

    ## Why it matters
    Indexes are given out as addresses come and go: index 3 is RoCE v2 on one port and nothing on the next. From an
    empty one no connection comes about (error 12, after 7 retries of 4.3 s each); from one of RoCE v1 0 % passes a
    router.

    ## How it is decided
    The variable is set to 0 or more, the port's GID table was read, and the entry at that index is not there or is of
    type `IB/RoCE v1`. Set in a file: error. In a running job only: one step less, for its table may be another one.
    Where every port has it: one finding for the node.

    ## What keeps it silent
    - It is not set, or -1: NCCL chooses itself (2.21 and later: a RoCE v2 one). Not applicable.
    - InfiniBand ports, which do not use it; NICs that are no rail; EFA, iWARP, software devices.
    - The GID table, its types or NCCL's files could not be read, or the interface is elsewhere: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/gid_attrs/types/INDEX`; `show_gids`

    ## How to fix
    Remove the setting (NCCL 2.21 or later); steer by `NCCL_IB_ADDR_RANGE`; or set an index of RoCE v2 on every port.

    ## Source
    NCCL `src/transport/net_ib/connect.cc` (choice of GID), issue 1510; Linux ABI sysfs-class-infiniband.
    """
    values = [each for each in effective(case, _KEY) if (number(each.value) or 0) >= 0 and each.value.strip()]
    if not values:
        why = files_unread(case)
        yield Unknown("node", why) if why else NotApplicable("node", f"{_KEY} is not set: NCCL chooses a GID itself")
        return
    ports: list[RocePort] = []
    for each in roce_ports(case):
        if not isinstance(each, RocePort):
            yield each
        elif each.nic.role != "rail":
            yield NotApplicable(each.subject, f"role {each.nic.role}: NCCL's settings are for rails")
        else:
            ports.append(each)
    answers = [_of_port(each, values) for each in ports]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    yield from as_one(
        faults, len(answers), f"{_KEY}={values[0].value} in {values[0].source} is wrong on every RoCE rail"
    )


def _of_port(each: RocePort, values: list[Effective]) -> Answer:
    answers = [_judge(each, where) for where in values]
    for kind in (Fail, Unknown):
        found = next((answer for answer in answers if isinstance(answer, kind)), None)
        if found:
            return found
    return Pass(each.subject)


def _judge(each: RocePort, where: Effective) -> Answer:
    index = number(where.value) or 0
    if each.nic.state == "other_namespace":
        return Unknown(each.subject, "its interface is in another network namespace")
    if not each.port.gids_known or not each.port.gids:
        return Unknown(each.subject, "its GID table could not be read, or is empty")
    gid = next((gid for gid in each.port.gids if gid.index == index), None)
    if gid is not None and gid.type is None:
        return Unknown(each.subject, "the types of its GIDs could not be read")
    if gid is not None and gid.type != _V1:
        return Pass(each.subject)
    good = [str(other.index) for other in each.port.gids if other.type == _V2]
    said = f"{gid.gid} {gid.type}" if gid else "no GID"
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{_KEY}={where.value.strip()} in {where.source}: index {index} is {said if gid else 'empty'} here",
        impact="0 % of this traffic passes a router, and none has a lossless class."
        if gid
        else "no connection comes about on this rail: jobs end with error 12 after 7 retries of 4.3 s.",
        remedy=f"Remove {_KEY} (NCCL 2.21 or later chooses RoCE v2 itself)"
        + (f", or use an index of RoCE v2: here {', '.join(good[:4])}." if good else "."),
        evidence=(
            where.evidence(_KEY),
            Evidence(what=f"GID {index} of {each.label}", value=said, source=f"{each.folder}/gid_attrs/types/{index}"),
        ),
        severity="error" if where.persistent else lowered("error"),
        cause="v1" if gid else "empty",
        places=each.places,
    )
