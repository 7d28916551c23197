"""roce-rt-pause-sent: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.pause import roce_rt_pause_sent as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.moves import (
    NETDEV,
    PORT,
    WIRE_GUARDS,
    moved,
    one,
    roce,
    severities,
    silent,
    storage,
    without,
    without_window,
)

FIRING = moved(roce(), NETDEV, {"tx_prio3_pause_duration": 72000000}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "warning")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "paused its switch for 2% of 60 min, limit 1%" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("tx_prio3_pause_duration" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"tx_prio3_pause_duration": 72000000}, 3600.0, "warning"),
        ({"tx_prio3_pause_duration": 36000000}, 3600.0, None),
        ({"tx_prio3_pause_duration": 361000000}, 3600.0, "error"),
        ({"tx_prio3_pause_duration": 360000000}, 3600.0, "warning"),
        ({"rx_prio3_pause_duration": 3600000000}, 3600.0, None),
    ],
)
def test_the_limits(counters: dict[str, int], seconds: float, expected: str | None) -> None:
    """Exactly at the limit, below it, and in a window that is too short to say."""
    case = moved(roce(), NETDEV, counters, seconds)

    if expected == "unknown":
        assert isinstance(one(rule, case, PORT), Unknown)
    elif expected is None:
        assert Pass(PORT) == one(rule, case, PORT)
    else:
        assert [(PORT, expected)] == severities(rule, case)


def test_what_counters_stand_at_says_nothing() -> None:
    """Large and unmoved: every port passes."""
    assert Pass(PORT) == one(rule, roce(), PORT)


def test_without_an_earlier_sample_it_is_unknown() -> None:
    """The first run on a node."""
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert [(PORT, "info")] == severities(rule, storage(FIRING))


def test_a_driver_that_does_not_count_it_is_not_judged() -> None:
    """Nothing can be said, and nothing is wrong."""
    assert isinstance(one(rule, without(FIRING, "tx_prio3_pause_duration"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)
