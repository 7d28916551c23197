"""roce-nccl-gid-default-old."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.settings import effective, files_unread, jobs_unread
from agent.rules.nccl.users import mapped
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_IB_GID_INDEX"
_CHOOSES = (2, 21)


@rule(
    "roce-nccl-gid-default-old", "warning", needs=("nccl", "rdma|rdma_tools"), references=("roce-nccl-gid-default-old",)
)
def roce_nccl_gid_default_old(case: Case) -> Iterator[Answer]:
    """Running jobs use an NCCL that takes the first GID, which is one of RoCE v1.

    ## What it checks
    The version of every `libnccl` that a running job has mapped, on nodes with RoCE rails.

    ## Why it matters
    Before 2.21 NCCL took GID 0 where it was not told otherwise: link-local and of RoCE v1, of which 0 % passes a router
    and none is in a lossless class.

    ## How it is decided
    A job has an NCCL below 2.21 mapped, `NCCL_IB_GID_INDEX` is set neither in a file nor in a job, and GID 0 of a RoCE
    rail is not of RoCE v2. One finding for the node.

    ## What keeps it silent
    - Libraries that are installed and that no job uses: frameworks bring their own. Not applicable.
    - No active RoCE rail: not applicable. Every GID 0 is of RoCE v2: passes.
    - The version does not stand in the library's name, or environments or files could not be read: unknown.

    ## How to confirm
    `grep libnccl /proc/PID/maps`; `cat /sys/class/infiniband/DEVICE/ports/1/gid_attrs/types/0`

    ## How to fix
    Use NCCL 2.21 or later; or set `NCCL_IB_GID_INDEX` to an index of RoCE v2.

    ## Source
    NCCL, tags v2.20.3-1 and v2.21.5-1, `src/transport/net_ib.cc`.
    """
    rails = [each for each in roce_ports(case) if isinstance(each, RocePort) and each.nic.role == "rail"]
    if not rails:
        why = case.probe_failure("rdma|rdma_tools")
        yield Unknown("node", why) if why and case.topology.nics else NotApplicable("node", "no active RoCE rail")
        return
    used = mapped(case, "libnccl.so")
    old = [row for row in used if row.version and _version(row.version) < _CHOOSES]
    nameless = [row for row in used if not row.version]
    unread = files_unread(case) or jobs_unread(case)
    if effective(case, _KEY):
        yield Pass("node")
    elif unread:
        yield Unknown("node", unread)
    elif not old:
        why = f"the version of {nameless[0].path} is not known" if nameless else None
        silent = Pass("node") if used else NotApplicable("node", "no running job uses NCCL")
        yield Unknown("node", why) if why else silent
    else:
        yield from _judge(rails, [(row.path, row.version or "") for row in old])


def _judge(rails: list[RocePort], old: list[tuple[str, str]]) -> Iterator[Answer]:
    firsts = [(each, next((gid for gid in each.port.gids if gid.index == 0), None)) for each in rails]
    wrong = [(each, gid) for each, gid in firsts if gid and gid.type == "IB/RoCE v1"]
    if not wrong:
        known = all(each.port.gids_known and gid and gid.type for each, gid in firsts)
        yield Pass("node") if known else Unknown("node", "GID 0 of a RoCE rail could not be read")
        return
    path, version = old[0]
    yield Fail(
        subject="node",
        label="node",
        summary=f"jobs use NCCL {version} without {_KEY}: it takes GID 0, of RoCE v1",
        impact="0 % of this traffic passes a router, and none has a lossless class.",
        remedy=f"Use NCCL 2.21 or later, or set {_KEY} to an index of RoCE v2.",
        evidence=(
            Evidence(what="libnccl", value=f"{path} ({version})", source="/proc/*/maps"),
            *(
                Evidence(
                    what=f"GID 0 of {each.label}",
                    value=f"{gid.gid} {gid.type}",
                    source=f"{each.folder}/gid_attrs/types/0",
                )
                for each, gid in wrong[:4]
                if gid
            ),
        ),
        places=frozenset().union(*(each.places for each, _ in wrong)),
    )


def _version(text: str) -> tuple[int, ...]:
    """Numbers of a version.

    >>> _version("2.20.5") < (2, 21) <= _version("2.21.5")
    True
    """
    return tuple(int(part) for part in re.findall(r"[0-9]{1,6}", text))
