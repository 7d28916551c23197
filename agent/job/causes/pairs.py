"""One measurement after the other, each over some of the hosts: the host that is in every bad one, and in no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.job.candidate import PossibleCause
from agent.job.causes.generic import find_generic
from agent.job.evidence import Evidence, LineEvent
from agent.job.measured_tables import MeasuredPart, split_tables

_LEAST_GOOD, _LEAST_BAD = 2, 2  # measurements
_LOW, _ALIKE = 0.75, 0.85  # of the best: below the one it is bad, from the other on good


def find_wrong_host(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Corrupted data, and the host that all measurements with it have in common."""
    for candidate in find_generic(evidence, events):
        for parts in _list_parts(evidence):
            bad, good = [part for part in parts if part.wrong], [part for part in parts if not part.wrong]
            host = _find_common(bad, good)
            if host is not None:
                candidate.hosts = {host: None}
                candidate.summary += f"; {host} is in all {len(bad)} measurements that have them, and in no other"
                candidate.next.insert(0, f"leave out {host}, and measure the others again")
        yield candidate


def find_slow_host(evidence: Evidence) -> Iterator[PossibleCause]:
    """The host that all slow measurements have in common, where those of other hosts are alike."""
    for parts in _list_parts(evidence):
        best = max(part.gbyte_s for part in parts)
        bad = [part for part in parts if part.gbyte_s < _LOW * best]
        good = [part for part in parts if part.gbyte_s >= _ALIKE * best]
        host = _find_common(bad, good) if len(bad) + len(good) == len(parts) else None
        if host is None:
            continue
        text = (
            f"{host} is in all {len(bad)} measurements that are slow ({_find_middle(bad):.3g} GB/s), "
            f"and in none of the {len(good)} others ({_find_middle(good):.3g})"
        )
        candidate = PossibleCause("slow-host-of-pairs", "slow", "unknown", text, "medium")
        candidate.blame(hosts=[host])
        for part in bad[:3]:
            candidate.add(evidence, part.line)
        candidate.hosts = {host: None}
        candidate.next = [
            f"`fabricscope scan` on {host}: ports, PCIe links, clocks, settings; compare it with a host that is fast",
            f"leave out {host} until then",
        ]
        yield candidate


def _list_parts(evidence: Evidence) -> Iterator[Sequence[MeasuredPart]]:
    """The measurements of a file that are alike but for their hosts."""
    for file in sorted(evidence.table_heads):
        alike: dict[tuple[str, str, int], list[MeasuredPart]] = {}
        for part in split_tables(evidence.table_lines[file], evidence.table_heads[file]):
            alike.setdefault((part.tool, part.what, part.size), []).append(part)
        yield from (parts for parts in alike.values() if len(parts) >= _LEAST_GOOD + _LEAST_BAD)


def _find_middle(parts: Sequence[MeasuredPart]) -> float:
    return sorted(part.gbyte_s for part in parts)[len(parts) // 2]


def _find_common(bad: Sequence[MeasuredPart], good: Sequence[MeasuredPart]) -> str | None:
    if len(bad) < _LEAST_BAD or len(good) < _LEAST_GOOD or len({len(part.hosts) for part in (*bad, *good)}) > 1:
        return None  # one host against two differ by what joins their GPUs
    common = frozenset.intersection(*(part.hosts for part in bad)).difference(*(part.hosts for part in good))
    partners = frozenset().union(*(part.hosts for part in bad)) - common
    are_good = bool(partners) and partners <= frozenset().union(*(part.hosts for part in good))
    return next(iter(common)) if len(common) == 1 and are_good else None
