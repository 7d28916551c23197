"""Bandwidths that a benchmark of one host measured between GPUs, or between the CPU and each GPU: a GPU that is far
slower than all others.

Sources: NVIDIA/nvbandwidth (README, output.cpp), NVIDIA/cuda-samples p2pBandwidthLatencyTest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.text import find_median, lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_LIMIT_LINE = 2000
_FEWEST_GPUS = 2
_ALIKE = 0.8  # of the median: pairs that are alike
_SHARE = 0.6  # of the median of the others; links of two generations differ by half
_TITLE = lazy_pattern(r"\bbandwidth\b|\b[GM]B/s", re.IGNORECASE)
_DIRECT = lazy_pattern(r"\bUnidirectional P2P=Enabled\b|^memcpy CE GPU\(row\) (?:->|<-) GPU\(column\)")
_TO_HOST = lazy_pattern(r"(?:Host to Device|Device to Host) Bandwidth, \d{1,3} Device\(s\)")
_TRANSFER = lazy_pattern(r"\d{4,12}\s+(?P<rate>\d{1,5}(?:\.\d{1,3})?)")
_LARGE = 1_000_000  # bytes; smaller transfers are slow by themselves
_OF_GPUS = ("gpu", "gpus", "device", "dev", "npu")  # a heading whose numbers are theirs
_CORNER = lazy_pattern(r"\w{1,8}[\\/]D")
_ACCESS = lazy_pattern(
    r"(?m)^[> \t]*Device=(?P<one>\d{1,3}) (?P<can>CAN|CANNOT) Access Peer Device=(?P<other>\d{1,3})\b"
)
_CONNECTIVITY = "P2P Connectivity Matrix"
_PAIRS_SHOWN = 4
_NARROW = 8.0  # GB/s; 16 lanes of PCIe 3.0 carry 10 to 13


def list_slow_gpus(text: str) -> list[ToolReport]:
    r"""GPUs all of whose bandwidths are far below those of the others in the same table. Raises ParseError.

    >>> text = "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1 2 3\n 0 55.6 55.7 12.9 55.6\n"
    >>> [(report.subject, report.detail) for report in list_slow_gpus(text)]
    [('NVIDIA 2', (('what', '12.9 GB/s, the others 55.6 GB/s'),))]
    >>> pairs = "copies, GB/s\n D/D 0 1 2 3\n 0 999 46 46 46\n 1 46 999 46 11.5\n 2 46 46 999 46\n 3 46 12 46 999\n"
    >>> [(report.code, report.detail) for report in list_slow_gpus(pairs)]
    [('measured-pair', (('what', 'GPU1 to GPU3 11.5 GB/s, the other pairs 46 GB/s'),))]
    """
    lines = short_lines(text, _LIMIT_LINE)
    tables, of_host = list(_read_tables(lines)), _list_transfers(lines)
    if of_host:
        slowest, title = min(of_host)
        what = f"{title} {slowest:g} GB/s"
        return [state_fault("measured-host", None, what)] if slowest < _NARROW else []
    access = _list_no_access(text, lines)
    require(tables or access is not None, "no table of bandwidths of two GPUs or more")
    slow: dict[int, ToolReport] = {}
    narrow, pairs = list[ToolReport](), list[ToolReport]()
    for title, rows in tables:
        if _DIRECT.search(title):
            narrow += list(_list_narrow(title, rows))
        columns = sorted({gpu for row in rows.values() for gpu in row})
        of_pairs = len(rows) > 1
        for gpu in columns:
            own = [value for at, row in rows.items() for to, value in row.items() if _is_of(gpu, at, to, of_pairs)]
            others = [value for at, row in rows.items() for to, value in row.items()
                      if not _is_of(gpu, at, to, of_pairs) and not (of_pairs and at == to)]  # fmt: skip
            if len(others) > 1 and own and max(own) < _SHARE * find_median(others):
                what = f"{find_median(own):g} GB/s, the others {find_median(others):g} GB/s"
                slow.setdefault(gpu, state_fault("measured-slow", f"NVIDIA {gpu}", what, f"{title}: {what}"))
        pairs += [] if slow or narrow else _list_slow_pairs(title, rows)
    return [*slow.values(), *narrow[:1], *pairs[:1], *(access or ())]


def _list_no_access(text: str, lines: list[str]) -> list[ToolReport] | None:
    """Pairs of GPUs between which CUDA cannot copy directly, by p2pBandwidthLatencyTest; None: it states nothing of it.

    >>> text = "Device=0 CAN Access Peer Device=1\\nDevice=0 CANNOT Access Peer Device=2\\n"
    >>> [report.detail for report in _list_no_access(text, []) or ()]
    [(('what', 'GPU0-GPU2, 1 of 2 pairs'),)]
    """
    pairs: dict[tuple[int, int], bool] = {}
    for match in _ACCESS.finditer(text):
        pairs[_sort_pair(int(match["one"]), int(match["other"]))] = match["can"] == "CAN"
    for title, rows in _read_tables(lines, _CONNECTIVITY):
        if title == _CONNECTIVITY:
            pairs |= {_sort_pair(row, to): can > 0 for row, cells in rows.items() for to, can in cells.items()}
    pairs = {pair: can for pair, can in pairs.items() if pair[0] != pair[1]}
    if not pairs:
        return None
    closed = [f"GPU{one}-GPU{other}" for (one, other), can in sorted(pairs.items()) if not can]
    if not closed:
        return []
    more = f" and {len(closed) - _PAIRS_SHOWN} more" if len(closed) > _PAIRS_SHOWN else ""
    what = f"{', '.join(closed[:_PAIRS_SHOWN])}{more}, {len(closed)} of {len(pairs)} pairs"
    return [state_fault("measured-no-access", None, what)]


def _sort_pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _list_slow_pairs(title: str, rows: dict[int, dict[int, float]]) -> list[ToolReport]:
    """The one pair that is far slower than the others, where these are alike."""
    values = {(row, to): value for row, own in rows.items() for to, value in own.items() if row != to and len(rows) > 1}
    usual = find_median(values.values()) if values else 0.0
    odd = [pair for pair, value in values.items() if value < _ALIKE * usual]
    if len({frozenset(pair) for pair in odd}) != 1 or values[odd[0]] >= _SHARE * usual:
        return []
    what = f"GPU{odd[0][0]} to GPU{odd[0][1]} {values[odd[0]]:g} GB/s, the other pairs {usual:g} GB/s"
    return [state_fault("measured-pair", None, what, f"{title}: {what}")]


def _list_transfers(lines: list[str]) -> list[tuple[float, str]]:
    """The rates of bandwidthTest between host and GPU with their direction, of pinned memory and large transfers."""
    rates, title, is_pinned = list[tuple[float, str]](), "", False
    for line in map(str.strip, lines):
        if heading := _TO_HOST.match(line):
            title, is_pinned = heading[0].partition(" Bandwidth")[0].lower(), False
        elif "Memory Transfers" in line:
            is_pinned = line.startswith("PINNED")
        elif line.startswith("Device to Device"):
            title = ""
        elif title and is_pinned and (row := _TRANSFER.fullmatch(line)) and int(line.split()[0]) >= _LARGE:
            rate = float(row["rate"])
            rates.append((rate / 1000 if rate > 1000 else rate, title))  # older releases print MB/s
    return rates


def _list_narrow(title: str, rows: dict[int, dict[int, float]]) -> Iterator[ToolReport]:
    """The slowest pair between which even a direct copy is slower than 16 lanes of PCIe 3.0 are."""
    pairs = [(value, row, column) for row, values in rows.items() for column, value in values.items() if row != column]
    value, row, column = min(pairs, default=(_NARROW, 0, 0))
    if 0 < value < _NARROW:
        what = f"GPU{row} to GPU{column} {value:g} GB/s"
        yield state_fault("measured-narrow", None, what, f"{title}: {what}")


def _is_of(gpu: int, row: int, column: int, of_pairs: bool) -> bool:
    """Whether a value is of that GPU: of a pair with it, without its own memory; or of the CPU and it."""
    return row != column and gpu in (row, column) if of_pairs else gpu == column


def _read_tables(lines: list[str], also: str = "") -> Iterator[tuple[str, dict[int, dict[int, float]]]]:
    """Each table of bandwidths: its title, and the values by row and column. Times are left out. `also`: the title of
    another one."""
    title, columns, rows, labelled = "", list[int](), dict[int, dict[int, float]](), False
    for line in [*lines, ""]:
        words = line.split()
        if columns and len(words) == len(columns) + 1 and (words[0].isdecimal() or labelled):
            values = ((column, _read_value(word)) for column, word in zip(columns, words[1:], strict=True))
            row = {column: value for column, value in values if value is not None}
            if not labelled:
                rows[int(words[0][:3])] = row
            elif len(row) >= _FEWEST_GPUS and _TITLE.search(title):
                yield f"{title}, {words[0]}", {0: row}
            continue
        if len(columns) >= _FEWEST_GPUS and rows and (_TITLE.search(title) or title == also):
            yield title, rows
        columns, rows = [], {}
        corner = words[0] if words else ""
        of_gpus, is_corner = corner.lower() in _OF_GPUS, _CORNER.fullmatch(corner) is not None
        labelled = of_gpus or (is_corner and len(corner) > len("D/D"))  # rows are directions: "Dir\\D"
        numbers = words[1:] if of_gpus or is_corner else words
        if numbers and numbers == [str(number) for number in range(len(numbers))]:
            columns = list(range(len(numbers)))
        elif words:
            title = " ".join(words)[:120]


def _read_value(word: str) -> float | None:
    try:
        return float(word[:20])
    except ValueError:  # "N/A": its own memory
        return None
