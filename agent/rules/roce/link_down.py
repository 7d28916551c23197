"""roce-link-down."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.cabling import Socket, all_dark, board_of, not_meant, position_of, settling, whole_node
from agent.rules.case import Case
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.roce.wires import shown
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_CABLED = ("LinkUp", "PortConfigurationTraining", "LinkErrorRecovery")
_NO_MODULE = "EIO"  # what the driver says of a cage that is empty

_SET_UP = "set down: ip link set INTERFACE up"


@rule(
    "roce-link-down",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-link-down",),
    absorbs=("roce-lag-broken", "gdr-nic-gpu-ratio"),
)
def roce_link_down(case: Case) -> Iterator[Answer]:
    """A RoCE port that should carry traffic is not active.

    ## What it checks
    The state of every RoCE port of a rail or storage NIC, and what its interface and module say of the reason.

    ## Why it matters
    NCCL uses active ports only, and says nothing: with one of eight rails down the node loses 1/8 of its injection
    bandwidth (50 of 400 GB/s at 400 Gb/s), and its GPU reaches the others' rails over slower paths.

    ## How it is decided
    As with ib-port-down: the port is not ACTIVE four minutes after boot, and a port of another NIC with the same role
    and position (for storage: the same board, too) is active. Rails: error. Storage: warning. No port of several rails
    active: critical, one finding for the node. The interface and the module tell why: set down by an administrator, no
    module in the cage, no light, or a link that does not come up.

    ## What keeps it silent
    - Ports of NICs that are no rail and no storage NIC, of software devices and of functions that a fabric manager
      owns, and virtual functions beside their physical one: not applicable.
    - All ports in its position are down, while others of its role are active; or its card has as many active ports as
      most cards of its board: not cabled, not applicable.
    - A single rail, or storage ports, where no port of that role is active: not cabled, or the fabric is down; unknown.
    - The first four minutes after boot, a state that could not be read, ports that are down where nothing says which
      NICs are rails, and a port whose interface is not in sight (see roce-netdev-missing): unknown.

    ## How to confirm
    `rdma link show`, `ip link show INTERFACE`, `ethtool -m INTERFACE`; `mlxlink -d DEVICE`

    ## How to fix
    Set down: `ip link set INTERFACE up`. No module, no light: plug, clean or replace cable and module; look at the
    switch port (breakout, FEC, speed). All rails: look at the leaf switches.

    ## Source
    NCCL `src/transport/net_ib/init.cc` (active ports only); Linux mlx5 `mlx5_query_port_roce`; gpud (4 minutes).
    """
    doubtful = {nic.id for nic in case.maybe_rails} if case.no_rail_known else set()
    down = {
        f"port:{nic.id}/{port.port}": port.state
        for nic in case.topology.nics
        for port in nic.ports
        if nic.id in doubtful and port.link_layer == "Ethernet" and port.state not in ("ACTIVE", None)
    }
    ports: list[RocePort] = []
    for each in roce_ports(case, down=True):
        if isinstance(each, RocePort):
            ports.append(each)
        elif isinstance(each, NotApplicable) and each.subject in down:
            yield Unknown(each.subject, f"{down[each.subject]}; {case.no_rail_known}")
        else:
            yield each
    for role in ("rail", "storage"):
        yield from _of_role(case, [each for each in ports if each.nic.role == role])


def _of_role(case: Case, ports: list[RocePort]) -> Iterator[Answer]:
    sockets = [_socket(case, each) for each in ports]
    answers = [_judge(case, each, socket, sockets) for each, socket in zip(ports, sockets, strict=True)]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    yield from [whole_node(faults, "RoCE", _SET_UP)] if all_dark(sockets) and len(faults) == len(ports) else faults


def _socket(case: Case, each: RocePort) -> Socket:
    plugged = each.port.phys_state in _CABLED
    board, position = board_of(case, each.nic), position_of(each.nic, each.port.port)
    return Socket(each.subject, each.nic, each.port.state == "ACTIVE", plugged, board, position)


def _judge(case: Case, each: RocePort, socket: Socket, sockets: list[Socket]) -> Answer:
    state = each.port.state or ""
    if socket.active:
        return Pass(each.subject)
    waiting = settling(case)
    if waiting:
        return Unknown(each.subject, f"{state}; {waiting}")
    netdev = not_meant(socket, sockets, state) or shown(each)
    if not isinstance(netdev, Netdev):
        return netdev
    cause, why = _why(netdev)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"{state}: {why}",
        impact=_impact(case, each),
        remedy="Set down: ip link set INTERFACE up. Else cable, module, switch port; mlxlink -d DEVICE tells more.",
        evidence=(
            Evidence(what=f"state of {each.label}", value=state, source=f"{each.folder}/state"),
            *_evidence(netdev),
        ),
        severity=each.severity("error"),
        cause=cause,
        places=each.places | {netdev.id},
    )


def _why(netdev: Netdev) -> tuple[str, str]:
    """A word for the fingerprint, and the reason in words."""
    module = netdev.module
    dark = [lane.lane for lane in module.lanes if "rx_los" in lane.flags] if module else []
    if netdev.admin_up is False:
        return "set down", f"{netdev.label} is set down"
    if (netdev.module_reason or "").startswith(_NO_MODULE):
        return "no module", f"no module answers in the cage of {netdev.label}"
    if dark and module and len(dark) == len(module.lanes):
        return "no light", f"no light comes in on any lane of {netdev.label}"
    if dark:
        return "no light", f"no light comes in on lane {', '.join(map(str, dark))} of {netdev.label}"
    return "", f"{netdev.label} has no carrier"


def _evidence(netdev: Netdev) -> Iterator[Evidence]:
    folder = f"/sys/class/net/{netdev.label}"
    yield Evidence(what=f"state of {netdev.label}", value=netdev.operstate or "not known", source=f"{folder}/operstate")
    if netdev.admin_up is not None:
        said = "up" if netdev.admin_up else "down"
        yield Evidence(what=f"{netdev.label} is set", value=said, source=f"{folder}/flags")
    module = netdev.module
    if module:
        value = " ".join(filter(None, (module.identifier, module.vendor, module.part, module.serial, module.state)))
        yield Evidence(what=f"module of {netdev.label}", value=value, source=f"ethtool -m {netdev.label}")
    elif netdev.module_reason:
        yield Evidence(
            what=f"module of {netdev.label}", value=netdev.module_reason, source=f"ethtool -m {netdev.label}"
        )


def _impact(case: Case, each: RocePort) -> str:
    rails = len(case.rails)
    if each.nic.role == "rail" and rails > 1:
        return f"1 of {rails} rails: this node injects {100 / rails:.0f} % less, and NCCL leaves the rail out silently."
    return "100 % of what this port carries; NCCL leaves ports that are not active out silently."
