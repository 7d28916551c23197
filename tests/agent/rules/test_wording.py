"""Votes and lists that people can read."""

from __future__ import annotations

import pytest

from agent.rules.wording import format_ranges


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], "none"),
        ([7], "7"),
        ([0, 1], "0-1"),
        ([0, 2], "0, 2"),
        ([3, 0, 1, 5, 2], "0-3, 5"),
    ],
)
def test_numbers_as_people_write_them(numbers: list[int], words: str) -> None:
    """Neighbours as a range, a number alone as it is, whatever the order."""
    assert words == format_ranges(numbers)
