"""roce-rt-pause-received: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.pause import roce_rt_pause_received as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    changed_netdev,
    fails,
    nic_id,
    topology,
)
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

FIRING = moved(roce(), NETDEV, {"rx_prio3_pause_duration": 1800000000}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "warning")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "paused by the switch for 50% of 60 min, limit 25%" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("rx_prio3_pause_duration" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"rx_prio3_pause_duration": 1800000000}, 3600.0, "warning"),
        ({"rx_prio3_pause_duration": 900000000}, 3600.0, "info"),
        ({"rx_prio3_pause_duration": 180000000}, 3600.0, None),
        ({"rx_prio3_pause_duration": 181000000}, 3600.0, "info"),
        ({"tx_prio3_pause_duration": 1800000000}, 3600.0, None),
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
    assert isinstance(one(rule, without(FIRING, "rx_prio3_pause_duration"), PORT), NotApplicable)


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_all_rails_alike_are_a_heavy_load() -> None:
    """Context, not a fault of one path."""
    case = roce()
    for n in range(4):
        case = moved(case, f"netdev:{nic_id(n)}", {"rx_prio3_pause_duration": 1800 * 10**6})

    assert ["info"] * 4 == [severity for _, severity in severities(rule, case)]


def shares(*percent: float):
    """How much of an hour each rail was paused."""
    case = roce()
    for n, share in enumerate(percent):
        case = moved(case, f"netdev:{nic_id(n)}", {"rx_prio3_pause_duration": int(share * 36_000_000)})
    return case


@pytest.mark.parametrize(("others", "severity"), [(10, "warning"), (10.1, "info"), (50, "info"), (0, "warning")])
def test_one_port_sticks_out_from_five_times_the_others_on(others: float, severity: str) -> None:
    """Half of the time against a tenth."""
    found = {f.subject: f for f in fails(rule, shares(others, 50, others, others))}

    assert severity == found[PORT].severity
    assert ("one-port" if severity == "warning" else "") == found[PORT].cause
    assert f"limit {25 if severity == 'warning' else 5}%" in found[PORT].summary
    assert f"the other ports {others:.0f}%" in found[PORT].summary


def test_a_lone_port_is_compared_with_nobody() -> None:
    """And the text tells of none."""
    alone = topology(FIRING, nics=[FIRING.topology.nics[1]])
    (fault,) = fails(rule, alone)

    assert "info" == fault.severity
    assert "other ports" not in fault.summary


def test_the_priority_that_was_paused_longest_is_the_evidence() -> None:
    """Others are not added to it."""
    more = {**FIRING.topology.netdevs[1].counters, "rx_prio0_pause_duration": 5}
    case = moved(changed_netdev(FIRING, 1, counters=more), NETDEV, {"rx_prio0_pause_duration": 900 * 10**6})
    (fault,) = fails(rule, case)

    assert "paused by the switch for 50%" in fault.summary
    assert ["rx_prio3_pause_duration"] == [row.what for row in fault.evidence]
