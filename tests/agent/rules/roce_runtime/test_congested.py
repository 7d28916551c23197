"""roce-rt-congested: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.congestion import roce_rt_congested as rule
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

FIRING = moved(roce(), PORT, {"np_cnp_sent": 20000, "port_rcv_packets": 1000000}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "info")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "20000 notifications sent in 60 min: 2.0% of its RDMA packets, limit 1%" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("np_cnp_sent" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"np_cnp_sent": 20000, "port_rcv_packets": 1000000}, 3600.0, "info"),
        ({"np_cnp_sent": 10000, "port_rcv_packets": 1000000}, 3600.0, None),
        ({"rp_cnp_handled": 20000, "port_xmit_packets": 1000000}, 3600.0, "info"),
        ({"np_ecn_marked_roce_packets": 50001, "port_rcv_packets": 1000000}, 3600.0, "info"),
        ({"np_ecn_marked_roce_packets": 50000, "port_rcv_packets": 1000000}, 3600.0, None),
        ({"np_cnp_sent": 20000, "port_rcv_packets": 999999}, 3600.0, "unknown"),
        ({"np_cnp_sent": 20000, "port_rcv_packets": 1000000}, 600.0, "info"),
        ({"np_cnp_sent": 20000, "port_rcv_packets": 1000000}, 599.0, "unknown"),
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
    assert isinstance(
        one(rule, without(FIRING, "np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets"), PORT), NotApplicable
    )


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_packets_that_are_not_counted_leave_it_unknown() -> None:
    """Neither by the port nor by the interface; and a counter that was reset."""
    bare = without(FIRING, "port_rcv_packets")
    assert isinstance(one(rule, bare, PORT), Unknown)
    assert isinstance(one(rule, reset(roce(), PORT, "np_cnp_sent"), PORT), Unknown)
