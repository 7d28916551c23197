"""Network interfaces of RoCE ports: presence and MTU."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import netdev_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.context import RuleContext
from agent.rules.pages import read_limit
from agent.rules.roce.ports import RocePort, for_each_port, is_virtual, roce_ports, visible_interface
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels


@rule("roce-netdev-missing")
def roce_netdev_missing(case: RuleContext) -> Iterator[Result]:
    ports: list[RocePort] = []
    for each in roce_ports(case, down=True):
        if isinstance(each, RocePort):
            ports.append(each)
        else:
            yield each
    shown = any(each.netdev for each in ports)
    for each in ports:
        yield _judge_netdev_missing(case, each, shown)


def _judge_netdev_missing(case: RuleContext, each: RocePort, shown: bool) -> Result:
    if each.netdev is not None:
        return Pass(each.subject)
    if case.software.rdma_namespaces == "exclusive" or case.node.container:
        return NotApplicable(each.subject, "namespaces are separated here: other interfaces are not to be seen")
    if not shown:
        return Unknown(each.subject, "no interface of any RoCE port is visible here")
    if not each.port.gids_known:
        return Unknown(each.subject, "its GID table could not be read")
    lost = not each.port.gids
    where = "and no GID: nothing uses it" if lost else "and GIDs: it is in another network namespace"
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"no interface on this host, {where}",
        impact="The port carries nothing until its interface is back."
        if lost
        else "Jobs on this host cannot use this rail, unless they run in the container that has its interface.",
        remedy="ip netns exec NAMESPACE ip link set INTERFACE netns 1; where nothing uses it, rebind the function.",
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


_HEADERS = 96  # GRH, UDP, BTH, XRC, AtomicETH and ICRC, as the kernel counts them
_IB_MTUS = (256, 512, 1024, 2048, 4096)
_WIRE_OVERHEAD = 82  # RoCEv2 over IPv4 with Ethernet framing: what a packet costs besides its payload


@rule("roce-mtu-small")
def roce_mtu_small(case: RuleContext) -> Iterator[Result]:
    yield from for_each_port(case, lambda each: _judge_mtu_small(case, each), "small packets")


def _judge_mtu_small(case: RuleContext, each: RocePort) -> Result:
    if case.virtual_machine or each.nic.virtual_function:
        return NotApplicable(each.subject, "a virtual function or machine: the provider sets the MTU")
    if each.nic.state == "other_namespace":
        return Unknown(each.subject, "its interface is in another network namespace")
    if each.netdev is None:
        return Unknown(
            each.subject, "no interface of it is visible here: in another network namespace, or not in this source"
        )
    mtu = each.netdev.mtu
    if mtu is None:
        return Unknown(each.subject, "the MTU of its interface could not be read")
    active = active_mtu(mtu)
    return Pass(each.subject) if active >= _IB_MTUS[-1] else _fail_mtu_small(each, each.netdev, mtu, active)


def active_mtu(mtu: int) -> int:
    """The InfiniBand MTU that the kernel derives from that of an interface, bytes; 0 where none fits.

    >>> active_mtu(1500), active_mtu(4192), active_mtu(4191), active_mtu(9000)
    (1024, 4096, 2048, 4096)
    """
    return max((size for size in _IB_MTUS if size <= mtu - _HEADERS), default=0)


def _fail_mtu_small(each: RocePort, netdev: Netdev, mtu: int, active: int) -> Fail:
    tiny = active < _IB_MTUS[2]  # 1024, which an MTU of 1500 gives
    payload = 100 * active / (active + _WIRE_OVERHEAD)
    return Fail(
        subject=f"netdev:{netdev.id}",
        label=each.label,
        summary=f"interface MTU {mtu} limits the RoCE MTU to {active}; set at least 4200 for 4096",
        impact=f"{payload:.1f}% of the wire are payload, not 98.0%, in {4096 // max(active, 256)} times the packets.",
        remedy="ip link set INTERFACE mtu 9000 (or 4200) on all nodes, with the switches at 9216.",
        evidence=(
            Evidence(what=f"MTU of {netdev.label}", value=str(mtu), source=f"/sys/class/net/{netdev.label}/mtu"),
        ),
        severity=each.severity("error" if tiny else "warning"),
        cause="tiny" if tiny else "",
        places=each.places | {netdev.id},
    )


_FRAMING = 18  # Ethernet header and checksum, which an interface's MTU does not count
_TOO_LARGE = ("rx_oversize_pkts_phy", "rx_out_of_range_len_phy", "rx_oversize_pkts_buffer")
_FRAMES = read_limit("roce-mtu-mismatch.frames")


@rule("roce-mtu-mismatch")
def roce_mtu_mismatch(case: RuleContext) -> Iterator[Result]:
    rails: list[tuple[RocePort, Netdev]] = []
    for each in roce_ports(case):
        if not isinstance(each, RocePort):
            yield each
            continue
        netdev = is_virtual(case, each) or visible_interface(each)
        if not isinstance(netdev, Netdev):
            yield netdev
        elif netdev.mtu is None:
            yield Unknown(each.subject, f"the MTU of {netdev.label} could not be read")
        else:
            yield _judge_mtu_mismatch(case, each, netdev)
            rails += [(each, netdev)] if each.nic.role == "rail" else []
    if len(rails) > 1:
        yield _merge_rails(rails)


def _judge_mtu_mismatch(case: RuleContext, each: RocePort, netdev: Netdev) -> Result:
    mtu, told = netdev.mtu or 0, netdev.neighbor.max_frame_bytes if netdev.neighbor else None
    evidence = (_read_mtu(netdev),)
    if told and told < mtu + _FRAMING:
        row = Evidence(what="largest frame of the switch port", value=str(told), source=f"lldpctl {netdev.label}")
        summary = f"MTU {mtu} needs frames of {mtu + _FRAMING} bytes; the switch takes {told}"
        return _fail_mtu_mismatch(each, netdev, summary, (*evidence, row), "error", "switch")
    now = netdev_counters(netdev)
    moves = {name: case.moved(f"netdev:{netdev.id}", name, now) for name in _TOO_LARGE if name in now}
    frames = sum(move or 0 for move in moves.values())
    if frames and frames >= case.threshold(_FRAMES):
        rows = (
            Evidence(what=name, value=f"+{move}", source=f"ethtool -S {netdev.label}")
            for name, move in moves.items()
            if move
        )
        summary = f"{frames} frames came in that are larger than MTU {mtu} allows"
        return _fail_mtu_mismatch(each, netdev, summary, (*evidence, *rows), "warning", "peers")
    if told is None and None in (*moves.values(), *([] if moves else [None])):
        return NotApplicable(
            each.subject, "the switch reports no frame size, and there is no earlier sample of counters"
        )
    return Pass(each.subject)


def _merge_rails(rails: list[tuple[RocePort, Netdev]]) -> Result:
    sizes = {each.subject: active_mtu(netdev.mtu or 0) for each, netdev in rails}
    largest = max(sizes.values())
    small = [(each, netdev) for each, netdev in rails if sizes[each.subject] < largest]
    if not small:
        return Pass("node")
    labels = [f"{each.label} {sizes[each.subject]}" for each, _ in small]
    return Fail(
        subject="node",
        label="node",
        summary=f"rails send packets of different sizes: most bytes {largest}; {join_labels(labels)}",
        impact="Larger packets are dropped where programs do not agree on the smaller size.",
        remedy="One MTU on all rails: ip link set INTERFACE mtu 9000, with the switches at 9216.",
        evidence=tuple(_read_mtu(netdev) for _, netdev in rails),
        severity="error",
        cause="rails",
        places=frozenset().union(*(each.places | {netdev.id} for each, netdev in small)),
    )


def _read_mtu(netdev: Netdev) -> Evidence:
    return Evidence(what=f"MTU of {netdev.label}", value=str(netdev.mtu), source=f"/sys/class/net/{netdev.label}/mtu")


def _fail_mtu_mismatch(
    each: RocePort, netdev: Netdev, summary: str, evidence: tuple[Evidence, ...], severity: str, cause: str
) -> Fail:
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=summary,
        impact="Larger frames are dropped: large messages hang for 7 retries of 4.3 s (NCCL's default), "
        "small ones pass.",
        remedy="One MTU on all rails and nodes, and 9216 on the switches.",
        evidence=evidence,
        severity=each.severity(severity),
        cause=cause,
        places=each.places | {netdev.id},
    )
