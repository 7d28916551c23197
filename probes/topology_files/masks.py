"""Bit masks as sysfs, NCCL and hwloc write them: hexadecimal groups of 32 bits, the highest first."""

from __future__ import annotations

import re
from collections.abc import Iterable

from probes.text import Unparsable

_GROUPS_LIMIT = 2048  # 65,536 processors; the kernel's own limit is 8192
_GROUP = re.compile(r"(?:0x)?([0-9a-fA-F]{0,8})")


def members(mask: str) -> tuple[int, ...]:
    """The bits that are set, ascending. hwloc leaves groups of zeros empty. Raises Unparsable.

    >>> members("00000000,0000000f"), members("0x00000001,,0x0"), members("0x0")
    ((0, 1, 2, 3), (64,), ())
    """
    groups = mask.strip().split(",")
    if len(groups) > _GROUPS_LIMIT:
        raise Unparsable(f"a mask of more than {32 * _GROUPS_LIMIT} bits")
    value = 0
    for group in groups:
        match = _GROUP.fullmatch(group.strip())
        if match is None:
            raise Unparsable(f"not a mask: {mask[:80]!r}")
        value = value << 32 | int(match[1] or "0", 16)
    return tuple(place for place, bit in enumerate(reversed(f"{value:b}")) if bit == "1")


def cpulist(numbers: Iterable[int]) -> str:
    """Numbers, ascending, as the kernel's list of ranges.

    >>> cpulist([0, 1, 2, 8, 10, 11]), cpulist([])
    ('0-2,8,10-11', '')
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
