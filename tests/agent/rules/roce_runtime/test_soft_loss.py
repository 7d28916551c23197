"""roce-rt-soft-loss: when it fires, its limits, and every guard alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.rules.context import RuleContext, Settings
from agent.rules.roce.counters import roce_rt_soft_loss as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_nic, changed_port, fails, node
from tests.agent.rules.moves import (
    HOUR,
    NIC,
    PORT,
    gap,
    infiniband,
    moved,
    one,
    reset,
    roce,
    severities,
    without_window,
)

STANDS = dict.fromkeys(("sent_pkts", "rcvd_pkts", "out_of_seq_request", "completer_retry_err"), 5_000)


def soft() -> RuleContext:
    """Four RoCE rails and, in the place of the second, a soft-RoCE device; an hour in which nothing moved."""
    case = changed_nic(roce(), 1, software=True, role="auxiliary", label="rxe0", driver=None)
    return changed_port(case, 1, counters={}, hw_counters=STANDS)


GAPS = moved(soft(), PORT, {"out_of_seq_request": 20, "rcvd_pkts": 20_000})
RETRIES = moved(soft(), PORT, {"completer_retry_err": 20, "sent_pkts": 20_000})


def test_gaps_of_a_receiver_are_told_as_a_ratio() -> None:
    """Count, window, packets, limit, and the file that a person reads."""
    (fault,) = fails(rule, GAPS)

    assert [] == answers(rule, GAPS, "node")
    assert (PORT, "warning", "rxe0") == (fault.subject, rule.severity, fault.label)
    assert fault.severity is None
    assert fault.summary == "20 gaps in what it received in 60 min: 0.001 of 20000 packets, limit 1e-03"
    assert "/sys/class/infiniband/rxe0/ports/1/hw_counters/out_of_seq_request" == fault.evidence[0].source
    assert {NIC} == fault.places


def test_retries_of_a_sender_are_told() -> None:
    """The same loss, seen from the other end."""
    (fault,) = fails(rule, RETRIES)

    assert fault.summary.startswith("20 times it had to send again in 60 min: 0.001 of 20000 packets")


def test_traffic_without_loss_is_silent() -> None:
    """Whatever went over it."""
    busy = moved(soft(), PORT, {"sent_pkts": 10**9, "rcvd_pkts": 10**9, "duplicate_request": 50})

    assert Pass(PORT) == one(rule, busy, PORT)


@pytest.mark.parametrize(
    ("lost", "packets", "fires"),
    [(10, 10_000, True), (9, 10, False), (10, 10_001, False), (10, 0, True), (0, 0, False)],
)
def test_the_limits(lost: int, packets: int, fires: bool) -> None:
    """Exactly at them, and just below each; packets that nobody counted do not divide by zero."""
    case = moved(soft(), PORT, {"out_of_seq_request": lost, "rcvd_pkts": packets})

    assert ([(PORT, "warning")] if fires else []) == severities(rule, case)
    if not fires:
        assert Pass(PORT) == one(rule, case, PORT)


def test_the_limits_are_the_operators() -> None:
    """Both; and with no least number one lost packet is needed still."""
    few = moved(soft(), PORT, {"out_of_seq_request": 1, "rcvd_pkts": 1})
    limits = Settings(thresholds={"roce-rt-soft-loss.events": 0, "roce-rt-soft-loss.ratio": 0})

    assert [] == severities(rule, few)
    assert [(PORT, "warning")] == severities(rule, replace(few, settings=limits))
    assert [] == severities(rule, replace(soft(), settings=limits))


def test_a_fault_of_one_way_is_told_though_the_other_is_not_known() -> None:
    """And what is not known outweighs what is clean."""
    assert [(PORT, "warning")] == severities(rule, gap(GAPS, PORT, "completer_retry_err"))
    assert isinstance(one(rule, gap(soft(), PORT, "completer_retry_err"), PORT), Unknown)
    assert isinstance(one(rule, gap(soft(), PORT, "out_of_seq_request"), PORT), Unknown)


def test_packets_that_were_not_counted_make_it_unknown() -> None:
    """No ratio without them."""
    answer = one(rule, gap(GAPS, PORT, "rcvd_pkts"), PORT)

    assert isinstance(answer, Unknown)
    assert answer.reason == "20 gaps in what it received, but its packets are not counted"


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(changed_nic(GAPS, 1, software=False), NotApplicable, id="hardware"),
        pytest.param(changed_port(GAPS, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(changed_port(GAPS, 1, state=None), Unknown, id="state not known"),
        pytest.param(changed_port(GAPS, 1, hw_counters={"lifespan": 12}), NotApplicable, id="siw counts otherwise"),
        pytest.param(changed_port(GAPS, 1, hw_counters={}), Unknown, id="no counter was read"),
        pytest.param(reset(GAPS, PORT), Unknown, id="counted anew"),
        pytest.param(node(GAPS, uptime_seconds=HOUR + 899), Unknown, id="the window began while the host settled"),
    ],
)
def test_a_guard_keeps_it_silent(case: RuleContext, kind: type) -> None:
    """The firing case and this circumstance alone."""
    assert [] == fails(rule, case)
    about = answers(rule, case, PORT) or answers(rule, case, "node")
    assert [kind] == [type(answer) for answer in about]


def test_the_family_s_gate_answers_for_the_node() -> None:
    """Once, and nothing of a port: the first run, and a node without RoCE."""
    assert [Unknown] == [type(answer) for answer in rule.check(without_window(GAPS))]
    assert [NotApplicable("node", "no RoCE port")] == list(rule.check(infiniband()))
