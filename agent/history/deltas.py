"""By how much the counters of one subject moved between two samples, or why nobody can say.

A false number is worse than none: what fell, stands at its end, or reads all-ones is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.model.counters import PORT, PORT_COUNTER_BITS, Counted

ALL = "*"  # in the place of a counter: the whole subject
TWO_32, TWO_64 = 1 << 32, 1 << 64
_ALL_ONES = frozenset({TWO_32 - 1, TWO_64 - 1})
STICKS_AT: Mapping[str, int] = {name: (1 << bits) - 1 for name, bits in PORT_COUNTER_BITS.items()}
# What stands among counters and is none: bit error rates, and mlx5's share of the last second in percent.
_NO_COUNTERS = frozenset({"outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "lifespan"})
_NO_COUNTER_END = "_ber_packed"


class Moves(NamedTuple):
    """Counters that moved, and those that could not be compared; any other did not move."""

    moved: dict[str, int]
    gaps: dict[str, str]  # counter, or "*" -> reason


def moves(before: Mapping[str, int], now: Counted) -> Moves:
    """Compare one subject with its earlier sample."""
    if before.keys().isdisjoint(now.counters):
        return Moves({}, {ALL: "the earlier sample has none of its counters"})
    gaps: dict[str, str] = {}
    usable: list[str] = []
    for name, value in now.counters.items():
        earlier = before.get(name)
        if value == 0 == earlier and name not in now.twice:
            continue  # most counters of a healthy machine
        why = _unusable(name, now, earlier)
        if why or earlier is None:
            gaps[name] = why or "not in the earlier sample"
        else:
            usable.append(name)
    fell = [name for name in usable if now.counters[name] < before[name]]
    wrapped = _wrapped(before, now, usable, fell)
    fell = [name for name in fell if name not in wrapped]
    if fell and 2 * len(fell) >= sum(before[name] > 0 for name in usable):
        return Moves(
            {}, {ALL: f"counted anew ({_fall(fell[0], before, now)}): driver reloaded, device reset or cleared"}
        )
    gaps |= {name: f"it {_fall('', before, now, name)}: counted anew" for name in fell}
    moved = {name: now.counters[name] - before[name] for name in usable if now.counters[name] > before[name]}
    return Moves(moved | wrapped, gaps)


def is_count(value: int) -> bool:
    """Whether a counter can stand there: hostile reports hold anything."""
    return 0 <= value < TWO_64


def _unusable(name: str, now: Counted, earlier: int | None) -> str | None:
    """Why a counter is not compared whatever it stood at; None where it can be."""
    value = now.counters[name]
    if name in now.twice:
        return "two counters of this port have this name"
    if name in _NO_COUNTERS or name.endswith(_NO_COUNTER_END):
        return "a rate, not a counter"
    if not is_count(value) or (earlier is not None and not is_count(earlier)):
        return "no number that a counter can have"
    end = STICKS_AT.get(name) if now.subject.startswith(f"{PORT}:") else None
    if value == end:
        return f"it stands at its maximum ({end}) and counts no further"
    if value in _ALL_ONES or earlier in _ALL_ONES:
        return "it reads all-ones, which is its maximum or no number"
    return None


def _wrapped(before: Mapping[str, int], now: Counted, usable: list[str], fell: list[str]) -> dict[str, int]:
    """Counters that went through 2^32, and by how much they moved; none where the fall may be a reset.

    A reset takes all counters of a port along: all that fell must have stood in the upper half, and one that counted
    must have gone on.
    """
    if not fell:
        return {}
    stayed = any(before[name] > 0 for name in usable if name not in fell)
    around = {name: now.counters[name] - before[name] + TWO_32 for name in fell}
    sure = stayed and all(
        name in now.wraps and before[name] < TWO_32 and before[name] >= TWO_32 // 2 > around[name] for name in fell
    )
    return around if sure else {}


def _fall(shown: str, before: Mapping[str, int], now: Counted, name: str = "") -> str:
    name = name or shown
    return f"{shown} fell from {before[name]} to {now.counters[name]}".strip()
