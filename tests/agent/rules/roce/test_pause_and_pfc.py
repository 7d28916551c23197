"""roce-pause-and-pfc: both at once, where counters say so; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Pause
from agent.rules.roce.pfc import roce_pause_and_pfc as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, roce, silent
from tests.agent.rules.rows import only

COUNTED = {"rx_global_pause": 0, "tx_global_pause": 0}


def both(**changes):
    values = {"pause": Pause(rx=True, tx=True), "counters": COUNTED} | changes
    return changed_netdev(roce(), 1, **values)


def test_both_at_once_are_a_warning() -> None:
    """The port, and what ends it."""
    (fault,) = fails(rule, both())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "global pause is on beside PFC (priority 3)" == fault.summary
    assert fault.remedy.startswith("ethtool -A eth1 rx off tx off autoneg off")
    assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(both(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        pytest.param({"pause": Pause(rx=True, tx=False)}, None, id="one direction"),
        pytest.param({"pause": Pause(rx=False, tx=True)}, None, id="the other"),
        pytest.param({"counters": {"rx_pause_frames": 3}}, None, id="bnxt counts frames"),
        pytest.param({"counters": {"tx_pause_frames": 3}}, None, id="bnxt counts frames sent"),
        pytest.param({"counters": {"rx_pause_frames": 0, "tx_bytes": 5}}, Pass, id="bnxt counts none"),
        pytest.param({"counters": {"tx_bytes": 5}}, Pass, id="not in force"),
        pytest.param({"counters": {}}, Unknown, id="counters not read"),
        pytest.param({"pause": Pause(rx=False, tx=False)}, Pass, id="off"),
        pytest.param({"pause": Pause(rx=False)}, Unknown, id="half read"),
        pytest.param({"pause": Pause(tx=False)}, Unknown, id="other half read"),
        pytest.param({"pause": None}, Unknown, id="not read"),
        pytest.param({"qos": None}, Unknown, id="DCB not known"),
    ],
)
def test_counters_must_say_so(changes, kind) -> None:
    """What some drivers report is what was asked for."""
    case = both(**changes)
    if kind is None:
        assert 1 == len(fails(rule, case))
    else:
        silent(rule, case, kind)


def test_without_pfc_it_is_another_rule() -> None:
    """roce-global-pause."""
    silent(rule, dcb(both(), pfc=only()), NotApplicable)
