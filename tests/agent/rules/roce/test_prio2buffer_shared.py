"""roce-prio2buffer-shared: who else fills the lossless buffer; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.traffic_classes import roce_prio2buffer_shared as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, fails
from tests.agent.rules.roce.qos import NETDEV, PORT, dcb, limited, roce, silent, window
from tests.agent.rules.rows import only

TOGETHER = {"prio_buffer": [0] * 8, "size_bytes": [262_144] * 8}


def shared(other: int = 20, lossless: int = 980):
    """Bytes of priority 0 and 3 over the window, in one buffer."""
    moved = {"rx_prio0_bytes": other, "rx_prio3_bytes": lossless}
    return window(dcb(roce(), buffers=TOGETHER), {NETDEV: moved})


def test_ordinary_traffic_in_the_lossless_buffer_is_told() -> None:
    """Which priorities, and how much."""
    (fault,) = fails(rule, shared())

    assert (PORT, "info") == (fault.subject, fault.severity)
    assert "priority 0 shares the receive buffer of the lossless priority 3, and is in use" == fault.summary
    assert ["0,0,0,0,0,0,0,0", "20"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(("other", "fires"), [(0, False), (10, False), (11, True)])
def test_a_hundredth_is_nothing(other: int, fires: bool) -> None:
    """More than 1% of all bytes."""
    assert fires == bool(fails(rule, shared(other, 1000 - other)))


def test_the_operator_says_how_much() -> None:
    """The limit is a threshold."""
    assert [] == fails(rule, limited(shared(), "roce-prio2buffer-shared.percent", 2))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(dcb(shared(), pfc=only()), NotApplicable, id="PFC off"),
        pytest.param(dcb(shared(), pfc=[True] * 8), NotApplicable, id="PFC everywhere"),
        pytest.param(dcb(shared(), buffers={}), Unknown, id="buffers not read"),
        pytest.param(dcb(shared(), buffers={"prio_buffer": [0] * 7}), Unknown, id="7 buffers"),
        pytest.param(dcb(shared(), buffers={"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0]}), Pass, id="its own"),
        pytest.param(dcb(roce(), buffers=TOGETHER), Unknown, id="no window"),
        pytest.param(changed_netdev(shared(), 1, counters={}), Unknown, id="no counters"),
        pytest.param(changed_netdev(shared(), 1, qos=None), Unknown, id="DCB not known"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, case, kind)
