"""gdr-nccl-socket-ifname."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import lowered
from agent.rules.nccl.hcas import NODE, no_gpus, wanted
from agent.rules.nccl.settings import Effective, effective, files_unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_KEY = "NCCL_SOCKET_IFNAME"
_INSIDE = (
    "lo",
    "docker",
    "virbr",
    "veth",
    "br-",
    "cni",
    "flannel",
    "cali",
    "podman",
    "lxcbr",
    "lxdbr",
    "tunl",
    "dummy",
)


@rule("gdr-nccl-socket-ifname", "warning", needs=("nccl", "netdev"), references=("gdr-nccl-socket-ifname",))
def gdr_nccl_socket_ifname(case: Case) -> Iterator[Answer]:
    """NCCL_SOCKET_IFNAME selects no interface that reaches other nodes.

    ## What it checks
    Every value of `NCCL_SOCKET_IFNAME` that is in force, against the interfaces of this node.

    ## Why it matters
    NCCL's processes find each other over these interfaces before anything else: where none is found, or one that ends
    inside the node, 100 % of jobs over several nodes stop at their start ("no socket interface found"), or hang.

    ## How it is decided
    The list (names are prefixes, "=" whole names, "^" all others) takes no interface that is up, or only such as lead
    nowhere: loopback, bridges of Docker, libvirt and Kubernetes. In a running job only: info, for it may be in a
    network of its own.

    ## What keeps it silent
    - It is not set: NCCL looks for itself, and leaves out `lo` and `docker`. Not applicable.
    - An interface whose state is not known counts as up.
    - No GPU: not applicable. Interfaces or NCCL's files could not be read: unknown.

    ## How to confirm
    `ip -br addr`; `NCCL_DEBUG=INFO` prints "NET/Socket : Using".

    ## How to fix
    Name the interface of the front-end network in full: `NCCL_SOCKET_IFNAME==bond0`.

    ## Source
    NCCL `src/misc/socket.cc` (ncclFindInterfaces).
    """
    yield from (silent := list(no_gpus(case)))
    if silent:
        return
    values = effective(case, _KEY)
    why = files_unread(case) or case.probe_failure("netdev|ip_link")
    if why:
        yield Unknown("node", why)
    elif not values:
        yield NotApplicable("node", f"{_KEY} is not set: NCCL looks for itself")
    else:
        faults = [fault for where in values if (fault := _judge(case, where))]
        yield from {fault.cause: fault for fault in reversed(faults)}.values()
        if not faults:
            yield Pass("node")


def _judge(case: Case, where: Effective) -> Fail | None:
    chosen = wanted(where.value)
    taken = [netdev for netdev in case.topology.netdevs if chosen.takes(netdev.label) and _is_up(netdev)]
    if any(not netdev.label.startswith(_INSIDE) for netdev in taken):
        return None
    names = [netdev.label for netdev in taken]
    what = f"takes only {named(names)}, which leads to no other node" if names else "takes no interface that is up"
    outside = _front_end(case)
    up = [netdev.label for netdev in case.topology.netdevs if _is_up(netdev)]
    return Fail(
        subject="node",
        label="node",
        summary=f"{_KEY}={where.value[:80]} in {where.source} {what}",
        impact="100 % of jobs over several nodes stop at their start, or hang.",
        remedy=f"Name the interface that reaches the other nodes, in full: {_KEY}=={outside or 'INTERFACE'}",
        evidence=(where.evidence(_KEY), Evidence(what="interfaces that are up", value=named(up), source="ip -br addr")),
        severity="warning" if where.persistent else lowered("warning"),
        cause="inside" if names else "none",
        places=NODE,
    )


def _front_end(case: Case) -> str | None:
    """The one interface that is up, has an address and is no rail's; None: a person must choose."""
    rails = {nic.id for nic in case.rails}
    could = [
        netdev.label
        for netdev in case.topology.netdevs
        if _is_up(netdev) and netdev.addresses and netdev.nic not in rails and not netdev.label.startswith(_INSIDE)
    ]
    return could[0] if len(could) == 1 else None


def _is_up(netdev: Netdev) -> bool:
    return netdev.operstate in ("up", "unknown", None)
