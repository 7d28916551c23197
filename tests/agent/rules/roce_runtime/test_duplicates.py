"""roce-rt-duplicates: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.counters import roce_rt_duplicates as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev
from tests.agent.rules.moves import (
    NETDEV,
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

FIRING = moved(roce(), PORT, {"duplicate_request": 100}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "info")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "100 duplicate requests in 60 min, limit 100/h" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("duplicate_request" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"duplicate_request": 100}, 3600.0, "info"),
        ({"duplicate_request": 99}, 3600.0, None),
        ({"duplicate_request": 50}, 60.0, "unknown"),
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
    assert isinstance(one(rule, without(FIRING, "duplicate_request"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_loss_on_this_host_explains_it() -> None:
    """Its own discards are roce-rt-rx-discards's to tell."""
    silent(rule, moved(FIRING, NETDEV, {"rx_prio3_discards": 1}), NotApplicable)


def test_a_host_that_does_not_count_its_discards_is_judged() -> None:
    """Nothing says that the loss is here."""
    assert [(PORT, "info")] == severities(rule, changed_netdev(FIRING, 1, counters={}))
