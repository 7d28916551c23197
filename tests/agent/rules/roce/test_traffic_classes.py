"""Buffers, bandwidth shares and rate limits of traffic classes."""

from __future__ import annotations

import pytest

from agent.model.nic import TransceiverModule
from agent.rules.roce.traffic_classes import (
    needed_bytes,
    roce_ets_starved,
    roce_headroom_small,
    roce_prio2buffer_shared,
    roce_tc_rate_limited,
)
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import NETDEV, PORT, dcb, facts, limited, lost, nccl_sets, roce, silent, window
from tests.agent.rules.rows import only

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


def strict(**sent: int):
    """Queue 6 strict; bytes of the window by priority."""
    tsa = ["ets"] * 6 + ["strict", "ets"]
    return window(ets(90, tc_tsa=tsa), {NETDEV: {f"tx_{prio}_bytes": count for prio, count in sent.items()}})


def one_queue(**sent: int):
    """Priority 0 and 3 in queue 0."""
    context = ets(50, prio_tc=[0] * 8, tc_bandwidth=[100, 0, 0, 0, 0, 0, 0, 0])
    return window(context, {NETDEV: {f"tx_{prio}_bytes": count for prio, count in sent.items()}})


def seven():
    """Counters of all priorities but the last."""
    return {name: count for name, count in roce().topology.netdevs[1].counters.items() if "prio7" not in name}


@pytest.mark.parametrize("queue", [0, 7])
def test_the_first_and_the_last_queue_are_queues(queue: int) -> None:
    """RDMA may be in any of eight."""
    table = [queue if n == 3 else (queue + 1 + n) % 8 for n in range(8)]
    shares = [10 if n == queue else 13 for n in range(8)]

    assert 1 == len(fails(roce_ets_starved, dcb(ets(), prio_tc=table, tc_bandwidth=shares)))


def test_a_small_share_is_a_warning() -> None:
    """As soon as others send."""
    (fault,) = fails(roce_ets_starved, ets())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "ETS guarantees 10% to the queue of RDMA (priority 3, queue 3)" == fault.summary
    assert "dcb ets show dev eth1" == fault.evidence[0].source
    assert ["info"] == [fail.severity for fail in fails(roce_ets_starved, changed_nic(ets(), 1, role="storage"))]


@pytest.mark.parametrize(("share", "fires"), [(0, True), (29, True), (30, False), (90, False)])
def test_the_limit_for_ets_starved(share: int, fires: bool) -> None:
    """Below 30%, or what the operator says."""
    assert fires == bool(fails(roce_ets_starved, ets(share)))
    assert [] == fails(roce_ets_starved, limited(ets(20), "roce-ets-starved.percent", 20))


