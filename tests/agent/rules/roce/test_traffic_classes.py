"""Buffers, bandwidth shares and rate limits of traffic classes."""

from __future__ import annotations

import pytest

from agent.rules.roce.traffic_classes import (
    roce_ets_starved,
    roce_headroom_small,
    roce_prio2buffer_shared,
    roce_tc_rate_limited,
)
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import NETDEV, PORT, dcb, lost, roce, window

# roce-ets-starved: what the scheduler leaves to RDMA; and every guard alone.

QUEUES = list(range(8))


def ets(share: int = 10, **changes):
    """Queue 3 of rail 1 with this share, the rest for queue 0."""
    values = {
        "prio_tc": QUEUES,
        "tc_tsa": ["ets"] * 8,
        "tc_bandwidth": [100 - share, 0, 0, share, 0, 0, 0, 0],
    }
    return dcb(roce(), **(values | changes))


def test_a_small_share_is_a_warning() -> None:
    """As soon as others send."""
    (fault,) = fails(roce_ets_starved, ets())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "ETS guarantees 10% to the queue of RDMA (priority 3, queue 3)" == fault.summary
    assert "dcb ets show dev eth1" == fault.evidence[0].source
    assert ["info"] == [fail.severity for fail in fails(roce_ets_starved, changed_nic(ets(), 1, role="storage"))]


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


# roce-prio2buffer-shared: who else fills the lossless buffer; and every guard alone.

TOGETHER = {"prio_buffer": [0] * 8, "size_bytes": [262_144] * 8}


def shared(other: int = 20, lossless: int = 980):
    """Bytes of priority 0 and 3 over the window, in one buffer."""
    moved = {"rx_prio0_bytes": other, "rx_prio3_bytes": lossless}
    return window(dcb(roce(), buffers=TOGETHER), {NETDEV: moved})


def test_ordinary_traffic_in_the_lossless_buffer_is_told() -> None:
    """Which priorities, and how much."""
    (fault,) = fails(roce_prio2buffer_shared, shared())

    assert (PORT, "info") == (fault.subject, fault.severity)
    assert "priority 0 shares the receive buffer of the lossless priority 3, and is in use" == fault.summary
    assert ["0,0,0,0,0,0,0,0", "20"] == [row.value for row in fault.evidence]


# roce-tc-rate-limited: a limit on the queue of RDMA; and every guard alone.


def rates(gbit_s: float, queue: int = 3, **changes):
    """A limit on one queue of rail 1; priority 3 has queue 3."""
    return dcb(roce(), max_rate_kbit_s=[int(gbit_s * 1e6) if n == queue else 0 for n in range(8)], **changes)


def test_a_limit_is_a_warning() -> None:
    """What it costs in percent."""
    (fault,) = fails(roce_tc_rate_limited, rates(100))

    assert (PORT, "warning") == (fault.subject, fault.severity)
    assert "queue 3 of RDMA is limited to 100 Gb/s, the link runs at 400" == fault.summary
    assert "75% of the link cannot be used." == fault.impact
    assert "dcb maxrate show dev eth1" == fault.evidence[0].source
    assert ["info"] == [
        fail.severity for fail in fails(roce_tc_rate_limited, changed_nic(rates(100), 1, role="storage"))
    ]
