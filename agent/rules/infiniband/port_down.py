"""ib-port-down."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.cabling import Socket, all_dark, not_meant, settling, whole_node
from agent.rules.case import Case
from agent.rules.devices import by_role
from agent.rules.infiniband.ports import EXPECTED, IbPort, ib_ports
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_CABLED = ("LinkUp", "PortConfigurationTraining", "LinkErrorRecovery")
_MEANING = {
    "Polling": "no signal from the other end: cable, module or switch port",
    "Disabled": "disabled by an administrator, the subnet manager or firmware",
    "PortConfigurationTraining": "trains again and again: a bad cable or module",
    "LinkErrorRecovery": "recovers from errors again and again: a bad cable or module",
    "LinkUp": "the wire is up, the port is not",
}

_SET_UP = "Disabled: enable the ports (ibportstate)"


@rule(
    "ib-port-down",
    "error",
    needs=("rdma|rdma_tools",),
    references=("ib-port-down",),
    essential=True,
    absorbs=("gdr-nic-gpu-ratio",),
)
def ib_port_down(case: Case) -> Iterator[Answer]:
    """An InfiniBand port that should carry traffic is not active.

    ## What it checks
    The state of every InfiniBand port of a rail or storage NIC.

    ## Why it matters
    NCCL uses active ports only, and says nothing: with one of eight rails down the node loses 1/8 of its injection
    bandwidth (50 of 400 GB/s at NDR), and that rail breaks for every job.

    ## How it is decided
    The port is not ACTIVE four minutes after boot, and it is meant to be: a port of another NIC with the same role and
    position (for storage: the same board, too) is active, or its physical state shows that something is plugged
    (training, error recovery, link up). Rails: error. Storage: warning. No port of several rails active: critical, one
    finding for the node.

    ## What keeps it silent
    - Ports of NICs that are no rail and no storage NIC, of functions that a fabric manager owns ("mezz internal"
      ConnectX-7 of HGX B200 and B300), of software devices, and virtual functions beside their physical one: not
      applicable. So are nodes without InfiniBand.
    - A port without signal where all ports in its position are (the second ports of all cards), while others of its
      role are active: not cabled, not applicable.
    - A port without signal on a card that has as many active ports as most cards of its board: which of two ports is
      cabled is the builder's choice, not applicable.
    - A single rail, or storage ports, without signal where no port of that role is active: not cabled, or the fabric is
      down; this node cannot tell, so it is unknown.
    - The first four minutes after boot, a state that could not be read, and ports that are down where nothing says
      which NICs are rails (as outputs of RDMA tools alone do not): unknown.
    - The link is up and no subnet manager came: ib-no-sm is the cause and stands for this one.

    ## How to confirm
    `ibstat` or `cat /sys/class/infiniband/*/ports/*/{state,phys_state}`

    ## How to fix
    Polling: reseat or replace cable and module, look at the switch port. Disabled: `ibportstate -D 0 1 enable`, or
    enable it at the switch. Training or recovery: clean or replace the cable.

    ## Source
    Linux `drivers/infiniband/core/sysfs.c`; NCCL `src/transport/net_ib/init.cc`; gpud (4 minutes).
    """
    ports: list[IbPort] = []
    for each in ib_ports(case):
        if isinstance(each, IbPort):
            ports.append(each)
        else:
            yield each
    for role in EXPECTED:
        yield from _of_role(case, [each for each in ports if each.nic.role == role])


def _of_role(case: Case, ports: list[IbPort]) -> Iterator[Answer]:
    sockets = [_socket(each) for each in ports]
    answers = [_judge(case, each, socket, sockets) for each, socket in zip(ports, sockets, strict=True)]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    yield from (
        [whole_node(faults, "InfiniBand", _SET_UP)] if all_dark(sockets) and len(faults) == len(ports) else faults
    )


def _socket(each: IbPort) -> Socket:
    plugged = each.port.phys_state in _CABLED
    return Socket(each.subject, each.nic, each.port.state == "ACTIVE", plugged, each.board, each.position)


def _judge(case: Case, each: IbPort, socket: Socket, sockets: list[Socket]) -> Answer:
    port = each.port
    if socket.active:
        return Pass(each.subject)
    waiting = settling(case)
    if waiting:
        return Unknown(each.subject, f"{port.state}; {waiting}")
    silent = not_meant(socket, sockets, port.state or "")
    if silent:
        return silent
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{port.state}, physical state {port.phys_state or 'not known'}: "
        + _MEANING.get(port.phys_state or "", "not in use"),
        impact=_impact(case, each),
        remedy="Polling: cable, module, switch port. Disabled: enable it (ibportstate). Training: replace the cable.",
        evidence=(
            each.evidence("state", port.state or "", "state"),
            each.evidence("physical state", port.phys_state or "not known", "phys_state"),
        ),
        severity=by_role("error", each.nic),
        places=each.places,
    )


def _impact(case: Case, each: IbPort) -> str:
    rails = len(case.rails)
    if each.nic.role == "rail" and rails > 1:
        return f"1 of {rails} rails: this node injects {100 / rails:.0f} % less, and NCCL leaves the rail out silently."
    return "100 % of what this port carries; NCCL leaves ports that are not active out silently."
