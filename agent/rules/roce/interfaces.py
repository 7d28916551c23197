"""Network interfaces of RoCE ports: presence and MTU."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import netdev_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev, Port
from agent.rules.context import RuleContext
from agent.rules.node_wide import on_all
from agent.rules.pages import read_limit
from agent.rules.roce.plain_ethernet import is_plain_ethernet
from agent.rules.roce.ports import ELSEWHERE, NOT_SHOWN, RocePort, is_virtual, roce_ports, visible_interface
from agent.rules.rule import NODE, Fail, NotApplicable, Pass, Result, rule, split_subjects
from agent.rules.wording import find_majority, join_labels


@rule("roce-netdev-missing")
def roce_netdev_missing(context: RuleContext) -> Iterator[Result]:
    ports, others = split_subjects(roce_ports(context, down=True))
    yield from others
    any_visible = any(port.netdev for port in ports)
    for port in ports:
        yield _judge_netdev_missing(context, port, any_visible)


def _judge_netdev_missing(context: RuleContext, roce_port: RocePort, any_visible: bool) -> Result:
    if roce_port.netdev is not None:
        return roce_port.passes()
    if context.software.rdma_namespaces == "exclusive" or context.node.container:
        return roce_port.not_applicable(
            "other-kind", detail="namespaces are separated here: other interfaces are not visible"
        )
    if not any_visible:
        return roce_port.unknown("not-shown", detail="no interface of any RoCE port is visible here")
    if not roce_port.port.gids_known:
        return roce_port.unknown("not-read", fact="its GID table")
    lost = not roce_port.port.gids
    where = "and no GID: nothing uses it" if lost else "and GIDs: it is in another network namespace"
    return roce_port.fail(
        summary=f"no interface on this host, {where}",
        impact="The port carries nothing until its interface is back."
        if lost
        else "Jobs on this host cannot use this rail, unless they run in the container that has its interface.",
        evidence=(
            Evidence(
                f"interfaces of {roce_port.label}",
                ", ".join(roce_port.port.netdevs) or "none",
                f"/sys/class/infiniband/{roce_port.nic.rdma_device or roce_port.nic.label}/device/net",
            ),
            Evidence("GIDs", str(len(roce_port.port.gids)), f"{roce_port.folder}/gids"),
        ),
        severity=roce_port.severity("warning") if lost else "info",
        cause="lost" if lost else "elsewhere",
    )


_HEADERS = 96  # GRH, UDP, BTH, XRC, AtomicETH and ICRC, as the kernel counts them
_IB_MTUS = (256, 512, 1024, 2048, 4096)
_WIRE_OVERHEAD = 82  # RoCEv2 over IPv4 with Ethernet framing: what a packet costs besides its payload


@rule("roce-mtu-small", each=roce_ports, merge=on_all("small packets on every RoCE port"))
def roce_mtu_small(context: RuleContext, roce_port: RocePort) -> Result:
    if context.virtual_machine or roce_port.nic.virtual_function:
        return roce_port.not_applicable("guest", detail="a virtual function or machine: the provider sets the MTU")
    if roce_port.nic.state == "other_namespace":
        return roce_port.unknown(ELSEWHERE)
    if roce_port.netdev is None and context.lists_whole and roce_port.port.active_mtu is not None:
        return _judge_port_alone(roce_port, roce_port.port.active_mtu)
    if roce_port.netdev is None:
        return roce_port.unknown(NOT_SHOWN)
    mtu = roce_port.netdev.mtu
    if mtu is None:
        return roce_port.unknown("not-read", fact="the MTU of its interface")
    active = _packet_size(roce_port.port, roce_port.netdev)
    if active >= _IB_MTUS[-1]:
        return roce_port.passes()
    netdev = roce_port.netdev
    tiny = active < _IB_MTUS[2]  # 1024, which an MTU of 1500 gives
    able = active_mtu(mtu)
    text = f"interface MTU {mtu} limits the RoCE MTU to {active}; set at least 4200 for 4096"
    if active < able:
        text = f"the RoCE MTU is {active}, although the interface MTU {mtu} allows {able}"
    row = _active_mtu(roce_port)
    plain = is_plain_ethernet(context)
    return Fail(
        subject=f"netdev:{netdev.id}",
        label=roce_port.label,
        summary=text,
        values=(("RAIL_MTU", _find_large_mtu(context)),),
        impact=_describe_payload(active),
        evidence=(
            _read_mtu(netdev),
            *((row,) if active < able else ()),
        ),
        severity="info" if plain else roce_port.severity("error" if tiny else "warning"),
        confidence="low" if plain else "high",
        cause="tiny" if tiny else "active" if active < able else "",
        ids=roce_port.ids | {netdev.id},
    )


def _find_large_mtu(context: RuleContext) -> str:
    """That of the rails which carry the largest packets; where none does, what is usual."""
    mtus = [port.netdev.mtu or 0 for port in roce_ports(context) if isinstance(port, RocePort) and port.netdev]
    large = [mtu for mtu in mtus if active_mtu(mtu) == _IB_MTUS[-1]]
    return str(find_majority(large) or max(large, default=_USUAL_MTU))


_USUAL_MTU = 9000


def _packet_size(port: Port, netdev: Netdev | None) -> int:
    """The InfiniBand MTU that a port uses: as it reports it, else as the kernel derives it from its interface; 0 where
    neither is known."""
    return port.active_mtu or active_mtu((netdev.mtu if netdev else None) or 0)


def active_mtu(mtu: int) -> int:
    """The InfiniBand MTU that the kernel derives from that of an interface, bytes; 0 where none fits.

    >>> active_mtu(1500), active_mtu(4192), active_mtu(4191), active_mtu(9000)
    (1024, 4096, 2048, 4096)
    """
    return max((size for size in _IB_MTUS if size <= mtu - _HEADERS), default=0)


_FRAMING = 18  # Ethernet header and checksum, which an interface's MTU does not count
_TOO_LARGE = ("rx_oversize_pkts_phy", "rx_out_of_range_len_phy", "rx_oversize_pkts_buffer")
_FRAMES = read_limit("roce-mtu-mismatch.frames")


@rule("roce-mtu-mismatch")
def roce_mtu_mismatch(context: RuleContext) -> Iterator[Result]:
    rails: list[RocePort] = []
    for port in roce_ports(context):
        if not isinstance(port, RocePort):
            yield port
            continue
        netdev = is_virtual(context, port) or visible_interface(port)
        if not isinstance(netdev, Netdev):
            yield netdev
        elif netdev.mtu is None:
            yield port.unknown("not-shown", detail=f"the MTU of {netdev.label} could not be read")
        else:
            yield _judge_mtu_mismatch(context, port, netdev)
        if port.nic.role == "rail" and not isinstance(netdev, NotApplicable) and _packet_size(port.port, port.netdev):
            rails.append(port)
    if len(rails) > 1:
        yield _merge_rails(rails)


def _judge_mtu_mismatch(context: RuleContext, roce_port: RocePort, netdev: Netdev) -> Result:
    mtu, peer_mtu = netdev.mtu or 0, netdev.neighbor.max_frame_bytes if netdev.neighbor else None
    evidence = (_read_mtu(netdev),)
    if peer_mtu and peer_mtu < mtu + _FRAMING:
        row = Evidence("largest frame of the switch port", str(peer_mtu), f"lldpctl {netdev.label}")
        summary = f"MTU {mtu} needs frames of {mtu + _FRAMING} bytes; the switch takes {peer_mtu}"
        return _fail_mtu_mismatch(roce_port, netdev, summary, (*evidence, row), "error", "switch")
    now = netdev_counters(netdev)
    moves = {name: context.counter_delta(f"netdev:{netdev.id}", name, now) for name in _TOO_LARGE if name in now}
    frames = sum(move or 0 for move in moves.values())
    if frames and frames >= context.threshold(_FRAMES):
        rows = (Evidence(name, f"+{move}", f"ethtool -S {netdev.label}") for name, move in moves.items() if move)
        summary = f"{frames} frames came in that are larger than MTU {mtu} allows"
        return _fail_mtu_mismatch(roce_port, netdev, summary, (*evidence, *rows), "warning", "peers")
    if peer_mtu is None and None in (*moves.values(), *([] if moves else [None])):
        return roce_port.not_applicable(
            "not-measured", detail="the switch reports no frame size, and there is no earlier sample of counters"
        )
    return roce_port.passes()


def _merge_rails(rails: list[RocePort]) -> Result:
    sizes = {port.subject: _packet_size(port.port, port.netdev) for port in rails}
    largest = max(sizes.values())
    small = [port for port in rails if sizes[port.subject] < largest]
    if not small:
        return NODE.passes()
    labels = [f"{port.label} {sizes[port.subject]}" for port in small]
    mtus = [port.netdev.mtu for port in rails if port.netdev and port.netdev.mtu]
    return NODE.fail(
        summary=f"rails send packets of different sizes: most bytes {largest}; {join_labels(labels)}",
        impact="Larger packets are dropped where programs do not agree on the smaller size.",
        evidence=tuple(
            _read_mtu(port.netdev) if port.netdev and port.netdev.mtu else _active_mtu(port) for port in rails
        ),
        severity="error",
        values=(("RAIL_MTU", str(max(mtus))),) if mtus else (),
        cause="rails",
        ids=frozenset().union(*(port.ids | {port.netdev.id if port.netdev else port.subject} for port in small)),
    )


def _read_mtu(netdev: Netdev) -> Evidence:
    return Evidence(f"MTU of {netdev.label}", str(netdev.mtu), f"/sys/class/net/{netdev.label}/mtu")


def _judge_port_alone(roce_port: RocePort, active: int) -> Result:
    """By the packets that the port states, where the source shows no interface (`ibv_devinfo` alone)."""
    if active >= _IB_MTUS[-1]:
        return roce_port.passes()
    return roce_port.fail(
        summary=f"packets of {active} bytes (active MTU), and 4096 are possible; the MTU of its interface decides",
        impact=_describe_payload(active),
        evidence=(_active_mtu(roce_port),),
        severity=roce_port.severity("error" if active < _IB_MTUS[2] else "warning"),
        cause="tiny" if active < _IB_MTUS[2] else "active",
        ids=roce_port.ids,
    )


def _describe_payload(active: int) -> str:
    payload = 100 * active / (active + _WIRE_OVERHEAD)
    return f"{payload:.1f}% of the bytes are payload, not 98.0%, in {4096 // max(active, 256)} times the packets."


def _active_mtu(port: RocePort) -> Evidence:
    value, source = str(port.port.active_mtu), f"ibv_devinfo -d {port.nic.label}"
    return Evidence(f"active MTU of {port.label}", value, source)


def _fail_mtu_mismatch(
    roce_port: RocePort, netdev: Netdev, summary: str, evidence: tuple[Evidence, ...], severity: str, cause: str
) -> Fail:
    return roce_port.fail(
        summary=summary,
        impact="Larger frames are dropped: large messages hang for 7 retries of 4.3 s (NCCL's default), "
        "small ones pass.",
        evidence=evidence,
        severity=roce_port.severity(severity),
        cause=cause,
        ids=roce_port.ids | {netdev.id},
    )


@rule("rails-one-subnet")
def rails_one_subnet(context: RuleContext) -> Iterator[Result]:
    subnets: dict[str, list[tuple[RocePort, Netdev]]] = {}
    for port in roce_ports(context):
        if not isinstance(port, RocePort):
            yield port
            continue
        netdev = is_virtual(context, port) or visible_interface(port)
        if not isinstance(netdev, Netdev):
            yield netdev
        elif port.nic.role != "rail":
            yield port.not_applicable("other-kind", detail=f"role {port.nic.role}: not a rail")
        else:
            networks = {subnet for address in netdev.addresses if (subnet := find_subnet(address))}
            for subnet in networks:
                subnets.setdefault(subnet, []).append((port, netdev))
            if not networks:
                yield port.passes()
    for subnet, rails in sorted(subnets.items()):
        yield _judge_subnet(subnet, rails)


def find_subnet(address: str) -> str | None:
    """The IPv4 network of an interface's address; None for another kind, and for one that holds two hosts at most.

    >>> find_subnet("10.1.2.3/16"), find_subnet("10.1.2.3/31"), find_subnet("fe80::1/64"), find_subnet("10.1.2.3")
    ('10.1.0.0/16', None, None, None)
    """
    host, _, length = address.partition("/")
    parts = host.split(".")
    if len(parts) != 4 or not length.isdecimal() or not all(part.isdecimal() and len(part) < 4 for part in parts):
        return None
    bits = int(length[:3])
    if not 0 < bits < 31:
        return None
    number = sum((int(part) & 255) << shift for part, shift in zip(parts, (24, 16, 8, 0), strict=True))
    number &= -1 << (32 - bits)
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0)) + f"/{bits}"


def _judge_subnet(subnet: str, rails: list[tuple[RocePort, Netdev]]) -> Result:
    if len({netdev.id for _, netdev in rails}) < 2:
        return Pass(f"netdev:{rails[0][1].id}")
    if any("arp_ignore" not in netdev.arp or "arp_filter" not in netdev.arp for _, netdev in rails):
        return NODE.unknown(
            "not-shown", detail=f"{len(rails)} rails are in {subnet}, and how the kernel answers ARP could not be read"
        )
    loose = [
        (roce_port, netdev)
        for roce_port, netdev in rails
        if not netdev.arp["arp_ignore"] and not netdev.arp["arp_filter"]
    ]
    if not loose:
        return NODE.passes()
    return NODE.fail(
        summary=f"{len(rails)} rails are in one subnet, {subnet}, and answer ARP for each other: "
        + join_labels([roce_port.label for roce_port, _ in loose]),
        impact="Peers may send the traffic of one rail to another: it is dropped, or two rails share one link.",
        evidence=tuple(
            Evidence(
                f"{', '.join(netdev.addresses[:2])} on {netdev.label}",
                ", ".join(f"{name}={value}" for name, value in netdev.arp.items()),
                f"/proc/sys/net/ipv4/conf/{netdev.label}",
            )
            for _, netdev in rails[:16]
        ),
        cause=subnet,
        ids=frozenset().union(*(roce_port.ids | {netdev.id} for roce_port, netdev in loose)),
    )
