"""PCIe errors: how many a link may count, and which device a fault is about; the rest is rows of tests/matrix/rules."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.pcie.counters import error_budget
from tests.agent.rules.rows import link


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [(32.0, 16, 31), (16.0, 16, 16), (8.0, 16, 8), (64.0, 16, 62), (2.5, 1, 1), (128.0, 16, 62), (32.0, 8, 16)],
)
def test_the_budget_is_a_bit_error_rate(speed: float, width: int, expected: int) -> None:
    """DCGM's table, by the best speed and width."""
    assert expected == error_budget(link(max_speed_gt_s=speed, max_width=width))
    assert 31 == error_budget(None)


def test_a_link_whose_best_speed_is_not_known_has_the_budget_of_its_speed() -> None:
    """8 errors a minute at 8 GT/s, 31 where neither is known."""
    unread = msgspec.structs.replace(link(8.0, 16), max_speed_gt_s=None)

    assert 8 == error_budget(unread)
    assert 31 == error_budget(msgspec.structs.replace(unread, speed_gt_s=None))
