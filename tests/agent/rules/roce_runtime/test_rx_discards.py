"""roce-rt-rx-discards: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.congestion import roce_rt_rx_discards as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    changed_netdev,
    fails,
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

FIRING = moved(roce(), NETDEV, {"rx_prio3_discards": 6000}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "error")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "6000 received frames discarded in 60 min, limit 100/min" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("rx_prio3_discards" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"rx_prio3_discards": 6000}, 3600.0, "error"),
        ({"rx_prio3_discards": 5999}, 3600.0, "warning"),
        ({"rx_prio3_discards": 10}, 3600.0, "warning"),
        ({"rx_prio3_discards": 9}, 3600.0, None),
        ({"rx_prio0_discards": 6000}, 3600.0, "info"),
        ({"rx_prio0_discards": 9}, 3600.0, None),
        ({"rx_prio0_discards": 1, "rx_prio3_discards": 5999}, 3600.0, "error"),
        ({"rx_discards_phy": 6000}, 3600.0, None),
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
        one(
            rule,
            without(
                FIRING,
                "rx_discards_phy",
                "rx_prio0_discards",
                "rx_prio1_discards",
                "rx_prio2_discards",
                "rx_prio3_discards",
                "rx_prio4_discards",
                "rx_prio5_discards",
                "rx_prio6_discards",
                "rx_prio7_discards",
            ),
            PORT,
        ),
        NotApplicable,
    )


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_a_driver_without_priorities_counts_the_whole_port() -> None:
    """Then any of it may be RoCE; so it is where PFC is not known."""
    case = without(moved(roce(), NETDEV, {"rx_discards_phy": 10}), *(f"rx_prio{n}_discards" for n in range(8)))

    assert [(PORT, "warning")] == severities(rule, case)
    unread = changed_netdev(moved(roce(), NETDEV, {"rx_prio0_discards": 10}), 1, qos=None)
    assert [(PORT, "warning")] == severities(rule, unread)


def test_the_class_that_rdma_uses_counts_whether_pfc_is_on_it_or_not() -> None:
    """Most of what arrives is RDMA, in priority 0: its discards are RoCE's."""
    traffic = {"rx_prio0_bytes": 10**10, "rx_vport_rdma_unicast_bytes": 9 * 10**9, "rx_prio0_discards": 6000}

    assert [(PORT, "error")] == severities(rule, moved(roce(), NETDEV, traffic))
    tcp = {**traffic, "rx_vport_rdma_unicast_bytes": 4 * 10**9}
    assert [(PORT, "info")] == severities(rule, moved(roce(), NETDEV, tcp))


GB = 10**9


@pytest.mark.parametrize(
    ("received", "rdma", "severity"),
    [
        pytest.param({0: GB, 1: 9 * GB}, 9 * GB, "error", id="a tenth of the bytes"),
        pytest.param({0: GB - 1, 1: 9 * GB + 1}, 9 * GB, "info", id="less than a tenth"),
        pytest.param({0: 10 * GB}, 5 * GB, "error", id="half of it is RDMA"),
        pytest.param({0: 10 * GB}, 5 * GB - 1, "info", id="less than half is RDMA"),
    ],
)
def test_which_priorities_carry_roce(received: dict[int, int], rdma: int, severity: str) -> None:
    """A tenth of the bytes of a port that mostly does RDMA: discards of priority 0 are RoCE's there."""
    counters = {f"rx_prio{p}_bytes": count for p, count in received.items()}
    case = moved(roce(), NETDEV, {**counters, "rx_vport_rdma_unicast_bytes": rdma, "rx_prio0_discards": 6000})

    assert [(PORT, severity)] == severities(rule, case)


def test_a_lossless_class_counts_whatever_bytes_are_elsewhere() -> None:
    """And bytes tell where PFC was not read."""
    traffic = {"rx_prio0_bytes": 10 * GB, "rx_vport_rdma_unicast_bytes": 9 * GB}
    blind = changed_netdev(moved(roce(), NETDEV, traffic), 1, qos=None)

    assert [(PORT, "error")] == severities(rule, moved(FIRING, NETDEV, traffic))
    assert [(PORT, "error")] == severities(rule, moved(blind, NETDEV, {"rx_prio0_discards": 6000}))
    assert [(PORT, "info")] == severities(rule, moved(blind, NETDEV, {"rx_prio3_discards": 6000}))


def test_what_no_roce_lost_is_told_as_such() -> None:
    """Cause, loss, and how sure that is: PFC tells which priorities carry RoCE."""
    (other,) = fails(rule, moved(roce(), NETDEV, {"rx_prio0_discards": 6000}))
    (own,) = fails(rule, FIRING)
    blind = changed_netdev(FIRING, 1, qos=None)
    (unsure,) = fails(rule, blind)

    assert (("other-class", "high"), ("", "high"), ("", "medium")) == tuple(
        (fault.cause, fault.confidence) for fault in (other, own, unsure)
    )
    assert "none of a priority of RoCE" in other.summary
    assert "PFC here: 3." in own.remedy
    assert "PFC here: not known." in unsure.remedy
    assert other.impact != own.impact


def test_nothing_discarded_is_nothing_told() -> None:
    """Neither of RoCE nor of others."""
    assert Pass(PORT) == one(rule, roce(), PORT)
    assert Pass(PORT) == one(rule, changed_netdev(roce(), 1, qos=None), PORT)
