"""roce-global-pause: the whole link instead of one class; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor, Pause
from agent.rules.roce.pfc import roce_global_pause as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import dcb, dcb_everywhere, facts, netdevs, roce, silent
from tests.agent.rules.rows import only


def paused():
    """As the factory sets it, on every port."""
    return netdevs(dcb_everywhere(roce(), pfc=only()), neighbor=None, pause=Pause(rx=True, tx=True))


def test_pause_of_the_whole_link_is_a_warning() -> None:
    """And an error where PFC is meant."""
    (fault,) = fails(rule, paused())
    (meant,) = fails(rule, facts(paused(), roce_mode="lossless"))

    assert ("node", "warning") == (fault.subject, fault.severity)
    assert fault.summary.startswith("receives and sends global pause, and no priority has PFC; the same on 4 ports")
    assert "ethtool -A INTERFACE rx off tx off" in fault.remedy
    assert ("error", True) == (meant.severity, "declared lossless" in meant.summary)
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
    (fault,) = fails(rule, netdevs(paused(), pause=pause))

    assert words in fault.summary


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert "info" in [fault.severity for fault in fails(rule, changed_nic(paused(), 1, role="storage"))]


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
    silent(rule, circumstance(paused()), kind)


def test_guards_of_one_port() -> None:
    """PFC, or no DCB."""
    assert (
        "the same on 3 ports: mlx5_0/1 (eth0), mlx5_2/1"
        in fails(rule, changed_netdev(paused(), 1, qos=None))[0].summary
    )
    assert "the same on 3 ports" in fails(rule, dcb(paused(), pfc=only(3)))[0].summary
