"""roce-rt-adaptive-retrans: when it fires, its limits, and every guard alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.rules.context import Settings
from agent.rules.roce.counters import roce_rt_adaptive_retrans as rule
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

FIRING = moved(roce(), PORT, {"roce_adp_retrans_to": 10}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "info")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "10 adaptive timeouts and slow restarts in 60 min, limit 10/h" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("roce_adp_retrans_to" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"roce_adp_retrans_to": 10}, 3600.0, "info"),
        ({"roce_slow_restart_trans": 10}, 3600.0, "info"),
        ({"roce_adp_retrans_to": 9}, 3600.0, None),
        ({"roce_adp_retrans": 11, "port_xmit_packets": 1000000}, 3600.0, "info"),
        ({"roce_adp_retrans": 10, "port_xmit_packets": 1000000}, 3600.0, None),
        ({"roce_adp_retrans": 11, "port_xmit_packets": 999999}, 3600.0, None),
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
        one(rule, without(FIRING, "roce_adp_retrans_to", "roce_slow_restart_trans", "roce_adp_retrans"), PORT),
        NotApplicable,
    )


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_a_fabric_declared_lossy_is_not_judged() -> None:
    """The features do what they are for."""
    silent(rule, replace(FIRING, settings=Settings(facts={"roce_mode": "lossy"})), NotApplicable)


def test_retransmissions_are_judged_where_timeouts_are_quiet() -> None:
    """Both over: the timeouts are told. Not compared: unknown. Not counted, or no packets counted: timeouts alone."""
    many = {"roce_adp_retrans": 5000, "port_xmit_packets": 1_000_000}
    (fault,) = [answer for answer in rule.check(moved(FIRING, PORT, many)) if answer.subject == PORT]
    assert fault.summary.startswith("10 adaptive timeouts")  # type: ignore[union-attr]  # a fault
    assert isinstance(one(rule, reset(roce(), PORT, "roce_adp_retrans"), PORT), Unknown)
    assert Pass(PORT) == one(rule, without(roce(), "roce_adp_retrans"), PORT)
    assert Pass(PORT) == one(rule, without(moved(roce(), PORT, many), "port_xmit_packets"), PORT)
    assert [(PORT, "info")] == severities(rule, moved(reset(roce(), PORT, "roce_slow_restart"), PORT, many))
