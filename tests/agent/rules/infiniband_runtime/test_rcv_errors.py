"""ib-rcv-errors: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.counters import ib_rcv_errors as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails
from tests.agent.rules.moves import (
    PORT,
    PORT_GUARDS,
    infiniband,
    moved,
    one,
    severities,
    silent,
    storage,
    without,
    without_window,
)

FIRING = moved(infiniband(), PORT, {"port_rcv_errors": 10}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "warning")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "10 packets received with errors in 60 min, limit 10/h" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("port_rcv_errors" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"port_rcv_errors": 10}, 3600.0, "warning"),
        ({"port_rcv_errors": 9}, 3600.0, None),
        ({"port_rcv_errors": 9}, 600.0, "unknown"),
        ({"port_rcv_remote_physical_errors": 900}, 3600.0, None),
    ],
)
def test_the_limits(counters: dict[str, int], seconds: float, expected: str | None) -> None:
    """Exactly at the limit, below it, and in a window that is too short to say."""
    case = moved(infiniband(), PORT, counters, seconds)

    if expected == "unknown":
        assert isinstance(one(rule, case, PORT), Unknown)
    elif expected is None:
        assert Pass(PORT) == one(rule, case, PORT)
    else:
        assert [(PORT, expected)] == severities(rule, case)


def test_what_counters_stand_at_says_nothing() -> None:
    """Large and unmoved: every port passes."""
    assert Pass(PORT) == one(rule, infiniband(), PORT)


def test_without_an_earlier_sample_it_is_unknown() -> None:
    """The first run on a node."""
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert [(PORT, "info")] == severities(rule, storage(FIRING))


def test_a_driver_that_does_not_count_it_is_not_judged() -> None:
    """Nothing can be said, and nothing is wrong."""
    assert isinstance(one(rule, without(FIRING, "port_rcv_errors"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_a_link_that_went_down_explains_it() -> None:
    """ib-link-flap counts how often."""
    silent(rule, moved(FIRING, PORT, {"link_downed": 1}), NotApplicable)


def test_damage_further_away_is_said_so() -> None:
    """A switch marked as many: the bad link is upstream."""
    (fault,) = fails(rule, moved(FIRING, PORT, {"port_rcv_remote_physical_errors": 10}))

    assert "upstream" == fault.cause
    assert "it is not this port's" in fault.remedy
    (near,) = fails(rule, moved(FIRING, PORT, {"port_rcv_remote_physical_errors": 9}))
    assert "" == near.cause


@pytest.mark.parametrize(("marked", "cause"), [(9, ""), (10, "upstream"), (11, "upstream")])
def test_what_was_damaged_further_away(marked: int, cause: str) -> None:
    """Where all of them were marked so; with both counts as evidence."""
    (fault,) = fails(rule, moved(FIRING, PORT, {"port_rcv_remote_physical_errors": marked}))

    assert cause == fault.cause
    assert bool(cause) == ("port_rcv_remote_physical_errors" in {row.what for row in fault.evidence})
    assert bool(cause) == ("further away" in fault.summary)


def test_marks_that_cannot_be_counted_leave_it_this_port_s() -> None:
    """The driver has none, or they were counted anew; marks alone are no errors."""
    assert [""] == [fault.cause for fault in fails(rule, without(FIRING, "port_rcv_remote_physical_errors"))]
    assert Pass(PORT) == one(rule, infiniband(), PORT)
