"""roce-mtu-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import netdev_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.roce.mtu_small import active_mtu
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.roce.wires import is_virtual, shown
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_FRAMING = 18  # Ethernet header and checksum, which an interface's MTU does not count
_TOO_LARGE = ("rx_oversize_pkts_phy", "rx_out_of_range_len_phy", "rx_oversize_pkts_buffer")
_FRAMES = Threshold(
    "roce-mtu-mismatch.frames", 10, "frames larger than the MTU in the window, below which nothing is said"
)


@rule(
    "roce-mtu-mismatch",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-mtu-mismatch",),
    thresholds=(_FRAMES,),
)
def roce_mtu_mismatch(case: Case) -> Iterator[Answer]:
    """A RoCE port has another MTU than the switch, the peers or the other rails.

    ## What it checks
    The packet size of RoCE on all active rails; for each port the largest frame that the switch announces by LLDP, and
    frames that came in larger than the MTU.

    ## Why it matters
    Frames that are larger than what the other end takes are dropped, 100 % of them and silently: small messages pass,
    large ones hang until 7 retries of 4.3 s are over. NCCL agrees on the smaller MTU of two ports; other programs do
    not.

    ## How it is decided
    Error: the switch takes frames of fewer bytes than the MTU and 18 of Ethernet. Error, one finding for the node: two
    rails derive packets of different sizes (1024, 2048, 4096) from their MTUs. Warning: ten frames or more came in that
    were too large in the window: peers have a larger MTU. Storage NICs one step lower. A rail whose MTU is small has
    roce-mtu-small, which stands for this one.

    ## What keeps it silent
    - MTUs that differ and give the same packet size (4220 and 9000). VLANs above an interface may have a smaller MTU.
    - Virtual functions and machines, whose MTU the provider sets; ports that are not active or have no role; cloud
      NICs: not applicable. So is a port of which the switch tells nothing, on the first run.
    - The interface is in another network namespace, or its MTU could not be read: unknown.

    ## How to confirm
    `ip link show INTERFACE`; `lldpctl INTERFACE`; `ethtool -S INTERFACE | grep -E 'oversize|out_of_range'`, twice

    ## How to fix
    One MTU on all rails and nodes (`ip link set INTERFACE mtu 9000`), and 9216 on the switches.

    ## Source
    Linux mlx5 `counters.rst`; IEEE 802.3 clause 79 (maximum frame size TLV); NCCL issue 759.
    """
    rails: list[tuple[RocePort, Netdev]] = []
    for each in roce_ports(case):
        if not isinstance(each, RocePort):
            yield each
            continue
        netdev = is_virtual(case, each) or shown(each)
        if not isinstance(netdev, Netdev):
            yield netdev
        elif netdev.mtu is None:
            yield Unknown(each.subject, f"the MTU of {netdev.label} could not be read")
        else:
            yield _judge(case, each, netdev)
            rails += [(each, netdev)] if each.nic.role == "rail" else []
    if len(rails) > 1:
        yield _together(rails)


def _judge(case: Case, each: RocePort, netdev: Netdev) -> Answer:
    mtu, told = netdev.mtu or 0, netdev.neighbor.max_frame_bytes if netdev.neighbor else None
    evidence = (_mtu(netdev),)
    if told and told < mtu + _FRAMING:
        row = Evidence(what="largest frame of the switch port", value=str(told), source=f"lldpctl {netdev.label}")
        summary = f"MTU {mtu} needs frames of {mtu + _FRAMING} bytes; the switch takes {told}"
        return _fault(each, netdev, summary, (*evidence, row), "error", "switch")
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
        return _fault(each, netdev, summary, (*evidence, *rows), "warning", "peers")
    if told is None and None in (*moves.values(), *([] if moves else [None])):
        return NotApplicable(each.subject, "the switch tells no frame size, and there is no earlier sample of counters")
    return Pass(each.subject)


def _together(rails: list[tuple[RocePort, Netdev]]) -> Answer:
    sizes = {each.subject: active_mtu(netdev.mtu or 0) for each, netdev in rails}
    largest = max(sizes.values())
    small = [(each, netdev) for each, netdev in rails if sizes[each.subject] < largest]
    if not small:
        return Pass("node")
    labels = [f"{each.label} {sizes[each.subject]}" for each, _ in small]
    return Fail(
        subject="node",
        label="node",
        summary=f"rails send packets of different sizes: most bytes {largest}; {named(labels)}",
        impact="100 % of the larger packets are dropped where programs do not agree on the smaller size.",
        remedy="One MTU on all rails: ip link set INTERFACE mtu 9000, with the switches at 9216.",
        evidence=tuple(_mtu(netdev) for _, netdev in rails),
        severity="error",
        cause="rails",
        places=frozenset().union(*(each.places | {netdev.id} for each, netdev in small)),
    )


def _mtu(netdev: Netdev) -> Evidence:
    return Evidence(what=f"MTU of {netdev.label}", value=str(netdev.mtu), source=f"/sys/class/net/{netdev.label}/mtu")


def _fault(
    each: RocePort, netdev: Netdev, summary: str, evidence: tuple[Evidence, ...], severity: str, cause: str
) -> Fail:
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=summary,
        impact="100 % of the larger frames are dropped: large messages hang for 7 retries of 4.3 s, small ones pass.",
        remedy="One MTU on all rails and nodes, and 9216 on the switches.",
        evidence=evidence,
        severity=each.severity(severity),
        cause=cause,
        places=each.places | {netdev.id},
    )
