"""What the shape of a measured table shows, whatever the machine: where it falls, scatters, or is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from statistics import median

from agent.model.recommend_answers import MeasuredTable, Measurement

_LARGE = 8_000_000  # bytes from which bandwidth decides, not latency
_SHARES = ((1, 8), (1, 4), (3, 8), (1, 2), (5, 8), (3, 4), (7, 8))


def describe_shape(table: MeasuredTable) -> list[str]:
    """What nccl-tests rows show, the most specific first."""
    rows = [row for row in table.rows if row.tool == "nccl-tests"]
    texts = [text for run in _runs(rows) for text in _describe(run, table)]
    return list(dict.fromkeys(texts))


def describe_share(measured: float, expected: float, rails: int) -> str | None:
    """Which part of the rails would give what was measured.

    >>> describe_share(180.0, 360.0, 8)
    'about 1/2 of what is expected: that share of the rails is in use, or half by ACS or copies through host memory'
    """
    for part, whole in _SHARES:
        if rails % whole == 0 and abs(measured / expected - part / whole) < 0.04:
            half = ", or half by ACS or copies through host memory" if (part, whole) == (1, 2) else ""
            return f"about {part}/{whole} of what is expected: that share of the rails is in use{half}"
    return None


def _runs(rows: Sequence[Measurement]) -> Iterator[list[Measurement]]:
    """Rows of one run each: sizes rise within it."""
    run: list[Measurement] = []
    for row in rows:
        if run and (row.size_bytes or 0) < (run[-1].size_bytes or 0):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _describe(run: list[Measurement], table: MeasuredTable) -> Iterator[str]:
    wrong = sum(row.wrong or 0 for row in run)
    if wrong:
        yield (
            f"{wrong} wrong values: data is corrupted (GPU memory, relaxed ordering on the NIC, "
            f"NCCL_CHUNK_SIZE): stop using these nodes"
        )
    large = [row for row in run if (row.size_bytes or 0) >= _LARGE]
    if large and not any(row.gbyte_s for row in large):
        yield "bus bandwidth is 0 in every row: one rank in each job; nccl-tests were built without MPI=1"
        return
    if len(large) >= 3:
        fall = _find_fall(large)
        if fall is not None:
            yield fall
        else:
            yield from _scatter(large)
            yield from _places(large)
        top = max(row.gbyte_s for row in large)
        if (table.hosts or 1) > 1 and 0.5 < top < 3.5 and fall is None:
            yield f"a plateau of {top:.1f} GB/s between hosts: TCP sockets, unless the network is that slow"


def _find_fall(rows: list[Measurement]) -> str | None:
    """A fall by more than four fifths at one size, from which it does not recover."""
    top = 0.0
    for number, row in enumerate(rows):
        after = [later.gbyte_s for later in rows[number:]]
        if top and max(after) < 0.2 * top and len(after) >= 2:
            return (
                f"falls from {top:.3g} to {row.gbyte_s:.3g} GB/s at {_size(row)} and stays there: loss under load "
                "(RoCE without PFC or ECN, incast), which drops and retransmissions of the rails show"
            )
        top = max(top, row.gbyte_s)
    return None


def _scatter(rows: list[Measurement]) -> Iterator[str]:
    """Single rows that are off, a step that recovers, or rows that go up and down."""
    values = [row.gbyte_s for row in rows]
    changes = [(later - earlier) / max(earlier, 1e-9) for earlier, later in itertools.pairwise(values)]
    turns = sum(one * other < 0 and abs(one) > 0.15 and abs(other) > 0.15 for one, other in itertools.pairwise(changes))
    if turns >= 3:
        yield (
            "goes up and down from size to size: a shared fabric, ECMP collisions, starved proxy threads or "
            "power limits; repeat before judging"
        )
        return
    for number in range(1, len(values) - 1):
        neighbors = min(values[number - 1], values[number + 1])
        if values[number] < 0.7 * neighbors:
            yield (
                f"only the row of {_size(rows[number])} is off ({values[number]:.3g} GB/s): noise, such as "
                f"another job; repeat before judging"
            )
    for number, change in enumerate(changes):
        later = values[number + 1 :]
        if -0.5 <= change <= -0.2 and max(later) > values[number] and len(later) > 1:
            yield (
                f"a step down at {_size(rows[number + 1])} that recovers: NCCL changes its algorithm or "
                f"protocol there; harmless"
            )


def _places(rows: list[Measurement]) -> Iterator[str]:
    """Out of place against in place."""
    ratios = [
        row.in_place_gbyte_s / row.out_of_place_gbyte_s
        for row in rows[len(rows) // 2 :]
        if row.in_place_gbyte_s and row.out_of_place_gbyte_s
    ]
    if ratios and not 0.85 < median(ratios) < 1.18:
        better = "in place" if median(ratios) > 1 else "out of place"
        yield (
            f"{better} is {abs(median(ratios) - 1) * 100:.0f}% off the other at large sizes: the first column is "
            f"cold (too few "
            "warm-up iterations, registration, clocks); if it stays over repeats: buffers on another NUMA node"
        )


def _size(row: Measurement) -> str:
    size = float(row.size_bytes or 0)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"
