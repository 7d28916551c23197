"""What a PCIe link carries in one direction."""

from __future__ import annotations

import pytest

from agent.model.pci import bandwidth_gbyte_s, generation


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [
        (2.5, 1, 0.25),
        (5.0, 4, 2.0),
        (8.0, 16, 15.754),
        (16.0, 16, 31.508),
        (32.0, 16, 63.015),
        (64.0, 16, 118.0),
        (64.0, 1, 7.375),
    ],
)
def test_bandwidth_is_after_line_coding(speed: float, width: int, expected: float) -> None:
    """8b/10b, 128b/130b, FLIT."""
    assert expected == bandwidth_gbyte_s(speed, width)


@pytest.mark.parametrize(("speed", "width"), [(None, 16), (8.0, None), (8.0, 0), (3.0, 16)])
def test_what_is_not_known_has_no_bandwidth(speed: float | None, width: int | None) -> None:
    """Never 0."""
    assert bandwidth_gbyte_s(speed, width) is None


def test_generations_count_from_one() -> None:
    """A speed of no generation has none."""
    assert [1, 3, 5, 6, None, None] == [generation(s) for s in (2.5, 8.0, 32.0, 64.0, 9.9, None)]
