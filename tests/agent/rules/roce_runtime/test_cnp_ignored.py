"""roce-cnp-ignored: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.congestion import roce_cnp_ignored as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.moves import (
    PORT,
    PORT_GUARDS,
    moved,
    one,
    reset,
    roce,
    severities,
    silent,
    storage,
    without,
    without_window,
)

FIRING = moved(roce(), PORT, {"rp_cnp_ignored": 100, "rp_cnp_handled": 9800}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "warning")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "ignored 100 of 9900 congestion notifications in 60 min" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("rp_cnp_ignored" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"rp_cnp_ignored": 100, "rp_cnp_handled": 9800}, 3600.0, "warning"),
        ({"rp_cnp_ignored": 100, "rp_cnp_handled": 9900}, 3600.0, None),
        ({"rp_cnp_ignored": 99, "rp_cnp_handled": 0}, 3600.0, None),
        ({"rp_cnp_ignored": 100}, 3600.0, "warning"),
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
    assert isinstance(one(rule, without(FIRING, "rp_cnp_ignored", "rp_cnp_handled"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


@pytest.mark.parametrize("counter", ["rp_cnp_ignored", "rp_cnp_handled"])
def test_half_of_a_share_is_unknown(counter: str) -> None:
    """One of the two was reset; where none was ignored the other does not matter."""
    gap = reset(roce(), PORT, counter)
    assert isinstance(one(rule, moved(gap, PORT, {"rp_cnp_ignored": 100}), PORT), Unknown)
    assert (counter == "rp_cnp_handled") == isinstance(one(rule, gap, PORT), Pass)
    assert isinstance(one(rule, without(FIRING, "rp_cnp_handled"), PORT), NotApplicable)


def test_a_driver_that_counts_only_what_was_handled_is_not_judged() -> None:
    """Nor one that counts only what was ignored."""
    for counter in ("rp_cnp_ignored", "rp_cnp_handled"):
        assert isinstance(one(rule, without(FIRING, counter), PORT), NotApplicable)
