"""roce-rt-pause-storm: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.pause import roce_rt_pause_storm as rule
from agent.rules.rule import (
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.moves import (
    NETDEV,
    PORT,
    WIRE_GUARDS,
    gap,
    moved,
    one,
    roce,
    severities,
    silent,
    storage,
    without,
    without_window,
)

FIRING = moved(roce(), NETDEV, {"tx_pause_storm_warning_events": 1}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "error")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "1 pause storms in 60 min, limit 1" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("tx_pause_storm_warning_events" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"tx_pause_storm_warning_events": 1}, 3600.0, "error"),
        ({"tx_pause_storm_error_events": 1}, 3600.0, "critical"),
        ({"tx_pause_storm_error_events": 1, "tx_pause_storm_warning_events": 4}, 3600.0, "critical"),
        ({"rx_prio3_pause": 9}, 3600.0, None),
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
    assert [(PORT, "warning")] == severities(rule, storage(FIRING))


def test_a_driver_that_does_not_count_it_is_not_judged() -> None:
    """Nothing can be said, and nothing is wrong."""
    assert isinstance(
        one(rule, without(FIRING, "tx_pause_storm_warning_events", "tx_pause_storm_error_events"), PORT), NotApplicable
    )


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_one_kind_of_event_that_could_not_be_compared_is_no_pass() -> None:
    """And hides no event of the other kind."""
    for counter, other in (
        ("tx_pause_storm_warning_events", "tx_pause_storm_error_events"),
        ("tx_pause_storm_error_events", "tx_pause_storm_warning_events"),
    ):
        assert isinstance(one(rule, gap(roce(), NETDEV, counter), PORT), Unknown)
        assert [PORT] == [
            subject for subject, _ in severities(rule, gap(moved(roce(), NETDEV, {other: 5}), NETDEV, counter))
        ]
