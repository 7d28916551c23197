"""Global pause, without PFC and beside it."""

from __future__ import annotations

from agent.model.nic import Pause
from agent.rules.roce.pfc import roce_pause_and_pfc
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, roce

# roce-pause-and-pfc: both at once, where counters say so; and every guard alone.

COUNTED = {"rx_global_pause": 0, "tx_global_pause": 0}


def both(**changes):
    values = {"pause": Pause(rx=True, tx=True), "counters": COUNTED} | changes
    return changed_netdev(roce(), 1, **values)


def test_both_at_once_are_a_warning() -> None:
    """The port, and both settings."""
    (fault,) = fails(roce_pause_and_pfc, both())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "global pause is on beside PFC (priority 3)" == fault.summary
    assert ["info"] == [fault.severity for fault in fails(roce_pause_and_pfc, changed_nic(both(), 1, role="storage"))]
