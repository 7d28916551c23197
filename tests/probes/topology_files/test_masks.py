"""Masks in every spelling are lists of processors, and a mask that is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.system.cpu import cpulist, members, parse_cpulist
from probes.text import ParseError


@given(st.sets(st.integers(0, 4000)))
def test_a_mask_is_the_list_that_the_kernel_would_print(numbers: set[int]) -> None:
    """Groups of 32 bits, the highest first, with or without 0x, empty where zero."""
    value = sum(1 << number for number in numbers)
    groups = [f"{value >> shift & 0xFFFFFFFF:08x}" for shift in range(4000 // 32 * 32, -1, -32)]

    assert tuple(sorted(numbers)) == members(",".join(groups)) == parse_cpulist(cpulist(sorted(numbers)))
    assert members(",".join(groups)) == members(",".join("" if int(g, 16) == 0 else f"0x{g}" for g in groups))


@pytest.mark.parametrize("mask", ["0-3", "0xf...f,0x1", "123456789", "0x1;0x2", ",".join(["0"] * 3000)])
def test_what_is_no_mask_is_refused(mask: str) -> None:
    """Among them hwloc's mask without end."""
    with pytest.raises(ParseError):
        members(mask)
