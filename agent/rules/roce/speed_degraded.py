"""roce-speed-degraded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.cabling import board_of, position_of
from agent.rules.case import Case
from agent.rules.counting import majority, share_lost
from agent.rules.folding import as_one
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.roce.wires import cabled, is_virtual, unseen
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


class _Wire(NamedTuple):
    """One interface that has a cable, and the port that it belongs to."""

    each: RocePort
    netdev: Netdev
    speed: float  # Gb/s
    kind: tuple[object, ...]  # what interfaces have in common that should run alike


@rule("roce-speed-degraded", "error", needs=("rdma|rdma_tools", "netdev"), references=("roce-speed-degraded",))
def roce_speed_degraded(case: Case) -> Iterator[Answer]:
    """An active RoCE port runs slower than its siblings.

    ## What it checks
    The speed of the interface of every active RoCE port of a rail or storage NIC; of a bond, of each of its members.

    ## Why it matters
    A 400 Gb/s port (50 GB/s) that came up at 200 moves half; a collective over eight rails then takes twice the time,
    because every rail waits for the slowest.

    ## How it is decided
    Ports of the same board, role and position (all first ports, all second ones) should run alike. Below the speed of
    more than half of them, or, where none has a majority, below the fastest of them: a fault. Rails: error. Storage:
    warning. Where all of them run alike, but slower than the interface supports: one info, for that is what a slower
    switch or a deliberate breakout (400 into 2 x 200) looks like.

    ## What keeps it silent
    - Ports of other boards, roles and positions are not compared: cards may differ.
    - Virtual functions and machines, whose speed the provider sets; ports that are not active or have no role; cloud
      NICs: not applicable.
    - A speed that could not be read, an interface in another network namespace: unknown.

    ## How to confirm
    `ethtool INTERFACE | grep -E 'Speed|baseCR|baseSR|baseDR|baseKR'`; `mlxlink -d DEVICE -m -c`

    ## How to fix
    Reseat or replace the cable or module; look at the switch port's breakout, its autonegotiation and its errors.

    ## Source
    Linux `Documentation/ABI/testing/sysfs-class-net` (speed) and ethtool netlink (supported link modes).
    """
    wires: list[_Wire] = []
    for each in roce_ports(case):
        if isinstance(each, RocePort):
            for found in _wires(case, each):
                if isinstance(found, _Wire):
                    wires.append(found)
                else:
                    yield found
        else:
            yield each
    answers = [_judge(wire, [o for o in wires if o.kind == wire.kind]) for wire in wires]
    slow = [answer for answer in answers if isinstance(answer, Fail) and answer.severity == "info"]
    yield from (answer for answer in answers if answer not in slow)
    yield from as_one(slow, len(slow), "slower than the NIC supports, all alike")


def _wires(case: Case, each: RocePort) -> Iterator[_Wire | Answer]:
    silent = is_virtual(case, each) or unseen(each)
    if silent:
        yield silent
        return
    below = cabled(case, each)
    if not below:
        yield Unknown(each.subject, "the members of its bond are not visible here")
    for netdev in below:
        if netdev.speed_gbit_s:
            kind = each.nic.role, board_of(case, each.nic), position_of(each.nic, each.port.port), netdev.master
            yield _Wire(each, netdev, netdev.speed_gbit_s, kind[:3] if netdev is each.netdev else kind)
        elif netdev.operstate == "down":
            yield NotApplicable(f"netdev:{netdev.id}", "its link is down")
        else:
            yield Unknown(each.subject, "the speed of its interface could not be read")


def _judge(wire: _Wire, alike: list[_Wire]) -> Answer:
    speeds = [other.speed for other in alike]
    usual = majority(speeds)
    able = wire.netdev.max_speed_gbit_s
    if usual is not None and wire.speed < usual:
        return _fault(wire, usual, f"most ports of this board run at {usual:g}", "high")
    if usual is None and wire.speed < max(speeds):
        return _fault(wire, max(speeds), f"another port of this board runs at {max(speeds):g}", "medium")
    if able and wire.speed < able and wire.speed == max(speeds):
        return _fault(wire, able, f"the interface supports {able:g}", "low")
    return Pass(wire.each.subject)


def _fault(wire: _Wire, due: float, because: str, confidence: str) -> Fail:
    netdev, folder = wire.netdev, f"/sys/class/net/{wire.netdev.label}"
    by_design = confidence == "low"
    module = netdev.module
    told = " ".join(filter(None, (module.vendor, module.part, module.serial))) if module else ""
    evidence = [Evidence(what=f"speed of {netdev.label}", value=f"{wire.speed:g} Gb/s", source=f"{folder}/speed")]
    if netdev.max_speed_gbit_s:
        fastest = f"{netdev.max_speed_gbit_s:g} Gb/s"
        evidence.append(Evidence(what="fastest supported mode", value=fastest, source=f"ethtool {netdev.label}"))
    if told:
        evidence.append(Evidence(what="cable or module", value=told, source=f"ethtool -m {netdev.label}"))
    return Fail(
        subject=wire.each.subject if netdev is wire.each.netdev else f"netdev:{netdev.id}",
        label=wire.each.label,
        summary=f"{netdev.label} runs at {wire.speed:g} Gb/s; {because}",
        impact=f"{wire.speed / 8:g} instead of {due / 8:g} GB/s in each direction ({share_lost(wire.speed, due)} less)"
        + (": nothing is lost where the fabric is so by design." if by_design else "; collectives wait for it."),
        remedy="Reseat or replace cable or module; look at the switch port's breakout, autonegotiation and errors.",
        evidence=tuple(evidence),
        severity="info" if by_design else wire.each.severity("error"),
        confidence=confidence,
        cause="all" if by_design else "",
        places=wire.each.places | {netdev.id},
    )
