"""Rows that count up, of which one has the number of another: an address or rank twice, and one is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address
from itertools import pairwise

from probes.text import lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault

_FEWEST, _LONGEST, _MOST_ROWS = 4, 240, 512
_NUMBER = lazy_pattern(
    r"(?<![\w.])(?P<address>(?:\d{1,3}\.){3}\d{1,3})(?![\w.:])"
    r"|\b(?P<label>(?:\w{0,12}(?i:rank)(?:_id)?|device_id|gpu|GPU|mlx5))[\"']?[ :=_]{1,3}[\"']?(?P<number>\d{1,4})\b"
)
_NAME = lazy_pattern(r"(?<![\w./:-])[A-Za-z_][\w.-]{0,40}?\d{1,5}(?![\w.-])(?![/:]\d)")
_DATED = lazy_pattern(r"\W*(?:\d{4}-\d\d|\d\d:\d\d:|[A-Z][a-z]{2} [ \d]\d )")  # a log's line
_DIGITS = lazy_pattern(r"(?:[0-9a-fA-F]{2}[:-]){5,7}[0-9a-fA-F]{2}|0x[0-9a-fA-F]{1,40}|\d+")
_SIGNS = lazy_pattern(r"[^\w.:=-]+")


def list_numbers_twice(lines: Sequence[str]) -> Iterator[ToolReport]:
    """
    >>> rows = [f"| gpu-{n} | 10.0.0.{n - (n == 13)} |" for n in range(10, 15)]
    >>> [report.detail for report in list_numbers_twice(rows)]
    [(('what', '10.0.0.12 of gpu-12 and of gpu-13, and 10.0.0.13 is missing'),)]
    >>> list(list_numbers_twice([f"| gpu-{n} | 10.0.0.{n % 2} |" for n in range(8)]))
    []
    """
    groups: dict[str, list[str]] = {}
    for line in lines:
        if len(line) <= _LONGEST and any(map(str.isdigit, line)) and not _DATED.match(line):
            groups.setdefault(" ".join(_SIGNS.sub(" ", _DIGITS.sub("0", line)).split()), []).append(line)
    for rows in groups.values():
        if _FEWEST <= len(rows) <= _MOST_ROWS:
            with suppress(ValueError):  # 10.0.0.999
                yield from _compare(rows)


def _compare(rows: Sequence[str]) -> Iterator[ToolReport]:
    found = [list(_NUMBER.finditer(row)) for row in rows]
    names = [match[0] if (match := _NAME.search(row)) else "" for row in rows]
    are_named = len(set(names)) == len(names) and all(names)
    for at in range(min(map(len, found)) if are_named or '"' in rows[0] else 0):
        cells = [matches[at] for matches in found]
        values = [int(IPv4Address(cell["address"]) if cell["address"] else cell["number"]) for cell in cells]
        odd = _find_odd(values)
        own = [row[: cell.start()] + row[cell.end() :] for row, cell in zip(rows, cells, strict=True)]
        if odd is None or len(set(own)) < len(own):
            continue
        number, wanted = odd
        pair = [one for one, value in enumerate(values) if value == values[number]]
        twice, missing = (
            str(IPv4Address(value)) if cells[0]["address"] else f"{cells[0]['label']} {value}"
            for value in (values[number], wanted)
        )
        parts = [names[one] if are_named else f"row {one + 1}" for one in pair]
        what = f"{twice} of {' and of '.join(parts)}, and {missing} is missing"
        yield state_fault("number-twice", names[number] or None, what, rows[number].strip())


def _find_odd(values: Sequence[int]) -> tuple[int, int] | None:
    """The one row that does not count up as the others do and has the number of another; with the number that it should
    have."""
    steps = Counter(b - a for a, b in pairwise(values))
    step = steps.most_common(1)[0][0]
    bases = [value - step * at for at, value in enumerate(values)]
    base, times = Counter(bases).most_common(1)[0]
    if not step or times != len(values) - 1:
        return None
    number = next(at for at, one in enumerate(bases) if one != base)
    return (number, base + step * number) if values.count(values[number]) > 1 else None
