"""Headroom of a lossless class: the cable that it is computed for against the cable that is there.

A byte count is compared with what no switch can do without: what is on the cable in both directions, and a packet
that each end must finish. What a switch's own cells and response time add depends on its chip and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.fleet.lossless.fault import HopCase, HopFault, config_source
from agent.fleet.lossless.hop import CableEnd

NS_PER_METRE = 10.1  # both ways, at two thirds of the speed of light
_SLACK = 1.05  # of a length: a plan rounds, a module states the next larger length


def smallest_headroom(metres: float, gbit_s: float, mtu: int) -> int:
    """Bytes that arrive after a pause was sent, on any switch.

    >>> smallest_headroom(40, 400, 9100), smallest_headroom(300, 400, 9100)
    (38400, 169700)
    """
    return int(metres * NS_PER_METRE * gbit_s / 8 + 2 * mtu)


def find_short_headroom(case: HopCase) -> Iterator[HopFault]:
    """One fault for a hop, of the end that is wrong; of both where both are."""
    real, source = case.hop.metres_plan, "plan"
    if real is None:
        real, source = case.hop.metres_module, "module of the host"
    if real is None:
        return
    ends = [end for end in case.hop.ends if end.facts is not None and end.facts.cable_metres is not None]
    short = [end for end in ends if end.facts and (end.facts.cable_metres or 0) * _SLACK < real]
    if short:
        assumed = short[0].facts.cable_metres if short[0].facts else None
        where = "both ends" if len(short) == 2 else "this end"
        yield HopFault(
            "sw-headroom-short",
            short[0],
            case.hop,
            f"the cable has {real:g} m, headroom is for {assumed} m at {where}",
            (
                ("cable", f"{real:g} m", source),
                *(
                    (f"assumed by {end.label}", f"{end.facts.cable_metres} m", config_source(end))
                    for end in short
                    if end.facts
                ),
            ),
            severity="error" if any(_has_group_drops(case, end) for end in short) else None,
            cause=f"{assumed} of {real:g} m" if len(short) == 1 else "",
            values={"metres": f"{real:.0f}", **({"also": short[1].label} if len(short) == 2 else {})},
        )
        return
    for end, traffic in zip(case.hop.ends, case.traffic, strict=True):
        if end.facts is None or traffic.priority is None or not traffic.lossless:
            continue
        headroom = (end.facts.headroom or {}).get(traffic.priority)
        if headroom is None or headroom.shared is not False or headroom.xoff_bytes is None:
            continue
        if end.speed is None or end.mtu is None:
            continue
        need = smallest_headroom(real, end.speed, end.mtu)
        if headroom.xoff_bytes < need:
            yield HopFault(
                "sw-headroom-short",
                end,
                case.hop,
                f"headroom of {headroom.xoff_bytes:,} bytes, and {need:,} arrive after a pause ({real:g} m, "
                f"{end.speed:g} Gbit/s)",
                (
                    ("xoff", f"{headroom.xoff_bytes:,} bytes", config_source(end)),
                    ("cable", f"{real:g} m", source),
                ),
                severity="error" if _has_group_drops(case, end) else None,
                cause=f"xoff {headroom.xoff_bytes} of {need}",
                values={"metres": f"{real:.0f}"},
            )


def _has_group_drops(case: HopCase, end: CableEnd) -> bool:
    side = 0 if end is case.hop.a else 1
    priority = case.traffic[side].priority
    return priority is not None and bool(end.facts and end.facts.counters.get(f"drop_pg_{priority}"))