@pytest.mark.parametrize(
    ("context", "fires"),
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
def test_who_competes(context, fires: bool) -> None:
    """More than 20% of the bytes of the window."""
    assert fires == bool(fails(roce_ets_starved, context))


@pytest.mark.parametrize(
    ("context", "kind"),
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
def test_a_guard_keeps_ets_starved_silent(context, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_ets_starved, context, kind)


# roce-headroom-small: what must fit after a pause; and every guard alone.

NEED = needed_bytes(7, 400, 4200)  # of the healthy port


def sized(size: int, **more):
    buffers = {"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "size_bytes": [20_000, size, 0, 0, 0, 0, 0, 0]}
    return dcb(roce(), **({"buffers": buffers} | more))


@pytest.mark.parametrize(
    ("metres", "gbit_s", "kilobytes"), [(7, 400, 160), (30, 400, 180), (100, 400, 241), (7, 800, 287)]
)
def test_the_sum_is_that_of_the_driver(metres, gbit_s, kilobytes) -> None:
    """As the reference figures at MTU 9000."""
    assert abs(needed_bytes(metres, gbit_s, 9000) / 1000 - kilobytes) < 1


def test_a_small_buffer_is_a_warning() -> None:
    """With what is needed, and for what."""
    (fault,) = fails(roce_headroom_small, sized(100_000))

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "buffer 1 has 100 kB; 147 kB are needed at 400 Gb/s, MTU 4200 and 7 m of cable" == fault.summary
    assert "--cable_len 7`:" in fault.remedy
    assert "dcb buffer show dev eth1" == fault.evidence[0].source


def test_the_limit_is_exact() -> None:
    """Not a byte less."""
    assert 1 == len(fails(roce_headroom_small, sized(int(NEED) - 1)))
    assert [] == fails(roce_headroom_small, sized(int(NEED)))


def test_seven_rows_are_not_eight() -> None:
    """A table that ends early was not read."""
    table = {"prio_buffer": [1] * 7, "size_bytes": [0, 100_000]}

    silent(roce_headroom_small, dcb(sized(100_000), buffers=table), Unknown)


def test_the_first_buffer_is_one() -> None:
    """All priorities in buffer 0."""
    (fault,) = fails(
        roce_headroom_small, dcb(sized(100_000), buffers={"prio_buffer": [0] * 8, "size_bytes": [100_000]})
    )

    assert "buffer 0 has 100 kB" in fault.summary


def test_the_interface_s_speed_comes_first() -> None:
    """A breakout cable: the interface knows."""
    slow = changed_netdev(sized(100_000), 1, speed_gbit_s=100.0)

    assert [] == fails(roce_headroom_small, slow)


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


@pytest.mark.parametrize(
    "longer",
    [
        lambda c: facts(c, cable_metres=100.0),
        lambda c: facts(c, cable_metres=100),
        lambda c: changed_netdev(c, 1, module=TransceiverModule(length_m=100.0)),
        lambda c: dcb(c, cable_metres=100),
    ],
)
def test_the_longest_cable_counts(longer) -> None:
    """Declared, reported by the cable, or what the driver reckons with."""
    (fault,) = fails(roce_headroom_small, longer(sized(200_000)))

    assert fault.summary.endswith("and 100 m of cable")
    assert "--cable_len 100`:" in fault.remedy


def test_a_short_cable_is_believed() -> None:
    """Where the driver says nothing, the cable does; else 7 m."""
    short = changed_netdev(sized(int(NEED) - 1, cable_metres=None), 1, module=TransceiverModule(length_m=1.0))

    assert [] == fails(roce_headroom_small, short)
    assert 1 == len(fails(roce_headroom_small, sized(int(NEED) - 1, cable_metres=None)))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_nic(c, 1, driver="bnxt_en"), NotApplicable, id="another driver"),
        pytest.param(lambda c: changed_nic(c, 1, model="BlueField-3"), NotApplicable, id="BlueField"),
        pytest.param(lambda c: dcb(c, pfc=only()), NotApplicable, id="PFC off"),
        pytest.param(lambda c: dcb(c, buffers={}), Unknown, id="buffers not read"),
        pytest.param(lambda c: dcb(c, buffers={"prio_buffer": [0] * 8}), Unknown, id="sizes not read"),
        pytest.param(lambda c: dcb(c, buffers={"size_bytes": [1] * 8}), Unknown, id="map not read"),
        pytest.param(
            lambda c: dcb(c, buffers={"prio_buffer": [9] * 8, "size_bytes": [1] * 8}), Unknown, id="no such buffer"
        ),
        pytest.param(
            lambda c: changed_port(changed_netdev(c, 1, speed_gbit_s=None), 1, rate_gbit_s=None), Unknown, id="speed"
        ),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=None), Unknown, id="MTU"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, driver="mlx5"), None, id="mlx5 by its other name"),
        pytest.param(lambda c: changed_nic(c, 1, driver=None), None, id="the interface's driver"),
        pytest.param(lambda c: changed_netdev(c, 1, speed_gbit_s=None), None, id="the port's rate"),
    ],
)
def test_a_guard_keeps_headroom_small_silent(circumstance, kind) -> None:
    """The firing case and this circumstance; None: it fires all the same."""
    context = circumstance(sized(100_000))
    if kind is None:
        assert 1 == len(fails(roce_headroom_small, context))
    else:
        silent(roce_headroom_small, context, kind)


def test_the_healthy_buffer_is_large_enough() -> None:
    """What mlx5 computes by itself."""
    silent(roce_headroom_small, roce(), Pass)


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


@pytest.mark.parametrize(("other", "fires"), [(0, False), (10, False), (11, True)])
def test_a_hundredth_is_nothing(other: int, fires: bool) -> None:
    """More than 1% of all bytes."""
    assert fires == bool(fails(roce_prio2buffer_shared, shared(other, 1000 - other)))


def test_the_operator_says_how_much() -> None:
    """The limit is a threshold."""
    assert [] == fails(roce_prio2buffer_shared, limited(shared(), "roce-prio2buffer-shared.percent", 2))


@pytest.mark.parametrize(
    ("context", "kind"),
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
def test_a_guard_keeps_prio2buffer_shared_silent(context, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_prio2buffer_shared, context, kind)


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


@pytest.mark.parametrize(("gbit_s", "fires"), [(379.9, True), (380, False), (400, False), (0, False)])
def test_the_limit_for_tc_rate_limited(gbit_s: float, fires: bool) -> None:
    """Below 95% of the link, or what the operator says."""
    assert fires == bool(fails(roce_tc_rate_limited, rates(gbit_s)))
    assert [] == fails(roce_tc_rate_limited, limited(rates(100), "roce-tc-rate-limited.percent", 25))


def test_all_queues_limited_is_one_whatever_rdma_uses() -> None:
    """The class need not be known; the rate of the port serves where the interface has none."""
    context = dcb(roce(), max_rate_kbit_s=[100_000_000] * 8, trust=None)

    assert 1 == len(fails(roce_tc_rate_limited, context))
    assert 1 == len(fails(roce_tc_rate_limited, changed_netdev(context, 1, speed_gbit_s=None)))


@pytest.mark.parametrize(
    ("context", "kind"),
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
def test_a_guard_keeps_tc_rate_limited_silent(context, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_tc_rate_limited, context, kind)
