"""roce-optics-power."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Lane, TransceiverModule
from agent.rules.case import Case
from agent.rules.optics.modules import CABLES, Plugged, plugged, unread
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, rule
from agent.rules.threshold import Threshold

_DARK_DBM = -20.0  # no receiver of these rates works below: on an active port such a lane is not in use
_SPREAD = Threshold("roce-optics-power.spread_db", 3, "dB between the strongest and the weakest received lane")
_WAYS = {"rx": "received", "tx": "sent"}
_FLAGS = ("rx_los", "rx_lol", "tx_fault", "tx_los", "tx_lol")


@rule(
    "roce-optics-power",
    "warning",
    needs=("rdma|rdma_tools", "netdev", "optics"),
    references=("roce-optics-power",),
    absorbs=("roce-link-flap", "roce-fec-ber"),
    thresholds=(_SPREAD,),
)
def roce_optics_power(case: Case) -> Iterator[Answer]:
    """The light of an active RoCE port is too weak or too strong.

    ## What it checks
    The power that the optical module of every active RoCE port of a rail or storage NIC receives and sends, lane by
    lane, against the module's own limits; and what the module flags of its lanes.

    ## Why it matters
    Weak light is what comes before bit errors and flaps: 3 dB less is half of it. A dirty connector is the usual
    reason, and it gets worse.

    ## How it is decided
    Below the low or above the high alarm limit of the module, or a laser that the module flags as faulty: error.
    Below or above a warning limit, or a flag of lost signal or lost lock on a lane that has light: warning. More than
    3 dB between received lanes: info. Storage NICs one step lower.

    ## What keeps it silent
    - Copper cables, passive and active: they measure nothing.
    - Lanes without light (below -20 dBm) on an active port: they are not in use, as with half of a twin-port module.
    - A limit that the module does not have, or that makes no sense; a module in low power or in fault (see
      roce-module-fault); a port that is not active (see roce-link-down): not applicable.
    - InfiniBand ports, whose interface cannot read the module (use `mlxlink -d DEVICE -m`), virtual functions and
      machines: not applicable.
    - The module could not be read: unknown; for the node as a whole where this process lacks CAP_NET_ADMIN.

    ## How to confirm
    `ethtool -m INTERFACE` as root; `mlxlink -d DEVICE -m`

    ## How to fix
    Clean both ends of the fibre, reseat, look for a tight bend; then change the module of the end that is out of range.

    ## Source
    CMIS 5.2 (pages 02h and 11h), SFF-8636 (page 03h): the thresholds are the module's own.
    """
    # What this process may not read is the node's answer: once, not for every port
    yield from dict.fromkeys(_judge(case, one) if isinstance(one, Plugged) else one for one in plugged(case))


def _judge(case: Case, one: Plugged) -> Answer:
    module = one.module
    if module is None:
        return unread(one)
    if module.media in CABLES:
        return NotApplicable(one.subject, "a copper cable: it measures no light")
    if module.state not in (None, "ready"):
        return NotApplicable(one.subject, f"its module is in state {module.state}")
    seen = [lane for lane in module.lanes if _lit(lane)]
    if not seen:
        return NotApplicable(one.subject, "its module measures no light on any lane")
    found = [row for lane in seen for row in _of_lane(lane, module)]
    for severity in ("error", "warning"):
        rows = [(text, evidence) for grave, text, evidence in found if grave == severity]
        if rows:
            return _fault(one, severity, [text for text, _ in rows], [what for _, what in rows])
    powers = [lane.rx_power_dbm for lane in seen if lane.rx_power_dbm is not None]
    spread = max(powers, default=0.0) - min(powers, default=0.0)
    if spread > case.threshold(_SPREAD):
        told = [(f"lane {lane.lane}", f"{lane.rx_power_dbm:g} dBm") for lane in seen if lane.rx_power_dbm is not None]
        return _fault(one, "info", [f"received lanes differ by {spread:.1f} dB"], told)
    return Pass(one.subject)


def _lit(lane: Lane) -> bool:
    """Whether anything is measured on a lane, and light comes in where that is measured."""
    if lane.rx_power_dbm is None:
        return lane.tx_power_dbm is not None and lane.tx_power_dbm > _DARK_DBM
    return lane.rx_power_dbm > _DARK_DBM


def _of_lane(lane: Lane, module: TransceiverModule) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """What is wrong with a lane: severity, words, and the evidence as name and value."""
    for way, power in (("rx", lane.rx_power_dbm), ("tx", lane.tx_power_dbm)):
        if power is None or power <= _DARK_DBM:
            continue
        for level, severity in (("alarm", "error"), ("warning", "warning")):
            low = module.thresholds.get(f"{way}_power_low_{level}_dbm")
            high = module.thresholds.get(f"{way}_power_high_{level}_dbm")
            if low is None or high is None or low >= high:
                continue
            if power < low:
                side, limit = "low", low
            elif power > high:
                side, limit = "high", high
            else:
                continue
            text = f"lane {lane.lane} {_WAYS[way]} {power:g} dBm, {side} {level} limit {limit:g}"
            yield severity, text, (f"{way} power of lane {lane.lane}", f"{power:g} dBm (limit {limit:g} dBm)")
    for flag in lane.flags:
        if flag in _FLAGS:
            severity = "error" if flag == "tx_fault" else "warning"
            text = f"lane {lane.lane}: the module flags {flag.replace('_', ' ')}"
            yield severity, text, (f"flags of lane {lane.lane}", ", ".join(lane.flags))


def _fault(one: Plugged, severity: str, texts: list[str], rows: list[tuple[str, str]]) -> Fail:
    source = f"ethtool -m {one.netdev.label}"
    evidence = [Evidence(what=what, value=value, source=source) for what, value in dict.fromkeys(rows)]
    name = [Evidence(what="module", value=one.name, source=source)] if one.name else []
    return Fail(
        subject=one.subject,
        label=one.label,
        summary="; ".join(texts[:4]) + (f"; and {len(texts) - 4} more" if len(texts) > 4 else ""),
        impact="Bit errors and flaps come next: 3 dB less is half the light, and a flap stops 100 % of the traffic.",
        remedy="Clean both ends of the fibre and reseat; then change the module of the end that is out of range.",
        evidence=(*name, *evidence[:16]),
        severity=one.each.severity(severity),
        cause="spread" if severity == "info" else "",
        places=one.places,
    )
