"""roce-tc-rate-limited: a limit on the queue of RDMA; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.traffic_classes import roce_tc_rate_limited as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, limited, roce, silent


def rates(gbit_s: float, queue: int = 3, **changes):
    """A limit on one queue of rail 1; priority 3 has queue 3."""
    return dcb(roce(), max_rate_kbit_s=[int(gbit_s * 1e6) if n == queue else 0 for n in range(8)], **changes)


def test_a_limit_is_a_warning() -> None:
    """What it costs in percent."""
    (fault,) = fails(rule, rates(100))

    assert (PORT, "warning") == (fault.subject, fault.severity)
    assert "queue 3 of RDMA is limited to 100 Gb/s, the link runs at 400" == fault.summary
    assert "75% of the link cannot be used." == fault.impact
    assert "dcb maxrate show dev eth1" == fault.evidence[0].source
    assert ["info"] == [each.severity for each in fails(rule, changed_nic(rates(100), 1, role="storage"))]


@pytest.mark.parametrize(("gbit_s", "fires"), [(379.9, True), (380, False), (400, False), (0, False)])
def test_the_limit(gbit_s: float, fires: bool) -> None:
    """Below 95% of the link, or what the operator says."""
    assert fires == bool(fails(rule, rates(gbit_s)))
    assert [] == fails(rule, limited(rates(100), "roce-tc-rate-limited.percent", 25))


def test_all_queues_limited_is_one_whatever_rdma_uses() -> None:
    """The class need not be known; the rate of the port serves where the interface has none."""
    case = dcb(roce(), max_rate_kbit_s=[100_000_000] * 8, trust=None)

    assert 1 == len(fails(rule, case))
    assert 1 == len(fails(rule, changed_netdev(case, 1, speed_gbit_s=None)))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(rates(100, queue=5), Pass, id="another queue"),
        pytest.param(rates(100, trust=None), Unknown, id="class not known"),
        pytest.param(rates(100, prio_tc=[]), Unknown, id="queues not read"),
        pytest.param(rates(100, prio_tc=[0, 1, 2]), Unknown, id="queue of priority 3 not read"),
        pytest.param(rates(400, trust=None), Pass, id="no limit that counts, class not known"),
        pytest.param(changed_netdev(rates(100), 1, speed_gbit_s=100.0), Pass, id="as fast as the interface runs"),
        pytest.param(
            changed_port(changed_netdev(roce(), 1, speed_gbit_s=None), 1, rate_gbit_s=None),
            Pass,
            id="no limit, no rate",
        ),
        pytest.param(dcb(roce(), max_rate_kbit_s=[]), Unknown, id="limits not read"),
        pytest.param(
            changed_port(changed_netdev(rates(100), 1, speed_gbit_s=None), 1, rate_gbit_s=None), Unknown, id="rate"
        ),
        pytest.param(changed_netdev(rates(100), 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(changed_nic(rates(100), 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, case, kind)
