"""roce-fec-ber: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.counters import roce_fec_ber as rule
from agent.rules.rule import (
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import fails
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

FIRING = moved(roce(), NETDEV, {"rx_pcs_symbol_err_phy": 10}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "error")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "10 blocks that FEC could not correct in 60 min, limit 10/h" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("rx_pcs_symbol_err_phy" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"rx_pcs_symbol_err_phy": 10}, 3600.0, "error"),
        ({"rx_pcs_symbol_err_phy": 9}, 3600.0, None),
        ({"rx_pcs_symbol_err_phy": 9}, 600.0, "unknown"),
        ({"rx_corrected_bits_phy": 10000000, "rx_bits_phy": 1000000000000}, 3600.0, "warning"),
        ({"rx_corrected_bits_phy": 9999999, "rx_bits_phy": 1000000000000}, 3600.0, None),
        ({"rx_corrected_bits_phy": 100000000, "rx_bits_phy": 1000000000000}, 3600.0, "error"),
        ({"rx_corrected_bits_phy": 99999999, "rx_bits_phy": 1000000000000}, 3600.0, "warning"),
        ({"rx_corrected_bits_phy": 100000000, "rx_bits_phy": 999999999999}, 3600.0, "unknown"),
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
    assert isinstance(one(rule, without(FIRING, "rx_pcs_symbol_err_phy", "rx_corrected_bits_phy"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_a_link_that_came_up_has_errors() -> None:
    """They are no measure, and roce-link-flap counts how often."""
    silent(rule, moved(FIRING, NETDEV, {"carrier_down_count": 1}), NotApplicable)


def test_a_gap_of_either_kind_is_no_pass() -> None:
    """Corrected or lost blocks that could not be compared."""
    for counter in ("rx_corrected_bits_phy", "rx_pcs_symbol_err_phy"):
        if counter in roce().topology.netdevs[1].counters:
            answer = one(rule, gap(roce(), NETDEV, counter), PORT)
            assert isinstance(answer, Unknown), counter


def test_what_was_lost_is_graver_than_what_was_corrected() -> None:
    """Both over their limits: lost traffic is told."""
    corrected = {"rx_corrected_bits_phy": 10**7, "rx_bits_phy": 10**12}

    assert [("warning", "corrected")] == [
        (fault.severity, fault.cause) for fault in fails(rule, moved(roce(), NETDEV, corrected))
    ]
    assert [("error", "lost")] == [
        (fault.severity, fault.cause) for fault in fails(rule, moved(FIRING, NETDEV, corrected))
    ]
