"""A rank that is slower than all others, by values that a log lists for each rank."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, name_numbers, suspect_ranks
from agent.job.evidence import Evidence
from agent.job.rank_values import Extremes, RankBlock
from probes.text import find_median, lazy_pattern

_LEAST_RANKS, _MANY_RANKS = 4, 8
_RATE_BELOW, _TIME_ABOVE = 0.8, 1.25  # of the median of all
_CLEAR = 2.0  # times the spread of the others
_WAITS_LESS = 0.5  # of what every other rank waits
_OF_WORK, _FAR = ("MHz", "W", "TF"), 1.5  # a GPU that is slow has the least of several of these
_NOTICED = 0.1  # of all times of a row
_SHARE = 4  # at most one rank in so many
_TRANSFERS = lazy_pattern(
    r"all.?reduce|all.?gather|reduce.?scatter|all.?to.?all|broadcast|dispatch|combine|send|recv|p2p|comm|nccl|network|busbw|algbw|rdma|\bib\b",
    re.IGNORECASE,
)
_STEP = lazy_pattern(r"\b(?:step|iter\w{0,8}|epoch|batch) ?\d{1,9} ", re.IGNORECASE)
_GPU_STEP = (
    "clocks, throttling, power limit, PCIe width and Xids of its GPU: `fabricscope scan` on its host; its CPU binding "
    "and data loader"
)
_LOADS = lazy_pattern(r"\bdata|load", re.IGNORECASE)
_WAITS = lazy_pattern(r"wait|barrier|idle|bubble|sync", re.IGNORECASE)


def find_slow_ranks(evidence: Evidence) -> Iterator[PossibleCause]:
    """Ranks that are outliers in most blocks of a quantity; one candidate per set of ranks."""
    blocks: dict[str, list[RankBlock]] = defaultdict(list)
    for block in evidence.rank_values.blocks:
        blocks[_STEP.sub("", block.name)].append(block)
    slow: dict[tuple[int, ...], list[RankBlock]] = defaultdict(list)
    waits: list[RankBlock] = []
    totals = _sum_rows(evidence.rank_values.blocks)
    for name, rows in blocks.items():
        if not rows[0].is_rate and (_TRANSFERS.search(name) or _WAITS.search(name)):
            waits += rows  # who comes last waits least
            continue
        judged = [row for row in rows if len(row.values) >= _LEAST_RANKS]
        noticed = [row for row in judged if not _is_small(row, totals)]
        latest = judged[len(judged) // 2 :]  # a rank may have become slow
        counts = Counter(rank for row in noticed if row in latest for rank in _find_outliers(row))
        ranks = tuple(sorted(rank for rank, count in counts.items() if 2 * count > len(latest)))
        shown = next((row for row in reversed(noticed) if ranks and set(ranks) <= set(_find_outliers(row))), None)
        if shown is not None:
            slow[ranks].append(shown)
    if not slow:
        yield from _find_stated(evidence)
        yield from _find_extreme(evidence)
    for ranks, rows in slow.items():
        candidate = _describe(evidence, ranks, rows, len(blocks) > len(rows))
        if waited := next((row for row in waits if _is_waited_for(row, ranks)), None):
            candidate.confidence = "medium"
            candidate.summary += f"; they wait for it: {_compare(waited, ranks)}"
        yield candidate


def _find_stated(evidence: Evidence) -> Iterator[PossibleCause]:
    """The rank that most reports of a slowest one name, by far slower than usual."""
    stated = evidence.rank_values.slowest
    counts = Counter(row.rank for row in stated if row.value > _TIME_ABOVE * row.usual)
    rank, count = next(iter(counts.most_common(1)), (0, 0))
    rows = [row for row in stated if row.rank == rank]
    if 2 * count <= len(stated):
        return
    for row in rows:
        if row.host:
            evidence.ranks.host_of.setdefault(rank, row.host)
    candidate = suspect_ranks(
        evidence, "rank-slower", "slow", [rank], f"is slower than the others: {rows[-1].text}", "low"
    )
    for row in rows[:3]:
        candidate.show_text(row.text, evidence.names[row.file], row.line)
    candidate.next = [_GPU_STEP]
    yield candidate


def _find_extreme(evidence: Evidence) -> Iterator[PossibleCause]:
    """The rank whose steps take by far the longest in most reports of extremes; what else it is the extreme of."""
    reports = evidence.rank_values.extremes
    longest: list[tuple[int, Extremes]] = []
    for report in reports:
        times = [
            (most, least, rank) for least, _, most, rank, unit in report.rows.values() if unit in ("ms", "us", "s")
        ]
        most, least, rank = max(times, default=(0.0, 0.0, 0))  # of the step, not of a part of it
        if most > _TIME_ABOVE * least:
            longest.append((rank, report))
            continue
        low = Counter(
            rank for least, rank, most, _, unit in report.rows.values() if unit in _OF_WORK and most > _FAR * least
        )
        rank, quantities = next(iter(low.most_common(1)), (0, 0))
        if quantities > 1:
            longest.append((rank, report))
    rank, count = next(iter(Counter(number for number, _ in longest).most_common(1)), (0, 0))
    if count < 2 or 2 * count <= len(reports):
        return
    report = next(report for number, report in reversed(longest) if number == rank)
    own = [
        f"{name} {least if least_of == rank else most:g}{unit} ({'most' if least_of == rank else 'least'} of others "
        f"{most if least_of == rank else least:g})"
        for name, (least, least_of, most, most_of, unit) in report.rows.items()
        if (rank in (least_of, most_of)) and most > _TIME_ABOVE * least
    ]
    candidate = suspect_ranks(
        evidence, "rank-slower", "slow", [rank], f"is slower than the others: {', '.join(own[:5])}", "medium"
    )
    for _, shown in longest[-3:]:
        candidate.show_text(shown.text[:400], evidence.names[shown.file], shown.line)
    candidate.next = [
        _GPU_STEP,
        "where its clock is low and its temperature high: airflow, fans and heat sink of that host: "
        "`nvidia-smi -q -d PERFORMANCE,TEMPERATURE` there",
    ]
    yield candidate


def _is_waited_for(block: RankBlock, ranks: tuple[int, ...]) -> bool:
    """Whether all others spend far longer in a transfer, or a wait, than these ranks."""
    own = [row.value for rank, row in block.values.items() if rank in ranks]
    others = [row.value for rank, row in block.values.items() if rank not in ranks]
    return len(own) == len(ranks) and len(others) >= _LEAST_RANKS - 1 and max(own) < _WAITS_LESS * min(others)


def _sum_rows(blocks: list[RankBlock]) -> dict[tuple[int, int, str], float]:
    """The usual sum of the times that are in one row, by its file, first line and unit."""
    totals: dict[tuple[int, int, str], float] = defaultdict(float)
    for block in blocks:
        if not block.is_rate:
            totals[_place(block)] += find_median(row.value for row in block.values.values())
    return totals


def _place(block: RankBlock) -> tuple[int, int, str]:
    return block.file, min(row.line for row in block.values.values()), block.unit


def _is_small(block: RankBlock, totals: dict[tuple[int, int, str], float]) -> bool:
    """Whether the longest of these times is longer by no more than a small part of what a row takes."""
    if block.is_rate:
        return False
    times = [row.value for row in block.values.values()]
    return max(times) - find_median(times) < _NOTICED * totals[_place(block)]


def _find_outliers(block: RankBlock) -> list[int]:
    """The ranks that are slower by far more than the others differ among themselves."""
    values = {rank: row.value for rank, row in block.values.items()}
    usual = find_median(values.values())
    if usual <= 0:
        return []
    slow = [
        rank
        for rank, value in values.items()
        if (value < _RATE_BELOW * usual if block.is_rate else value > _TIME_ABOVE * usual)
    ]
    others = [value for rank, value in values.items() if rank not in slow]
    if not slow or len(slow) * _SHARE > len(values):
        return []
    spread = (max(others) - min(others)) / usual
    nearest = min(abs(values[rank] - usual) / usual for rank in slow)
    return slow if nearest >= _CLEAR * spread else []


def _describe(evidence: Evidence, ranks: tuple[int, ...], rows: list[RankBlock], has_others: bool) -> PossibleCause:
    first = rows[0]
    for row in rows:
        for rank, host in row.hosts.items():
            evidence.ranks.host_of.setdefault(rank, host)
    shown = [_compare(row, ranks) for row in rows]
    most = max(len(row.values) for row in rows)
    is_sure = most >= _MANY_RANKS and all(row.is_rate for row in rows)
    verb = "is" if len(ranks) == 1 else "are"
    candidate = suspect_ranks(
        evidence,
        "rank-slower",
        "slow",
        ranks,
        f"{verb} slower than the others: {shown[0]}",
        "medium" if is_sure else "low",
    )
    for text, row in zip(shown, rows, strict=True):
        candidate.show_text(text, evidence.names[row.file], row.values[ranks[0]].line)
    candidate.next = []
    transfers = [row for row in rows if _TRANSFERS.search(row.name)]
    if transfers:
        candidate.next.append(
            "link, port, rail and cable of its NIC, NVLink of its GPU: rates and errors: `fabricscope scan` on its host"
        )
    if len(transfers) < len(rows):
        candidate.next.append(_GPU_STEP)
    if any(_LOADS.search(row.name) for row in rows):
        candidate.next.insert(0, "its data loader against the others': number of workers, CPU binding, storage")
    if not first.is_rate:
        candidate.next.append("whether it has other work than they have, as the first or last stage of a pipeline has")
    if transfers and has_others and len(transfers) == len(rows):
        candidate.summary += "; its other values are as theirs"
    return candidate


def _compare(block: RankBlock, ranks: tuple[int, ...]) -> str:
    own = [block.values[rank].value for rank in ranks]
    others = [row.value for rank, row in block.values.items() if rank not in ranks]
    value = max(own) if not block.is_rate else min(own)
    who = "" if len(ranks) == 1 else f" (ranks {name_numbers(ranks)})"
    unit = f" {block.unit}" if block.unit else ""
    return f"{block.name} {value:.4g}{unit}{who}, the other {len(others)} about {find_median(others):.4g}{unit}"
