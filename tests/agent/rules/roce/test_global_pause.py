"""Global pause, without PFC and beside it."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor, Pause
from agent.rules.roce.pfc import roce_global_pause, roce_pause_and_pfc
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, dcb_everywhere, facts, netdevs, roce, silent
from tests.agent.rules.rows import only

# roce-global-pause: the whole link instead of one class; and every guard alone.


def paused():
    """As the factory sets it, on every port."""
    return netdevs(dcb_everywhere(roce(), pfc=only()), neighbor=None, pause=Pause(rx=True, tx=True))


def test_pause_of_the_whole_link_is_a_warning() -> None:
    """And an error where PFC is meant."""
    (fault,) = fails(roce_global_pause, paused())
    (intended,) = fails(roce_global_pause, facts(paused(), roce_mode="lossless"))

    assert ("node", "warning") == (fault.subject, fault.severity)
    assert fault.summary.startswith("receives and sends global pause, and no priority has PFC; the same on 4 ports")
    assert "ethtool -A INTERFACE rx off tx off" in fault.remedy
    assert ("error", True) == (intended.severity, "declared lossless" in intended.summary)
    assert ("rx on, tx on", "ethtool -a eth0") in [(row.value, row.source) for row in fault.evidence]


@pytest.mark.parametrize(
    ("pause", "words"),
    [
        (Pause(rx=True, tx=False), "receives global pause, and"),
        (Pause(rx=False, tx=True), "sends global pause, and"),
        (Pause(rx=True, tx=None), "receives global pause, and"),
        (Pause(rx=True, tx=True, autoneg=True), "as negotiated with the switch"),
    ],
)
def test_either_direction(pause, words: str) -> None:
    """And who decided it."""
    (fault,) = fails(roce_global_pause, netdevs(paused(), pause=pause))

    assert words in fault.summary


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert "info" in [fault.severity for fault in fails(roce_global_pause, changed_nic(paused(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: netdevs(c, pause=Pause(rx=False, tx=False)), Pass, id="off"),
        pytest.param(lambda c: netdevs(c, pause=Pause(rx=False)), Unknown, id="half read"),
        pytest.param(lambda c: netdevs(c, pause=Pause(tx=False)), Unknown, id="other half read"),
        pytest.param(lambda c: netdevs(c, pause=None), Unknown, id="not read"),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only(3)), NotApplicable, id="PFC on"),
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(
            lambda c: netdevs(
                c,
                pause=Pause(rx=True, tx=False),
                neighbor=Neighbor(system="leaf", applications={"udp:4791": 3}),
            ),
            NotApplicable,
            id="lossy by the switch",
        ),
        pytest.param(lambda c: netdevs(c, qos=None), Unknown, id="DCB not known"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_global_pause, circumstance(paused()), kind)


def test_guards_of_one_port() -> None:
    """PFC, or no DCB."""
    assert (
        "the same on 3 ports: mlx5_0,2,3" in fails(roce_global_pause, changed_netdev(paused(), 1, qos=None))[0].summary
    )
    assert "the same on 3 ports" in fails(roce_global_pause, dcb(paused(), pfc=only(3)))[0].summary


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
    context = both(**changes)
    if kind is None:
        assert 1 == len(fails(roce_pause_and_pfc, context))
    else:
        silent(roce_pause_and_pfc, context, kind)


def test_without_pfc_it_is_another_rule() -> None:
    """roce-global-pause."""
    silent(roce_pause_and_pfc, dcb(both(), pfc=only()), NotApplicable)
