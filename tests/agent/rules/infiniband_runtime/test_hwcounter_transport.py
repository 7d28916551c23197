"""ib-hwcounter-transport: when it fires, its limits, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import Nccl, NcclSetting
from agent.rules.infiniband.counters import ib_hwcounter_transport as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import software
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

FIRING = moved(infiniband(), PORT, {"local_ack_timeout_err": 600}, 3600.0)


def test_it_fires_once_with_count_window_and_limit() -> None:
    """Subject, severity and the numbers that a person needs."""
    assert [(PORT, "warning")] == severities(rule, FIRING)
    (fault,) = [answer for answer in rule.check(FIRING) if answer.subject == PORT and not isinstance(answer, Pass)]
    assert "600 ACK timeouts in 60 min, limit 10/min" in fault.summary  # type: ignore[union-attr]  # a fault
    assert any("local_ack_timeout_err" == row.what for row in fault.evidence)  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(
    ("counters", "seconds", "expected"),
    [
        ({"local_ack_timeout_err": 600}, 3600.0, "warning"),
        ({"local_ack_timeout_err": 599}, 3600.0, None),
        ({"req_transport_retries_exceeded": 10}, 3600.0, "warning"),
        ({"req_transport_retries_exceeded": 9}, 3600.0, None),
        ({"packet_seq_err": 1000000}, 3600.0, None),
        ({"out_of_sequence": 1000000}, 3600.0, None),
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
    assert isinstance(
        one(rule, without(FIRING, "local_ack_timeout_err", "req_transport_retries_exceeded"), PORT), NotApplicable
    )


@pytest.mark.parametrize(("circumstance", "kind"), PORT_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_a_link_that_went_down_explains_it() -> None:
    """ib-link-flap counts how often."""
    silent(rule, moved(FIRING, PORT, {"link_downed": 1}), NotApplicable)


@pytest.mark.parametrize(("value", "count", "severity"), [("0", 6000, ["warning"]), ("0", 5999, []), ("1", 6000, [])])
def test_order_is_expected_only_without_adaptive_routing(value: str, count: int, severity: list[str]) -> None:
    """NCCL is told not to use it: then sequence errors are loss."""
    setting = NcclSetting(key="NCCL_IB_ADAPTIVE_ROUTING", value=value, source="/etc/nccl.conf:1")
    case = software(moved(infiniband(), PORT, {"packet_seq_err": count}), nccl=Nccl(settings=[setting]))

    assert severity == [each for _, each in severities(rule, case)]
