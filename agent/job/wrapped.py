"""Lines that a terminal cut at its width before they were copied: joined again, so that their patterns match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise

_WIDTHS = range(72, 401)  # of terminals
_LEAST = 2  # lines that are cut, with different texts
_DIGITS = b"0123456789"
# What begins a line of its own: brackets of prefixes and times, quotes, tables, rules, a date, a traceback
_BEGINS = re.compile(
    rb"[\s\[(<>|`#*=+\-\"'~]|\d{4}[-/]|\d{1,7}: |Traceback |\w[\w.-]{0,63}:\d{1,8}:\d{1,8} \[|\w{3} [ \d]\d |"
    rb"[\w.]{1,80}(?:Error|Exception|Warning)\b|(?:INFO|WARN|ERROR|DEBUG|NCCL|RCCL|srun|slurmstepd)\b"
)
_WORD = re.compile(rb"[A-Za-z_]{2,40}")


def read_sample(lines: Iterator[bytes], count: int) -> tuple[list[bytes], Iterator[bytes]]:
    """The first lines of a file and the rest, joined where a terminal cut them."""
    sample = list(islice(lines, count))
    width = find_width(sample)
    if width is None:
        return sample, lines
    joined = join_wrapped(chain(sample, lines), width)
    return list(islice(joined, count)), joined


def find_width(sample: Sequence[bytes]) -> int | None:
    """The width at which long lines of a file are cut, where they are."""
    lines = [line.rstrip(b"\r\n") for line in sample]
    width = max((len(line) for line in lines), default=0)
    if width not in _WIDTHS:
        return None
    cut = {
        line.translate(None, _DIGITS)
        for line, following in pairwise(lines)
        if len(line) == width and not line[-1:].isspace() and _goes_on(line, following)
    }
    return width if len(cut) >= _LEAST else None


def join_wrapped(lines: Iterator[bytes], width: int) -> Iterator[bytes]:
    """The lines as they were; in place of what is joined to the line above it there is an empty one."""
    above, empty = next(lines, None), 0
    for line in lines:
        if above is None:
            break
        end = above.rstrip(b"\r\n")
        if end and len(end) % width == 0 and len(end) < 40 * width and _goes_on(end, line.removeprefix(b" ")):
            above, empty = end + line, empty + 1
            continue
        yield above
        yield from [b"\n"] * empty
        above, empty = line, 0
    if above is not None:
        yield above
        yield from [b"\n"] * empty


def _goes_on(line: bytes, following: bytes) -> bool:
    """Whether a line that ends at the width goes on in the next one; rows of a table begin alike."""
    if not following.strip() or _BEGINS.match(following) is not None:
        return False
    first, second = _WORD.match(line), _WORD.match(following)
    return first is None or second is None or first[0] != second[0]
