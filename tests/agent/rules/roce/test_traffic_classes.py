"""Buffers, bandwidth shares and rate limits of traffic classes."""

from __future__ import annotations

import pytest

from agent.rules.roce.traffic_classes import (
    roce_headroom_small,
)
from tests.agent.rules.build import changed_netdev, fails
from tests.agent.rules.roce.qos import PORT, dcb, lost, roce

# roce-headroom-small: what must fit after a pause; and every guard alone.


def sized(size: int, **more):
    buffers = {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "size_bytes": [20_000, size, 0, 0, 0, 0, 0, 0]}
    return dcb(roce(), **({"buffers": buffers} | more))


def test_a_small_buffer_is_a_warning() -> None:
    """With what is needed, and for what."""
    (fault,) = fails(roce_headroom_small, sized(100_000))

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "buffer 1 has 100 kB; 147 kB are needed at 400 Gb/s, MTU 4200 and 7 m of cable" == fault.summary
    assert "--cable_len 7`:" in fault.remedy
    assert "dcb buffer show dev eth1" == fault.evidence[0].source


@pytest.mark.parametrize("counter", ["rx_discards_phy", "rx_prio3_discards"])
def test_discards_make_it_an_error(counter: str) -> None:
    """Lost in spite of PFC; NAKs alone prove no overflow here."""
    context = sized(100_000)
    context = changed_netdev(context, 1, counters={counter: 0})
    context = lost(context)
    assert context.window
    context.window.moved[f"netdev:{context.topology.netdevs[1].id}"] = {counter: 4}

    assert [("error", "high")] == [(fault.severity, fault.confidence) for fault in fails(roce_headroom_small, context)]
    assert ["warning"] == [fault.severity for fault in fails(roce_headroom_small, lost(sized(100_000)))]
