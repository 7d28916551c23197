"""roce-no-ip."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.folding import as_one
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.roce.wires import shown
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_LINK_LOCAL = "fe80:"


@rule("roce-no-ip", "warning", needs=("rdma|rdma_tools", "netdev"), references=("roce-no-ip",))
def roce_no_ip(case: Case) -> Iterator[Answer]:
    """An active RoCE port has no address but link-local ones.

    ## What it checks
    The GID table of every active RoCE port of a rail or storage NIC: one entry must come of an IPv4 or a global IPv6
    address.

    ## Why it matters
    NCCL then takes GID 0, which is link-local: no router forwards it, so 0 % of this rail's traffic leaves its subnet,
    and connections to rails that have addresses fail after 7 retries of 4.3 s.

    ## How it is decided
    The table was read and has entries, and all are link-local (fe80::). Some ports: a warning on rails, info on storage
    NICs. All ports: one info for the node, for there are fabrics that are built on link-local addresses. Where there is
    no entry of RoCE v2, roce-gid-v1-only stands for this one.

    ## What keeps it silent
    - An address on a VLAN of the interface.
    - Ports that are not active or have no role; EFA, iWARP and cloud NICs; software devices: not applicable.
    - The interface is in another network namespace, or the table could not be read or is empty: unknown.

    ## How to confirm
    `ip addr show INTERFACE`; `show_gids DEVICE`

    ## How to fix
    Give the interface its address (netplan, NetworkManager, the network operator's IP pool), and look why it lost it.

    ## Source
    NCCL `src/transport/net_ib/connect.cc` (choice of GID); Linux `drivers/infiniband/core/roce_gid_mgmt.c`.
    """
    faults: list[Fail] = []
    passed = 0
    for each in roce_ports(case):
        answer = _judge(each) if isinstance(each, RocePort) else each
        passed += isinstance(answer, Pass)
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    if passed:
        yield from faults
    else:
        design = [fault._replace(severity="info", confidence="low", cause="all") for fault in faults]
        yield from as_one(design, len(design), "link-local addresses only on every RoCE port")


def _judge(each: RocePort) -> Answer:
    gids = each.port.gids
    if any(not gid.gid.lower().startswith(_LINK_LOCAL) for gid in gids):
        return Pass(each.subject)
    netdev = shown(each)
    if not isinstance(netdev, Netdev):
        return netdev
    if not each.port.gids_known or not gids:
        return Unknown(each.subject, "its GID table could not be read, or is empty")
    source = f"ip addr show {netdev.label}"
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{len(gids)} GIDs, all link-local: {netdev.label} has no IPv4 and no global IPv6 address",
        impact="0 % of this rail's traffic leaves its subnet; connections to rails with addresses fail.",
        remedy=f"Give {netdev.label} its address, and look why it lost it.",
        evidence=(
            Evidence(what=f"addresses of {netdev.label}", value=", ".join(netdev.addresses) or "none", source=source),
            *(
                Evidence(
                    what=f"GID {gid.index} of {each.label}", value=gid.gid, source=f"{each.folder}/gids/{gid.index}"
                )
                for gid in gids[:4]
            ),
        ),
        severity=each.severity("warning"),
        places=each.places | {netdev.id},
    )
