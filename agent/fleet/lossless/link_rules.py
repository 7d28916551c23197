"""Faults of a link that both ends' settings tell: MTU, speed, FEC, cable length and headroom, link retry."""

from __future__ import annotations

from collections.abc import Iterator

from agent.fleet.lossless.fault import HopCase, HopFault, config_source
from agent.fleet.lossless.headroom import find_short_headroom
from agent.fleet.lossless.hop import CableEnd


def find_link_faults(case: HopCase) -> Iterator[HopFault]:
    """Of one hop, whatever its classes are."""
    yield from _judge_mtu(case)
    yield from _judge_speed(case)
    yield from _judge_fec(case)
    yield from find_short_headroom(case)
    yield from _judge_retry(case)
    if case.hop.disagreement:
        end = case.hop.a if case.hop.a.switch is not None else case.hop.b
        yield HopFault(
            "sw-neighbor-disagrees",
            end if end.switch is not None else case.hop.a,
            case.hop,
            f"the two sides of LLDP differ: {case.hop.disagreement}",
            (("LLDP", case.hop.disagreement, "show lldp table"),),
        )


def _judge_mtu(case: HopCase) -> Iterator[HopFault]:
    hosts = [end.host.mtu for end in case.hop.ends if end.host is not None and end.host.mtu]
    wanted = hosts[0] if hosts else case.host_mtu
    for end in case.hop.ends:
        if end.facts is None or end.mtu is None or wanted is None or end.mtu >= wanted:
            continue
        yield HopFault(
            "sw-mtu-small",
            end,
            case.hop,
            f"MTU {end.mtu:,} here, and hosts send packets of up to {wanted:,} bytes",
            (("MTU", str(end.mtu), config_source(end)), ("MTU of hosts", str(wanted), "reports")),
            cause=f"MTU {end.mtu}",
            lossy=True,
            values={"mtu": "9100" if wanted <= 9100 else "9216"},
        )
    if wanted is None and case.hop.is_trunk:
        a, b = case.hop.ends
        if a.mtu is not None and b.mtu is not None and a.mtu != b.mtu:
            small, large = (a, b) if a.mtu < b.mtu else (b, a)
            yield HopFault(
                "sw-mtu-small",
                small,
                case.hop,
                f"MTU {small.mtu:,} here and {large.mtu:,} at the other end",
                (("MTU", str(small.mtu), config_source(small)), ("far MTU", str(large.mtu), config_source(large))),
                severity="warning",
                cause=f"MTU {small.mtu}",
                values={"mtu": str(large.mtu)},
            )


def _judge_speed(case: HopCase) -> Iterator[HopFault]:
    a, b = case.hop.ends
    if not a.speed or not b.speed or a.speed == b.speed:
        return
    slow, fast = (a, b) if a.speed < b.speed else (b, a)
    end = slow if slow.facts is not None else fast
    if end.facts is None:
        return
    yield HopFault(
        "sw-speed-differs",
        end,
        case.hop,
        f"{a.label} has {a.speed:g} Gbit/s, {b.label} {b.speed:g} Gbit/s",
        (
            (f"speed of {a.label}", f"{a.speed:g} Gbit/s", config_source(a)),
            (f"speed of {b.label}", f"{b.speed:g} Gbit/s", config_source(b)),
        ),
    )


def _judge_fec(case: HopCase) -> Iterator[HopFault]:
    a, b = case.hop.ends
    if a.fec is None or b.fec is None or a.fec == b.fec:
        return
    wrong: CableEnd = a if a.fec != "rs" and a.facts is not None else b
    if wrong.facts is None:
        wrong = a if b is wrong else b
    if wrong.facts is None:
        return
    yield HopFault(
        "sw-fec-differs",
        wrong,
        case.hop,
        f"FEC is {a.fec} at {a.label} and {b.fec} at {b.label}",
        ((f"FEC of {a.label}", a.fec, config_source(a)), (f"FEC of {b.label}", b.fec, config_source(b))),
        values={"fec": "rs"},
    )


def _judge_retry(case: HopCase) -> Iterator[HopFault]:
    retries = [end.facts.link_retry if end.facts is not None else None for end in case.hop.ends]
    states = [retry.enabled if retry is not None else None for retry in retries]
    if None not in states and states[0] != states[1]:
        end = case.hop.b if states[0] else case.hop.a
        yield HopFault(
            "sw-llr-one-end",
            end,
            case.hop,
            "link layer retry is on at the other end only",
            (("link layer retry", "off", f"{end.node}: show llr interface"),),
            cause="retry",
        )
    real = case.hop.metres_plan or case.hop.metres_module
    for end, retry in zip(case.hop.ends, retries, strict=True):
        if retry is not None and retry.enabled and retry.metres is not None and real and retry.metres < real:
            yield HopFault(
                "sw-llr-one-end",
                end,
                case.hop,
                f"the link retry profile {retry.profile} is for {retry.metres} m, the cable has {real:g} m",
                (("profile", str(retry.profile), f"{end.node}: show llr interface"),),
                cause="retry length",
            )
