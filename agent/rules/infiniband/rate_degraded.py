"""ib-rate-degraded."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import majority, share_lost
from agent.rules.devices import by_role
from agent.rules.infiniband.ports import IbPort, device_number, ib_ports, rate_unparsed
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

# Gb/s that a port of each generation can do: ConnectX-4, 5, 6, 7, 8, BlueField-2, BlueField-3 (PCI device ids)
_GENERATION = {0x1013: 100, 0x1017: 100, 0x1019: 100, 0x101B: 200, 0x1021: 400, 0x1023: 800, 0xA2D6: 200, 0xA2DC: 400}
_SPLITTER = "2X"
_CABLE_LANES = 4  # 8X and 12X are links inside of switches; no NIC has them


@rule(
    "ib-rate-degraded",
    "error",
    needs=("rdma|rdma_tools",),
    references=("ib-rate-degraded",),
    absorbs=("ib-rate-mixed",),
)
def ib_rate_degraded(case: Case) -> Iterator[Answer]:
    """An active InfiniBand port runs slower than its siblings.

    ## What it checks
    The rate of every active InfiniBand port of a rail or storage NIC.

    ## Why it matters
    An NDR port (400 Gb/s, 50 GB/s) that came up at 2X or at HDR moves half; a collective over eight rails then runs at
    twice the time, because every rail waits for the slowest.

    ## How it is decided
    Ports of the same board, role and position (all first ports, all second ones) on this node should run alike. Below
    the rate of more than half of them, or, where none has a majority, below the fastest of them: a fault. Rails: error.
    Storage: warning.
    A port without siblings that runs at one lane (1X) is a fault as well; one that is merely below what its generation
    can do is info, because slower fabrics and slower products of the same chip exist.
    Where a saved `iblinkinfo` holds the port and says that both ends support more lanes than run ("Could be 4X"), that
    is a fault whatever the siblings do. More speed alone ("Could be 106.25 Gbps") is not: cables of the last generation
    and speeds that somebody set look the same.

    ## What keeps it silent
    - All ports of the board run alike: a slower switch, or splitter cables (2X HDR, 2X NDR) by design.
    - Ports that are not active say SDR: not applicable. So are ports without a role, software devices, functions that a
      fabric manager owns, and virtual functions beside their physical one.
    - An active ConnectX-5 or later that says SDR: the kernel is too old to name its speed; unknown.
    - A hint of iblinkinfo from a time when the link ran otherwise; of fewer lanes than run (older versions say
      "Could be 2X" of a healthy 4X link); of more than a cable has (8X, 12X).
    - A rate that could not be read; outputs of RDMA tools alone, which do not say what a NIC is for: unknown.

    ## How to confirm
    `ibstat` or `cat /sys/class/infiniband/*/ports/*/rate`; `mlxlink -d DEVICE -m -c` shows cable and errors;
    `iblinkinfo` shows the port of the switch and what both ends could do.

    ## How to fix
    Reseat or replace the cable or module; look at the switch port's profile (splitter) and its errors.

    ## Source
    Linux `rate_show` in `drivers/infiniband/core/sysfs.c`; `get_max_msg` in infiniband-diags; Azure and gpud InfiniBand
    checks.
    """
    ports: list[IbPort] = []
    for each in ib_ports(case):
        if not isinstance(each, IbPort):
            yield each
        elif each.port.state != "ACTIVE":
            yield NotApplicable(each.subject, f"{each.port.state}: a rate is told of active ports only")
        elif rate_unparsed(case, each):
            yield Unknown(each.subject, "SDR on an active port: the kernel has no name for its speed")
        elif each.port.rate_gbit_s is None:
            yield Unknown(each.subject, "its rate could not be read")
        else:
            ports.append(each)
    for each in ports:
        yield _judge(case, each, [other for other in ports if _kind(other) == _kind(each)])


def _kind(each: IbPort) -> tuple[object, ...]:
    """What ports have in common that should run alike: second ports of all cards may be on a slower fabric."""
    return each.nic.role, each.board, each.position


def _judge(case: Case, each: IbPort, alike: list[IbPort]) -> Answer:
    rate = each.port.rate_gbit_s or 0.0
    rates = [other.port.rate_gbit_s or 0.0 for other in alike]
    usual = majority(rates)
    if usual is not None and rate < usual:
        return _fault(each, usual, f"most ports of this board run at {usual:g}", "high")
    if usual is None and rate < max(rates):
        return _fault(each, max(rates), f"another port of this board runs at {max(rates):g}", "medium")
    more = _with_all_lanes(each)
    if more is not None:
        return _fault(each, more, f"{_far_end(each)} and this port support {more:g}", "medium")
    due = _GENERATION.get(device_number(case, each.nic) or 0)
    if len(alike) == 1 and due and rate < due and each.port.width != _SPLITTER:
        fault = _fault(each, due, f"its generation can do {due}", "low")
        return fault if each.port.width == "1X" else _only_info(fault)
    return Pass(each.subject)


def _fault(each: IbPort, due: float, because: str, confidence: str) -> Fail:
    port, rate = each.port, each.port.rate_gbit_s or 0.0
    lanes = f" ({port.width} {port.speed})" if port.width and port.speed else ""
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"runs at {rate:g} Gb/s{lanes}; {because}",
        impact=f"{rate / 8:g} instead of {due / 8:g} GB/s in each direction ({share_lost(rate, due)} less); "
        "collectives wait for the slowest rail.",
        remedy="Reseat or replace cable or module; look at the switch port's profile and errors (mlxlink -m -c).",
        evidence=(each.evidence("rate", f"{rate:g} Gb/s{lanes}", "rate"), *_evidence_of_far_end(each)),
        severity=by_role("error", each.nic),
        confidence=confidence,
        places=each.places,
    )


def _with_all_lanes(each: IbPort) -> float | None:
    """The rate in Gb/s with the lanes that both ends support; None where they all run, or nobody knows of more."""
    far, port = each.port.neighbor, each.port
    if far is None or far.could_width is None or far.width is None or far.rate_gbit_s != port.rate_gbit_s:
        return None
    if port.width not in (far.width, None):
        return None
    run, could = _lanes(far.width), min(_lanes(far.could_width), _CABLE_LANES)
    return (port.rate_gbit_s or 0.0) * could / run if could > run > 0 else None


def _lanes(width: str) -> int:
    digits = width.removesuffix("X")
    return int(digits) if digits in ("1", "2", "4", "8", "12") else 0


def _far_end(each: IbPort) -> str:
    far = each.port.neighbor
    return f"port {far.port} of {far.name or far.node_guid or 'the switch'}" if far else ""


def _evidence_of_far_end(each: IbPort) -> tuple[Evidence, ...]:
    far = each.port.neighbor
    if far is None:
        return ()
    could = " ".join(word for word in (far.could_width, far.could_speed) if word)
    value = _far_end(each) + (f"; both ends could be {could}" if could else "")
    return (Evidence(what=f"far end of {each.label}", value=value, source=far.source),)


def _only_info(fault: Fail) -> Fail:
    return Fail(
        subject=fault.subject,
        label=fault.label,
        summary=fault.summary,
        impact=fault.impact + " Where the fabric is slower by design, nothing is lost.",
        remedy=fault.remedy,
        evidence=fault.evidence,
        severity="info",
        confidence=fault.confidence,
        places=fault.places,
    )
