"""Speed and FEC of links that are up."""

from __future__ import annotations

from agent.rules.roce.links import roce_speed_degraded
from tests.agent.rules.build import changed_netdev, fails, server

# roce-speed-degraded: when it fires, when it must not, and every guard alone.


def slow(speed: float = 200.0, gpus: int = 4):
    return changed_netdev(server(gpus, ethernet=True), 1, speed_gbit_s=speed)


def all_at(speed: float, gpus: int = 4):
    context = server(gpus, ethernet=True)
    for n in range(gpus):
        context = changed_netdev(context, n, speed_gbit_s=speed)
    return context


def test_all_below_what_they_could_is_one_info() -> None:
    """A slower switch, or a breakout by design."""
    (fault,) = fails(roce_speed_degraded, all_at(200.0))
    (alone,) = fails(roce_speed_degraded, all_at(200.0, gpus=1))

    assert ("node", "info", "low", "all") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "info" == alone.severity
    assert "nothing is lost where the fabric is slower by design" in alone.impact


def test_what_was_not_read_is_no_evidence() -> None:
    """Speed alone is enough."""
    (fault,) = fails(roce_speed_degraded, changed_netdev(slow(), 1, max_speed_gbit_s=None, module=None))

    assert ["speed of eth1"] == [row.what for row in fault.evidence]
