"""Bandwidths that a benchmark of one host measured between GPUs, or between the CPU and each GPU: a GPU that is far
slower than all others.

Sources: NVIDIA/nvbandwidth (README, output.cpp), NVIDIA/cuda-samples p2pBandwidthLatencyTest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from probes.text import ParseError, lazy_pattern
from probes.tool_reports.facts import ToolReport
from probes.tool_reports.lines import short_lines

_LIMIT_LINE = 2000
_FEWEST_GPUS = 3
_SHARE = 0.6  # of the median of the others; links of two generations differ by half
_TITLE = lazy_pattern(r"\bbandwidth\b", re.IGNORECASE)


def list_slow_gpus(text: str) -> list[ToolReport]:
    r"""GPUs all of whose bandwidths are far below those of the others in the same table. Raises ParseError.

    >>> text = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1 2 3\n 0 55.6 55.7 12.9 55.6\n"
    >>> [(report.subject, report.detail) for report in list_slow_gpus(text)]
    [('NVIDIA 2', (('what', '12.9 GB/s, the others 55.6 GB/s'),))]
    """
    tables = list(_read_tables(short_lines(text, _LIMIT_LINE)))
    if not tables:
        raise ParseError("no table of bandwidths of three GPUs or more")
    slow: dict[int, ToolReport] = {}
    for title, rows in tables:
        columns = sorted({gpu for row in rows.values() for gpu in row})
        of_pairs = len(rows) > 1
        for gpu in columns:
            own = [value for at, row in rows.items() for to, value in row.items() if _is_of(gpu, at, to, of_pairs)]
            others = [value for at, row in rows.items() for to, value in row.items()
                      if not _is_of(gpu, at, to, of_pairs) and not (of_pairs and at == to)]  # fmt: skip
            if own and others and max(own) < _SHARE * median(others):
                what = f"{median(own):g} GB/s, the others {median(others):g} GB/s"
                slow.setdefault(
                    gpu, ToolReport("measured-slow", f"NVIDIA {gpu}", f"{title}: {what}", (("what", what),))
                )
    return list(slow.values())


def _is_of(gpu: int, row: int, column: int, of_pairs: bool) -> bool:
    """Whether a value is of that GPU: of a pair with it, without its own memory; or of the CPU and it."""
    return row != column and gpu in (row, column) if of_pairs else gpu == column


def _read_tables(lines: list[str]) -> Iterator[tuple[str, dict[int, dict[int, float]]]]:
    """Each table of bandwidths: its title, and the values by row and column. Times are left out."""
    title, columns, rows = "", list[int](), dict[int, dict[int, float]]()
    for line in [*lines, ""]:
        words = line.split()
        if columns and len(words) == len(columns) + 1 and words[0].isdecimal():
            values = ((column, _read_value(word)) for column, word in zip(columns, words[1:], strict=True))
            rows[int(words[0][:3])] = {column: value for column, value in values if value is not None}
            continue
        if len(columns) >= _FEWEST_GPUS and rows and _TITLE.search(title):
            yield title, rows
        columns, rows = [], {}
        numbers = words[1:] if words[:1] == ["D\\D"] else words
        if numbers and numbers == [str(number) for number in range(len(numbers))]:
            columns = list(range(len(numbers)))
        elif words:
            title = " ".join(words)[:120]


def _read_value(word: str) -> float | None:
    try:
        return float(word[:20])
    except ValueError:  # "N/A": its own memory
        return None
