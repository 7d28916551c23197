"""roce-rt-class-usage: measured bytes by priority, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Qos
from agent.rules.roce.congestion import roce_rt_class_usage as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, fails
from tests.agent.rules.moves import (
    NETDEV,
    PORT,
    WIRE_GUARDS,
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

GB = 10**9


def traffic(tx: dict[int, int], rx: dict[int, int], rdma: int = 100):
    """GB by priority, and how much of what was sent is RDMA."""
    counters = {f"tx_prio{p}_bytes": n * GB for p, n in tx.items()} | {
        f"rx_prio{p}_bytes": n * GB for p, n in rx.items()
    }
    return moved(roce(), NETDEV, {**counters, "tx_vport_rdma_unicast_bytes": rdma * GB})


FIRING = traffic({0: 100}, {0: 100})


def test_rdma_outside_the_lossless_class_is_an_error() -> None:
    """PFC is on 3, the bytes are in 0."""
    (fault,) = fails(rule, FIRING)

    assert (PORT, "error", "sent") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary == "0% of what it sent is of priorities with PFC in 60 min; PFC is on for 3"
    assert {"tx_prio0_bytes", "rx_prio0_bytes"} == {row.what for row in fault.evidence}
    assert [(PORT, "warning")] == severities(rule, storage(FIRING))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(traffic({3: 100}, {3: 100}), [], id="in its class"),
        pytest.param(traffic({3: 50, 0: 50}, {3: 100}), [], id="half of it"),
        pytest.param(traffic({3: 49, 0: 51}, {3: 100}), ["sent"], id="less than half"),
        pytest.param(traffic({3: 100}, {0: 100}), ["peers"], id="peers mark otherwise"),
        pytest.param(traffic({3: 100}, {0: 59, 3: 41}), [], id="none clearly dominates"),
        pytest.param(traffic({0: 10}, {0: 10}, rdma=10), ["sent"], id="just enough"),
    ],
)
def test_the_limits(case, expected: list[str]) -> None:
    """Half of the bytes; one priority that dominates with 60%."""
    assert expected == [fault.cause for fault in fails(rule, case)]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(traffic({0: 100}, {0: 100}, rdma=79), NotApplicable, id="much else"),
        pytest.param(traffic({0: 9}, {0: 9}, rdma=9), NotApplicable, id="too little"),
        pytest.param(changed_netdev(FIRING, 1, qos=Qos(pfc=[False] * 8)), NotApplicable, id="no PFC at all"),
        pytest.param(changed_netdev(FIRING, 1, qos=None), Unknown, id="DCB not read"),
        pytest.param(changed_netdev(FIRING, 1, qos=Qos()), Unknown, id="PFC not read"),
        pytest.param(
            without(FIRING, *(f"{w}_prio{n}_bytes" for w in ("tx", "rx") for n in range(8))),
            NotApplicable,
            id="no bytes by priority",
        ),
        pytest.param(reset(FIRING, NETDEV, "tx_vport_rdma_unicast_bytes"), Unknown, id="RDMA counted anew"),
        pytest.param(roce(), NotApplicable, id="nothing moved"),
    ],
)
def test_what_cannot_be_judged(case, kind) -> None:
    """No fault, and why."""
    assert [] == fails(rule, case)
    assert isinstance(one(rule, case, PORT), kind)


def test_without_an_earlier_sample_it_is_unknown() -> None:
    """The first run on a node."""
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


def test_rdma_bytes_that_are_not_counted_are_unknown() -> None:
    """And those of the port serve, in words of four bytes."""
    bare = without(FIRING, "tx_vport_rdma_unicast_bytes", "port_xmit_data")
    assert isinstance(one(rule, bare, PORT), Unknown)
    words = moved(without(FIRING, "tx_vport_rdma_unicast_bytes"), PORT, {"port_xmit_data": 25 * GB})
    assert [(PORT, "error")] == severities(rule, words)
    assert Pass(PORT) == one(rule, traffic({3: 100}, {3: 100}), PORT)


@pytest.mark.parametrize(("circumstance", "kind"), WIRE_GUARDS)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_bytes_of_one_way_alone_say_nothing() -> None:
    """Received or sent not counted: unknown."""
    for way in ("rx", "tx"):
        case = without(FIRING, *(f"{way}_prio{p}_bytes" for p in range(8)))
        assert [] == fails(rule, case)
        assert not isinstance(one(rule, case, PORT), Pass)


@pytest.mark.parametrize(("rdma", "fires"), [(80, True), (79, False)])
def test_mostly_rdma_is_four_fifths(rdma: int, fires: bool) -> None:
    """Of what it sent."""
    assert fires == bool(fails(rule, traffic({0: 100}, {0: 100}, rdma)))


@pytest.mark.parametrize(("share", "fires"), [(60, True), (59, False)])
def test_a_priority_is_clear_from_three_fifths_on(share: int, fires: bool) -> None:
    """Of what it received."""
    case = traffic({3: 100}, {0: share, 1: 100 - share})

    assert fires == bool(fails(rule, case))


def test_without_known_pfc_the_peers_still_tell() -> None:
    """And the text says that it is not known."""
    case = changed_netdev(traffic({3: 100}, {0: 100}), 1, qos=None)

    assert "PFC is on for not known" in fails(rule, case)[0].summary
