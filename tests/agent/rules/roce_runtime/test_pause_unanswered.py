"""roce-rt-pause-unanswered: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Qos
from agent.rules.roce.pause import roce_rt_pause_unanswered as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, fails
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

FIRING = moved(roce(), NETDEV, {"rx_unsupported_op_phy": 600}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "warning")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "600 pause frames that nothing here obeys in 60 min, limit 10/min" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("rx_unsupported_op_phy" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"rx_unsupported_op_phy": 600}, 3600.0, "warning"),
        ({"rx_unsupported_op_phy": 599}, 3600.0, None),
        ({"rx_pause_ctrl_phy": 600}, 3600.0, "warning"),
        ({"rx_pause_ctrl_phy": 600, "rx_prio3_pause": 1}, 3600.0, None),
        ({"rx_pause_ctrl_phy": 600, "rx_prio3_pause": 600}, 3600.0, None),
        ({"rx_pause_ctrl_phy": 599}, 3600.0, None),
        ({"rx_pause_ctrl_phy": 300, "rx_unsupported_op_phy": 300}, 3600.0, "warning"),
        (
            {"rx_prio3_pause": 600, "rx_pause_ctrl_phy": 600, "tx_prio0_bytes": 990, "tx_prio3_bytes": 10},
            3600.0,
            None,
        ),
        (
            {"rx_prio3_pause": 600, "rx_pause_ctrl_phy": 600, "tx_prio0_bytes": 991, "tx_prio3_bytes": 9},
            3600.0,
            "warning",
        ),
        ({"rx_prio3_pause": 600, "rx_pause_ctrl_phy": 600, "tx_prio0_bytes": 1000000000}, 3600.0, "warning"),
        (
            {
                "rx_prio3_pause": 600,
                "rx_pause_ctrl_phy": 600,
                "tx_prio0_bytes": 1000000000,
                "tx_prio3_bytes": 100000000,
            },
            3600.0,
            None,
        ),
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
    assert isinstance(one(rule, without(FIRING, "rx_unsupported_op_phy"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_what_obeys_was_counted_anew() -> None:
    """How much of the rest was obeyed is not known; where nothing came, nothing can have been disobeyed."""
    loud = moved(roce(), NETDEV, {"rx_pause_ctrl_phy": 600})

    assert isinstance(one(rule, gap(loud, NETDEV, "rx_prio3_pause"), PORT), Unknown)
    assert Pass(PORT) == one(rule, gap(roce(), NETDEV, "rx_prio3_pause"), PORT)
    for counter in ("rx_pause_ctrl_phy", "rx_unsupported_op_phy"):
        assert isinstance(one(rule, gap(roce(), NETDEV, counter), PORT), Unknown)


def test_either_counter_that_the_driver_has_not() -> None:
    """Not applicable; what obeys need not be there."""
    for name in ("rx_pause_ctrl_phy", "rx_unsupported_op_phy"):
        assert isinstance(one(rule, without(FIRING, name), PORT), NotApplicable)
    assert [(PORT, "warning")] == severities(rule, without(FIRING, "rx_prio3_pause"))


def test_what_obeyed_is_evidence() -> None:
    """Beside what came."""
    case = moved(roce(), NETDEV, {"rx_pause_ctrl_phy": 1300, "rx_prio3_pause": 1, "rx_unsupported_op_phy": 700})
    (fault,) = fails(rule, case)

    assert {"rx_pause_ctrl_phy", "rx_unsupported_op_phy", "rx_prio3_pause"} == {row.what for row in fault.evidence}


@pytest.mark.parametrize("qos", [None, Qos(), Qos(pfc=[False] * 8)], ids=["DCB not read", "PFC not read", "PFC off"])
def test_an_idle_priority_says_nothing_where_pfc_is_not_known_to_be_on(qos: Qos | None) -> None:
    """Priority 3 is paused, obeys, and sends nothing: a wrong class only where it is the lossless one."""
    case = moved(roce(), NETDEV, {"rx_prio3_pause": 600, "rx_pause_ctrl_phy": 600, "tx_prio0_bytes": 10**9})

    assert [(PORT, "warning")] == severities(rule, case)
    assert Pass(PORT) == one(rule, changed_netdev(case, 1, qos=qos), PORT)
