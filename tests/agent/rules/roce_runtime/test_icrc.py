"""roce-rt-icrc: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.counters import roce_rt_icrc as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.moves import (
    PORT,
    PORT_GUARDS,
    moved,
    one,
    roce,
    severities,
    silent,
    storage,
    without,
    without_window,
)

FIRING = moved(roce(), PORT, {"rx_icrc_encapsulated": 10}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "warning")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "10 RoCE packets with a wrong ICRC in 60 min, limit 10/h" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("rx_icrc_encapsulated" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"rx_icrc_encapsulated": 10}, 3600.0, "warning"),
        ({"rx_icrc_encapsulated": 9}, 3600.0, None),
        ({"rx_icrc_encapsulated": 9}, 600.0, "unknown"),
        ({"rx_icrc_encapsulated": 10}, 600.0, "warning"),
        ({"rx_icrc_encapsulated": 10}, 7200.0, None),
    ],
)
def test_the_limits(counters: dict[str, int], seconds: float, expected: str | None) -> None:
    """Exactly at the limit, below it, and in a window that is too short to say."""
    case = moved(roce(), PORT, counters, seconds)

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
    assert isinstance(one(rule, without(FIRING, "rx_icrc_encapsulated"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)
