"""roce-netdev-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule(
    "roce-netdev-missing",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-netdev-missing",),
    absorbs=("roce-no-ip", "roce-gid-index-wrong"),
)
def roce_netdev_missing(case: Case) -> Iterator[Answer]:
    """A RoCE port has no network interface on this host.

    ## What it checks
    Whether the interface of every RoCE port of a rail or storage NIC is in the host's network namespace.

    ## Why it matters
    Addresses of RoCE come from the interface: without one the port has no GID and moves 0 bytes. An interface that went
    with a container and did not come back leaves such a port behind.

    ## How it is decided
    No interface is shown for the port, while those of other rails are. Its GID table was read and is empty: nobody has
    the interface, a warning on rails and info on storage NICs. The table has entries: a container has it, or it was
    left in a namespace that lives on: info.

    ## What keeps it silent
    - RDMA devices belong to namespaces of their own (`rdma system` says exclusive), or this scan runs in a container:
      not applicable; other interfaces are not to be seen there by design.
    - No interface of any RoCE port is here: a job has them all, or they were given to virtual machines; unknown.
    - Virtual functions beside their physical one, devices without a role, cloud NICs: not applicable.
    - The GID table could not be read: unknown.

    ## How to confirm
    `rdma link show`; `ls /sys/class/infiniband/DEVICE/device/net`; `lsns -t net`

    ## How to fix
    Give it back: `ip netns exec NAMESPACE ip link set INTERFACE netns 1`; where nobody has it, reload the driver or
    rebind the function.

    ## Source
    Linux `drivers/infiniband/core/roce_gid_mgmt.c` and rdma netlink (`RDMA_NLDEV_ATTR_NDEV_NAME`).
    """
    ports: list[RocePort] = []
    for each in roce_ports(case, down=True):
        if isinstance(each, RocePort):
            ports.append(each)
        else:
            yield each
    shown = any(each.netdev for each in ports)
    for each in ports:
        yield _judge(case, each, shown)


def _judge(case: Case, each: RocePort, shown: bool) -> Answer:
    if each.netdev is not None:
        return Pass(each.subject)
    if case.software.rdma_namespaces == "exclusive" or case.node.container:
        return NotApplicable(each.subject, "namespaces are separated here: other interfaces are not to be seen")
    if not shown:
        return Unknown(each.subject, "no interface of any RoCE port is visible here")
    if not each.port.gids_known:
        return Unknown(each.subject, "its GID table could not be read")
    lost = not each.port.gids
    where = "and no GID: nobody has it" if lost else "and GIDs: it is in another network namespace"
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"no interface on this host, {where}",
        impact="0 bytes move on this port until its interface is back."
        if lost
        else "jobs on this host have 0 bytes of this rail, unless they run in the container that has its interface.",
        remedy="ip netns exec NAMESPACE ip link set INTERFACE netns 1; where nobody has it, rebind the function.",
        evidence=(
            Evidence(
                what=f"interfaces of {each.label}",
                value=", ".join(each.port.netdevs) or "none",
                source=f"/sys/class/infiniband/{each.nic.rdma_device or each.nic.label}/device/net",
            ),
            Evidence(what="GIDs", value=str(len(each.port.gids)), source=f"{each.folder}/gids"),
        ),
        severity=each.severity("warning") if lost else "info",
        cause="lost" if lost else "elsewhere",
        places=each.places,
    )
