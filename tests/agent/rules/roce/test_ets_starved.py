"""roce-ets-starved: what the scheduler leaves to RDMA; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.traffic_classes import roce_ets_starved as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import NETDEV, PORT, dcb, facts, limited, nccl_sets, roce, silent, window
from tests.agent.rules.rows import only

QUEUES = list(range(8))


def ets(share: int = 10, **changes):
    """Queue 3 of rail 1 with this share, the rest for queue 0."""
    values = {
        "prio_tc": QUEUES,
        "tc_tsa": ["ets"] * 8,
        "tc_bandwidth": [100 - share, 0, 0, share, 0, 0, 0, 0],
    }
    return dcb(roce(), **(values | changes))


def strict(**sent: int):
    """Queue 6 strict; bytes of the window by priority."""
    tsa = ["ets"] * 6 + ["strict", "ets"]
    return window(ets(90, tc_tsa=tsa), {NETDEV: {f"tx_{prio}_bytes": count for prio, count in sent.items()}})


def one_queue(**sent: int):
    """Priority 0 and 3 in queue 0."""
    case = ets(50, prio_tc=[0] * 8, tc_bandwidth=[100, 0, 0, 0, 0, 0, 0, 0])
    return window(case, {NETDEV: {f"tx_{prio}_bytes": count for prio, count in sent.items()}})


def seven():
    """Counters of all priorities but the last."""
    return {name: count for name, count in roce().topology.netdevs[1].counters.items() if "prio7" not in name}


@pytest.mark.parametrize("queue", [0, 7])
def test_the_first_and_the_last_queue_are_queues(queue: int) -> None:
    """RDMA may be in any of eight."""
    table = [queue if n == 3 else (queue + 1 + n) % 8 for n in range(8)]
    shares = [10 if n == queue else 13 for n in range(8)]

    assert 1 == len(fails(rule, dcb(ets(), prio_tc=table, tc_bandwidth=shares)))


def test_a_small_share_is_a_warning() -> None:
    """As soon as others send."""
    (fault,) = fails(rule, ets())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "ETS guarantees 10% to the queue of RDMA (priority 3, queue 3)" == fault.summary
    assert "dcb ets show dev eth1" == fault.evidence[0].source
    assert ["info"] == [each.severity for each in fails(rule, changed_nic(ets(), 1, role="storage"))]


@pytest.mark.parametrize(("share", "fires"), [(0, True), (29, True), (30, False), (90, False)])
def test_the_limit(share: int, fires: bool) -> None:
    """Below 30%, or what the operator says."""
    assert fires == bool(fails(rule, ets(share)))
    assert [] == fails(rule, limited(ets(20), "roce-ets-starved.percent", 20))


@pytest.mark.parametrize(
    ("case", "fires"),
    [
        pytest.param(strict(prio6=21, prio3=79), True, id="strict queue is busy"),
        pytest.param(strict(prio6=20, prio3=80), False, id="strict queue is not"),
        pytest.param(strict(prio5=50, prio3=50), False, id="another ETS queue"),
        pytest.param(strict(), False, id="nothing sent"),
        pytest.param(strict(prio0=50, prio3=50), False, id="priority 0 in a queue of its own"),
        pytest.param(one_queue(prio0=21, prio3=79), True, id="priority 0 in the same queue"),
        pytest.param(one_queue(prio0=20, prio3=80), False, id="next to nothing in it"),
        pytest.param(one_queue(prio1=50, prio3=50), False, id="another priority in it"),
        pytest.param(window(ets(), {NETDEV: {"tx_prio3_bytes": 80, "tx_prio0_bytes": 20}}), False, id="RDMA alone"),
        pytest.param(window(ets(), {NETDEV: {"tx_prio3_bytes": 79, "tx_prio0_bytes": 21}}), True, id="others send"),
        pytest.param(changed_netdev(strict(prio6=50, prio3=50), 1, counters={}), False, id="not counted"),
        pytest.param(changed_netdev(strict(prio6=50, prio3=50), 1, counters=seven()), False, id="7 counted"),
        pytest.param(dcb(strict(prio6=50, prio3=50), prio_tc=[0, 1, 2, 6, 4, 5, 6, 7]), False, id="RDMA in it itself"),
        pytest.param(
            dcb(strict(prio3=100), tc_tsa=["ets"] * 3 + ["strict"] + ["ets"] * 4), False, id="RDMA alone is strict"
        ),
        pytest.param(
            dcb(strict(prio6=50, prio3=50), tc_tsa=["ets"] * 3 + ["vendor"] + ["ets"] * 2 + ["strict", "ets"]),
            False,
            id="RDMA in a queue of the vendor's",
        ),
        pytest.param(facts(one_queue(prio0=100), roce_traffic_class=0), False, id="RDMA has priority 0 itself"),
    ],
)
def test_who_competes(case, fires: bool) -> None:
    """More than 20% of the bytes of the window."""
    assert fires == bool(fails(rule, case))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(roce(), Pass, id="the default"),
        pytest.param(dcb(ets(), prio_tc=[]), Unknown, id="queues not read"),
        pytest.param(dcb(ets(), tc_tsa=[]), Unknown, id="schedulers not read"),
        pytest.param(dcb(ets(), prio_tc=[99] * 8), Unknown, id="no such queue"),
        pytest.param(dcb(ets(), prio_tc=[8] * 8), Unknown, id="the queue after the last"),
        pytest.param(dcb(ets(), prio_tc=[0] * 7), Unknown, id="7 queues"),
        pytest.param(dcb(ets(), tc_tsa=["ets"] * 7), Unknown, id="7 schedulers"),
        pytest.param(dcb(ets(), tc_tsa=["vendor"] * 8, trust=None), Pass, id="the default, class not known"),
        pytest.param(
            dcb(ets(), tc_tsa=["vendor"] * 8, prio_tc=[*range(7), 6], trust=None), Unknown, id="two in one queue"
        ),
        pytest.param(dcb(ets(), tc_bandwidth=[]), Pass, id="shares not read"),
        pytest.param(dcb(ets(), trust=None), Unknown, id="class not known"),
        pytest.param(dcb(ets(), trust=None, pfc=only()), NotApplicable, id="no class"),
        pytest.param(changed_netdev(ets(), 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(facts(nccl_sets(ets()), roce_traffic_class=2), Pass, id="RDMA in another queue"),
        pytest.param(dcb(ets(), tc_tsa=["strict"] * 8), Pass, id="all strict"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, case, kind)
