"""By how much the counters of one subject changed between two samples, or why that is unknown.

A false number is worse than none: what decreased, is its end, or reads all-ones is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.model.counters import MAXIMUM_VALUE, PORT, Counted

WHOLE_SUBJECT = "*"  # in the place of a counter: the whole subject
TWO_32, TWO_64 = 1 << 32, 1 << 64
_ALL_ONES = frozenset({TWO_32 - 1, TWO_64 - 1})
# What stands among counters and is none: bit error rates, and mlx5's share of the last second in percent.
_NO_COUNTERS = frozenset({"outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "lifespan"})
_NO_COUNTER_END = "_ber_packed"


class CounterDeltas(msgspec.Struct, frozen=True):
    """Counters that moved, and those that could not be compared; any other did not move."""

    moved: dict[str, int]
    gaps: dict[str, str]  # counter, or "*" -> reason


def compute_deltas(before: Mapping[str, int], now: Counted) -> CounterDeltas:
    """Compare one subject with its earlier sample."""
    if before.keys().isdisjoint(now.counters):
        return CounterDeltas({}, {WHOLE_SUBJECT: "the earlier sample has none of its counters"})
    gaps: dict[str, str] = {}
    usable: list[str] = []
    for name, value in now.counters.items():
        earlier = before.get(name)
        if value == 0 == earlier and name not in now.twice:
            continue  # most counters of a healthy machine
        why = _why_unusable(name, now, earlier)
        if why or earlier is None:
            gaps[name] = why or "not in the earlier sample"
        else:
            usable.append(name)
    decreased = [name for name in usable if now.counters[name] < before[name]]
    wrapped = _find_wrapped(before, now, usable, decreased)
    decreased = [name for name in decreased if name not in wrapped]
    if decreased and 2 * len(decreased) >= sum(before[name] > 0 for name in usable):
        decrease = _describe_decrease(decreased[0], before, now)
        return CounterDeltas(
            {},
            {WHOLE_SUBJECT: f"restarted ({decrease}): driver reloaded, device reset or cleared"},
        )
    gaps |= {name: f"it {_describe_decrease('', before, now, name)}: restarted" for name in decreased}
    moved = {name: now.counters[name] - before[name] for name in usable if now.counters[name] > before[name]}
    return CounterDeltas(moved | wrapped, gaps)


def is_count(value: int) -> bool:
    """Whether a counter can be there: hostile reports hold anything."""
    return 0 <= value < TWO_64


def _why_unusable(name: str, now: Counted, earlier: int | None) -> str | None:
    """Why a counter is not compared whatever it stood at; None where it can be."""
    value = now.counters[name]
    if name in now.twice:
        return "two counters of this port have this name"
    if name in _NO_COUNTERS or name.endswith(_NO_COUNTER_END):
        return "a rate, not a counter"
    if not is_count(value) or (earlier is not None and not is_count(earlier)):
        return "no number that a counter can have"
    end = MAXIMUM_VALUE.get(name) if now.subject.startswith(f"{PORT}:") else None
    if value == end:
        return f"it is at its maximum ({end}) and counts no further"
    if value in _ALL_ONES or earlier in _ALL_ONES:
        return "it reads all-ones, which is its maximum or no number"
    return None


def _find_wrapped(before: Mapping[str, int], now: Counted, usable: list[str], decreased: list[str]) -> dict[str, int]:
    """Counters that went through 2^32, and by how much they moved; none where the fall may be a reset.

    A reset takes all counters of a port along: all that decreased must have been in the upper half, and one that
    counted must have gone on.
    """
    if not decreased:
        return {}
    has_unchanged = any(before[name] > 0 for name in usable if name not in decreased)
    deltas = {name: now.counters[name] - before[name] + TWO_32 for name in decreased}
    is_certain = has_unchanged and all(
        name in now.wraps and before[name] < TWO_32 and before[name] >= TWO_32 // 2 > deltas[name] for name in decreased
    )
    return deltas if is_certain else {}


def _describe_decrease(name_shown: str, before: Mapping[str, int], now: Counted, name: str = "") -> str:
    name = name or name_shown
    return f"{name_shown} fell from {before[name]} to {now.counters[name]}".strip()
