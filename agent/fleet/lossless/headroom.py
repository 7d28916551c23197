"""Headroom of a lossless class: the cable that it is computed for against the cable that is there.

A byte count is compared with what the switch's own chip needs where its formula is known, else with what no switch can
do without: what is on the cable in both directions, and a packet that each end must finish.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from agent.fleet.lossless.fault import HopContext, HopFault, HopSide, config_source, counter_source
from agent.fleet.lossless.hop import CableEnd
from probes.switches.facts import SwitchFacts

NS_PER_METRE = 10.1  # both ways, at two thirds of the speed of light
# Response to a pause in quanta, by Gbit/s: IEEE 802.3; sonic-swss, buffer_headroom_mellanox.lua
_QUANTA: Mapping[int, int] = MappingProxyType(
    {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}
)
_SPECTRUM = re.compile(r"(?<![A-Za-z0-9])SN5[0-9]{3}")  # Spectrum-4 and -5: cells of 192 bytes
_SMALL_PACKETS = 3  # a packet of 64 bytes fills a cell of 192
_MAC_PHY, _TILE_PER_GBIT_S, _FRAME = 819.2, 15, 22
_LOSSLESS_MTU = 1024
_FULL = 0.9  # of a pool
_SLACK = 1.05  # of a length: a plan rounds, a module states the next larger length


def smallest_headroom(metres: float, gbit_s: float, mtu: int) -> int:
    """Bytes that arrive after a pause was sent, on any switch.

    >>> smallest_headroom(40, 400, 9100), smallest_headroom(300, 400, 9100)
    (38400, 169700)
    """
    return int(metres * NS_PER_METRE * gbit_s / 8 + 2 * mtu)


def spectrum_headroom(metres: float, gbit_s: float, mtu: int, lossless_mtu: int) -> int | None:
    """The xoff that SONiC computes for a Spectrum-4 switch; None: not for this speed. `mtu`: of frames.

    >>> [spectrum_headroom(metres, 400, 9216, 1024) for metres in (5, 40, 300)]
    [231424, 283648, 677888]
    >>> spectrum_headroom(5, 401, 9216, 1024)
    """
    quanta = _QUANTA.get(int(gbit_s)) if gbit_s == int(gbit_s) else None
    if quanta is None:
        return None
    cable = 2 * metres * gbit_s * 1e9 / (8 * 1.98e8)
    need = lossless_mtu + _SMALL_PACKETS * (mtu + cable + _MAC_PHY + 64 * quanta + _TILE_PER_GBIT_S * gbit_s)
    return -int(-need // 1024) * 1024


def _find_need(end: CableEnd, metres: float) -> tuple[int, str] | None:
    """Bytes that arrive after a pause, and by what they are known."""
    if end.speed is None or end.mtu is None:
        return None
    if end.switch is not None and _SPECTRUM.search(end.switch.model or ""):
        need = spectrum_headroom(metres, end.speed, end.mtu + _FRAME, end.switch.lossless_mtu or _LOSSLESS_MTU)
        if need is not None:
            return need, "by the formula of its chip"
    return smallest_headroom(metres, end.speed, end.mtu), "at the least"


def find_full_pools(context: HopContext) -> Iterator[HopFault]:
    """Lossless ports of a switch whose shared headroom is nearly full, or shared by more than it is set up for."""
    for side in context.switch_sides():
        switch = side.end.switch
        if switch is None or not switch.headroom_pool_bytes or not side.traffic.lossless:
            continue
        pool, peak, ratio = switch.headroom_pool_bytes, switch.headroom_pool_peak, switch.headroom_ratio
        shown: tuple[str, ...]
        if peak is not None and peak >= _FULL * pool:
            text = f"{peak:,} of {pool:,} bytes of the headroom pool were in use at once"
            shown = ("most in use", f"{peak:,} bytes", counter_source(side.end, "show headroom-pool watermark"))
        elif ratio and (wanted := _sum_headroom(switch)) > ratio * pool * _SLACK:
            text = f"ports may use {wanted:,} bytes of a headroom pool of {pool:,}, more than {ratio} times of it"
            shown = ("headroom of all ports", f"{wanted:,} bytes")
        else:
            continue
        rule = "sw-headroom-pool-oversubscribed"
        yield side.fault(rule, text, shown, ("headroom pool", f"{pool:,} bytes"), cause="headroom pool")


def _sum_headroom(switch: SwitchFacts) -> int:
    """Of ports that are not switched off: those give their headroom back."""
    return sum(
        headroom.xoff_bytes or 0
        for port in switch.ports.values()
        if port.admin != "down"
        for headroom in (port.headroom or {}).values()
    )


def find_short_headroom(context: HopContext) -> Iterator[HopFault]:
    """One fault for a hop, of the end that is wrong; of both where both are."""
    real, source = context.hop.metres_plan, "plan"
    if real is None:
        real, source = context.hop.metres_module, "module of the host"
    if real is None:
        return
    metres = {"metres": f"{real:.0f}"}
    known = [(side, side.port.cable_metres) for side in context.switch_sides() if side.port.cable_metres is not None]
    short = [(side, assumed) for side, assumed in known if assumed * _SLACK < real]
    if short:
        both, (side, assumed) = len(short) == 2, short[0]
        yield side.fault(
            "sw-headroom-short",
            f"the cable has {real:g} m, headroom is for {assumed} m at {'both ends' if both else 'this end'}",
            ("cable", f"{real:g} m", source),
            *((f"assumed by {one.end.label}", f"{length} m", config_source(one.end)) for one, length in short),
            severity="error" if any(_has_group_drops(one) for one, _ in short) else None,
            cause="" if both else f"{assumed} of {real:g} m",
            values={**metres, **({"also": short[1][0].end.label} if both else {})},
        )
        return
    for side in context.switch_sides():
        priority = side.traffic.priority
        if priority is None or not side.traffic.lossless:
            continue
        headroom = (side.port.headroom or {}).get(priority)
        if headroom is None or headroom.shared is not False or headroom.xoff_bytes is None:
            continue
        needed = _find_need(side.end, real)
        if needed is not None and headroom.xoff_bytes < needed[0]:
            need, by = needed
            yield side.fault(
                "sw-headroom-short",
                f"headroom of {headroom.xoff_bytes:,} bytes, and {need:,} arrive after a pause, {by} ({real:g} m, "
                f"{side.end.speed:g} Gbit/s)",
                ("xoff", f"{headroom.xoff_bytes:,} bytes"),
                ("cable", f"{real:g} m", source),
                severity="error" if _has_group_drops(side) else None,
                cause=f"xoff {headroom.xoff_bytes} of {need}",
                values=metres,
            )


def _has_group_drops(side: HopSide) -> bool:
    priority = side.traffic.priority
    return priority is not None and bool(side.port.counters.get(f"drop_pg_{priority}"))
