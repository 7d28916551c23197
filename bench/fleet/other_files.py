"""The same fabric in other files: as iblinkinfo prints it, and as UFM's list of where cables belong (NDT)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.fleet.fabric import Fabric, Port, Rail

_GBPS = {"EDR": "25.78125", "HDR": "53.125", "NDR": "106.25"}  # of a lane, as signalled


def iblinkinfo(fabric: Fabric, rails: Mapping[Port, Rail]) -> Iterator[str]:
    """A block for each switch. "Could be": what both ends can do and the link does not use."""
    assert fabric.wiring is not None
    usual = f"4x{fabric.wiring.speed}"
    ends, below = fabric.ends(rails)
    for number in range(fabric.switches):
        if number in fabric.dark:
            continue
        yield f"Switch: 0x{fabric.guid(number)} {fabric.description(number)}:\n"
        for port in sorted({*ends.get(number, {}), *below.get(number, {})}):
            rail = below.get(number, {}).get(port)
            if rail is not None:
                far, what, best = f'{rail.lid} 1[  ] "{rail.hostname} {rail.device}"', rail.speed, False
            else:
                upper, what = ends[number][port]
                far = f'{upper.switch + 1} {upper.number}[  ] "{fabric.description(upper.switch)}"'
                best = not fabric.best.isdisjoint((Port(number, port), upper))
            yield f"{number + 1:>12}{port:>5}[  ] ==( {_words(what)} Active/  LinkUp)==>  {far} "
            yield "( )\n" if best or what == usual else f"({_hint(what, usual)})\n"


def _words(what: str) -> str:
    return f"{what[0]}X {_GBPS[what[2:]]} Gbps"


def _hint(what: str, usual: str) -> str:
    hints = [f"Could be {usual[0]}X"] if what[0] != usual[0] else []
    return " ".join(hints + ([f"Could be {_GBPS[usual[2:]]} Gbps"] if what[2:] != usual[2:] else []))


def ndt(fabric: Fabric, rails: Mapping[Port, Rail]) -> Iterator[str]:
    """Every cable where it is meant to be, whatever was planted."""
    yield "#Fields:StartDevice,StartPort,EndDevice,EndPort,Cable Length\n"
    for rail in rails.values():
        switch = fabric.description(rail.meant.switch)
        yield f"{switch},Port {rail.meant.number},{rail.hostname} {rail.device},Port 1,3m\n"
    for lower, upper in fabric.meant_cables():
        near, far = fabric.description(lower.switch), fabric.description(upper.switch)
        yield f"{near},Port {lower.number},{far},Port {upper.number},10m\n"
