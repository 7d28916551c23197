"""roce-fec-wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.nic import Fec, Netdev
from agent.rules.cabling import board_of
from agent.rules.case import Case
from agent.rules.counting import majority
from agent.rules.folding import as_one
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.roce.wires import cabled, is_virtual, unseen
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_STRONG = ("rs", "llrs")  # Reed-Solomon, and the one of less latency
_LANES_OF_25G = 100.0  # Gb/s from which lanes run at 25 Gb/s and more
_PAM4 = 200.0  # Gb/s from which lanes run at 50 Gb/s and more: no link without Reed-Solomon
_SHORT_METRES = 3.0  # of a copper cable that may do without at 25 Gb/s a lane (IEEE 802.3by CA-25G-N)
_WORDS = {"off": "no FEC", "baser": "BASE-R FEC", "rs": "RS-FEC", "llrs": "low-latency RS-FEC"}


class _Wire(NamedTuple):
    """One interface that has a cable."""

    each: RocePort
    netdev: Netdev
    fec: Fec
    kind: tuple[object, ...]  # what interfaces have in common whose FEC should be the same


@rule("roce-fec-wrong", "warning", needs=("rdma|rdma_tools", "netdev"), references=("roce-fec-wrong",))
def roce_fec_wrong(case: Case) -> Iterator[Answer]:
    """A RoCE link of 100 Gb/s or more runs without the error correction that it needs.

    ## What it checks
    The active FEC of the interface of every active RoCE port of a rail or storage NIC.

    ## Why it matters
    Lanes of 25 Gb/s and more have bit errors by design (up to 2.4e-4 at 50 Gb/s), and FEC mends them. Without it every
    one is a lost packet, and each costs RoCE a go-back of all that was in flight.

    ## How it is decided
    From 100 Gb/s on: no FEC or BASE-R where the port supports RS-FEC. From 200 Gb/s on (lanes of 50 and 100 Gb/s):
    anything but RS-FEC. And ports of the same board, role, speed and kind of cable or module whose FEC is another than
    that of more than half of them. Rails: warning. Storage: info. Where every port has it: one finding for the node.

    ## What keeps it silent
    - Slower links: 10 and 40 Gb/s need none, 25 may do without. Copper cables of up to 3 m at 100 Gb/s, too.
    - Low-latency RS-FEC is as good.
    - Virtual functions and machines; ports that are not active or have no role; cloud NICs: not applicable.
    - The driver does not tell the active FEC, the interface is in another network namespace, or a link of 100 Gb/s has
      no FEC and its cable could not be read (a short copper one may do without): unknown.

    ## How to confirm
    `ethtool --show-fec INTERFACE`, and the same on the switch port

    ## How to fix
    `ethtool --set-fec INTERFACE encoding rs` (or `auto`), and the same on the switch: both ends must agree.

    ## Source
    IEEE 802.3 clauses 91, 108, 119 and 134; Linux `ETHTOOL_MSG_FEC_GET`.
    """
    wires: list[_Wire] = []
    for each in roce_ports(case):
        for found in _wires(case, each) if isinstance(each, RocePort) else [each]:
            if isinstance(found, _Wire):
                wires.append(found)
            else:
                yield found
    answers = [_judge(wire, [o.fec.active for o in wires if o.kind == wire.kind]) for wire in wires]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    yield from as_one(faults, len(answers), "FEC is not as it should be on every RoCE port")


def _wires(case: Case, each: RocePort) -> Iterator[_Wire | Answer]:
    silent = is_virtual(case, each) or unseen(each)
    if silent:
        yield silent
        return
    below = cabled(case, each)
    if not below:
        yield Unknown(each.subject, "the members of its bond are not visible here")
    for netdev in below:
        speed = netdev.speed_gbit_s
        if speed is None:
            yield Unknown(each.subject, "the speed of its interface could not be read")
        elif speed < _LANES_OF_25G:
            yield NotApplicable(each.subject, f"{speed:g} Gb/s: a link that may do without")
        elif netdev.fec is None or netdev.fec.active is None:
            yield Unknown(each.subject, "the driver does not tell its active FEC")
        else:
            part = netdev.module.part if netdev.module else None
            yield _Wire(each, netdev, netdev.fec, (each.nic.role, board_of(case, each.nic), speed, part))


def _judge(wire: _Wire, alike: list[str | None]) -> Answer:
    active, speed = wire.fec.active or "", wire.netdev.speed_gbit_s or 0.0
    usual = majority(alike)
    if speed >= _PAM4 and active not in _STRONG:
        return _fault(wire, "lanes of 50 Gb/s and more need RS-FEC", "weak")
    if active not in _STRONG and "rs" in wire.fec.supported:
        if wire.netdev.module is None:
            return Unknown(wire.each.subject, f"{_WORDS.get(active, active)}, and its cable could not be read")
        if not _short_copper(wire.netdev):
            return _fault(wire, "the port supports RS-FEC", "weak")
    if usual is not None and active != usual and wire.netdev.module:
        return _fault(wire, f"most ports like it have {_WORDS.get(usual, usual)}", "differs")
    return Pass(wire.each.subject)


def _short_copper(netdev: Netdev) -> bool:
    module = netdev.module
    return bool(module and module.media == "copper" and module.length_m and module.length_m <= _SHORT_METRES)


def _fault(wire: _Wire, because: str, cause: str) -> Fail:
    netdev, fec = wire.netdev, wire.fec
    configured = ", ".join(fec.configured) or ("auto" if fec.auto else "not told")
    source = f"ethtool --show-fec {netdev.label}"
    return Fail(
        subject=wire.each.subject if netdev is wire.each.netdev else f"netdev:{netdev.id}",
        label=wire.each.label,
        summary=f"{_WORDS.get(fec.active or '', fec.active)} at {netdev.speed_gbit_s:g} Gb/s; {because}",
        impact="Every bit error is a lost packet, at up to 2.4e-4 a bit by design; ends that differ have no link.",
        remedy="ethtool --set-fec INTERFACE encoding rs (or auto), and the same on the switch port.",
        evidence=(
            Evidence(what=f"active FEC of {netdev.label}", value=fec.active or "", source=source),
            Evidence(what="configured", value=configured, source=source),
            Evidence(what="supported", value=", ".join(fec.supported) or "not told", source=f"ethtool {netdev.label}"),
        ),
        severity=wire.each.severity("warning"),
        cause=cause,
        places=wire.each.places | {netdev.id},
    )
