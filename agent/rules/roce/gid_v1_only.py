"""roce-gid-v1-only."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce.ports import RocePort
from agent.rules.roce.wires import by_port
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_V2 = "RoCE v2"
_LINK_LOCAL = "fe80:"


@rule(
    "roce-gid-v1-only",
    "error",
    needs=("rdma|rdma_tools",),
    references=("roce-gid-v1-only",),
    absorbs=("roce-gid-index-wrong", "roce-no-ip"),
)
def roce_gid_v1_only(case: Case) -> Iterator[Answer]:
    """An active RoCE port has addresses of RoCE v1 only.

    ## What it checks
    The GID table of every active RoCE port of a rail or storage NIC.

    ## Why it matters
    RoCE v1 is a protocol of its own below IP: no router forwards it, no switch sees a DSCP in it. In a routed fabric
    0 % of it arrives, and NCCL ends with error 12; in a flat one it runs without its lossless class.

    ## How it is decided
    The table was read, has entries, and none of them is of type `RoCE v2`. Rails: error. Storage: warning. Where all
    entries are link-local (a flat network without addresses): info. Where every port has it: one finding for the node.

    ## What keeps it silent
    - A RoCE v2 entry of any address, link-local ones too: fabrics that are built on fe80 addresses are fine.
    - InfiniBand, EFA, iWARP and cloud NICs, software devices, ports that are not active or have no role: not
      applicable.
    - The table or the types could not be read, it is empty, or the interface is in another network namespace: unknown.

    ## How to confirm
    `show_gids`, or `grep . /sys/class/infiniband/DEVICE/ports/1/gid_attrs/types/*`

    ## How to fix
    Give the interface an address (`ip addr`); look for a driver or firmware setting that turns RoCE v2 off.

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`; NCCL `src/transport/net_ib/connect.cc` (choice of GID).
    """
    yield from by_port(case, _judge, "RoCE v1 addresses only")


def _judge(each: RocePort) -> Answer:
    gids = each.port.gids
    if any(gid.type == _V2 for gid in gids):
        return Pass(each.subject)
    if each.nic.state == "other_namespace":
        return Unknown(each.subject, "its interface is in another network namespace")
    if not each.port.gids_known:
        return Unknown(each.subject, "its GID table could not be read")
    if not gids:
        return Unknown(each.subject, "its GID table is empty: no interface of it is in this network namespace")
    if any(gid.type is None for gid in gids):
        return Unknown(each.subject, "the types of its GIDs could not be read")
    flat = all(gid.gid.lower().startswith(_LINK_LOCAL) for gid in gids)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{len(gids)} GIDs, all of RoCE v1" + (" and link-local" if flat else ""),
        impact="0 % of this traffic passes a router, and no switch puts it into the lossless class.",
        remedy="Give the interface an address; look for a driver or firmware setting that turns RoCE v2 off.",
        evidence=tuple(
            Evidence(
                what=f"GID {gid.index} of {each.label}",
                value=f"{gid.gid} {gid.type}",
                source=f"{each.folder}/gid_attrs/types/{gid.index}",
            )
            for gid in gids[:4]
        ),
        severity="info" if flat else each.severity("error"),
        cause="flat" if flat else "",
        places=each.places,
    )
