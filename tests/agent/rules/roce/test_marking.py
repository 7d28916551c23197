"""Marking and trust: how RoCE packets get their priority; buffers, bandwidth shares and rate limits of classes."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.node import NcclLibrary, NcclSetting
from agent.rules.roce.lossless import (
    roce_marking_unset,
    roce_nccl_tc_suspect,
    roce_trust_pcp_untagged,
    roce_vlan_no_egress_map,
)
from agent.rules.roce.traffic_classes import (
    roce_ets_starved,
    roce_headroom_small,
    roce_prio2buffer_shared,
    roce_tc_rate_limited,
)
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, probe, software
from tests.agent.rules.roce.qos import (
    NETDEV,
    PORT,
    dcb,
    dcb_everywhere,
    facts,
    lost,
    nccl_sets,
    netdevs,
    roce,
    silent,
    vlan,
    window,
)
from tests.agent.rules.rows import only

# roce-marking-unset: nothing marks RDMA, or nothing that could be seen; and every guard alone.
QUEUES = list(range(8))
TOGETHER = {"prio_buffer": [0] * 8, "size_bytes": [262_144] * 8}


def unset():
    return nccl_sets(roce())


def seen(context, **changes):
    """The same machine with another view of NCCL."""
    return software(context, nccl=msgspec.structs.replace(context.software.nccl, **changes))


def test_lost_packets_make_it_an_error() -> None:
    """On the port that lost them."""
    result = {fault.subject: (fault.severity, fault.confidence) for fault in fails(roce_marking_unset, lost(unset()))}

    assert ("error", "high") == result[PORT]
    assert 3 == sum(("warning", "medium") == value for value in result.values())


@pytest.mark.parametrize(
    ("doubt", "word"),
    [
        pytest.param({"jobs": 2, "jobs_unread": 1}, "1 of 2 jobs", id="jobs unread"),
        pytest.param({"jobs": None}, "is not known", id="jobs not known"),
        pytest.param({"plugins": [NcclLibrary(path="/opt/libnccl-net.so")]}, "plugin may mark by itself", id="plugin"),
    ],
)
def test_what_was_not_seen_may_set_it(doubt, word: str) -> None:
    """Info, and roce-lossy does not say it."""
    (fault,) = fails(roce_marking_unset, seen(unset(), **doubt))

    assert ("info", "low") == (fault.severity, fault.confidence)
    assert word in fault.summary


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(lambda c: facts(c, roce_traffic_class=106), Pass, id="declared class"),
        pytest.param(lambda c: nccl_sets(c, NCCL_IB_TC="106"), Pass, id="set"),
        pytest.param(
            lambda c: seen(
                c, settings=[NcclSetting(key="NCCL_IB_TC", value="106", source="environment of pid 7 (a)", scope="job")]
            ),
            Pass,
            id="set by a job",
        ),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only(0)), Pass, id="DSCP 0 is lossless"),
        pytest.param(lambda c: dcb_everywhere(c, dscp_prio={"0": 3}), Pass, id="the table sends DSCP 0 there"),
        pytest.param(lambda c: dcb_everywhere(c, trust="pcp"), Pass, id="trust PCP"),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only()), Pass, id="PFC off"),
        pytest.param(lambda c: probe(c, "nccl", "denied"), Unknown, id="files not read"),
        pytest.param(lambda c: seen(c, searched=[]), Unknown, id="file not looked for"),
        pytest.param(lambda c: netdevs(c, qos=None), Unknown, id="DCB not known"),
    ],
)
def test_a_guard_keeps_marking_unset_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_marking_unset, circumstance(unset()), kind)


def test_without_doubt_and_without_a_good_class_neither_is_told() -> None:
    """No DSCP leads to the lossless priority: there is no value to declare."""
    (fault,) = fails(roce_marking_unset, dcb_everywhere(unset(), dscp_prio={"0": 0}))

    assert "PFC is on for priority 3; the same on 4 ports" in fault.summary
    assert ((), "") == (fault.values, fault.remedy)


# roce-nccl-tc-suspect: DSCP for traffic class, too large, no number; and every guard alone.


def slip(value: str = "26"):
    return nccl_sets(roce(), NCCL_IB_TC=value)


def test_what_is_no_number_is_named_so() -> None:
    """With the class that is lossless as the right value."""
    (word,), (large,) = fails(roce_nccl_tc_suspect, slip('"106"')), fails(roce_nccl_tc_suspect, slip("300"))

    assert "wrong" == word.cause
    assert """traffic class '"106"' is not a number from 0 to 255: NCCL uses 0""" in word.summary
    assert "is above 255" in large.summary
    assert (("TRAFFIC_CLASS", "106"),) == word.values
    (no_class,) = fails(roce_nccl_tc_suspect, dcb_everywhere(slip("300"), dscp_prio={"0": 0}))
    assert () == no_class.values  # no DSCP ends in the lossless priority


def test_the_forced_class_can_be_a_slip_too() -> None:
    """On its port only."""
    (fault,) = fails(roce_nccl_tc_suspect, changed_port(roce(), 1, traffic_class=26))

    assert fault.evidence[0].source.endswith("mlx5_1/tc/1/traffic_class")


# roce-trust-pcp-untagged: no tag, no class; and every guard alone.


def pcp():
    return dcb(roce(), trust="pcp")


@pytest.mark.parametrize(
    ("driver", "source", "severity", "confidence"),
    [
        ("mlx5_core", "APP table", "error", "high"),
        (None, "APP table", "error", "high"),
        ("bnxt_en", "APP table", "warning", "medium"),
        ("bnxt_en", "trust table", "error", "high"),
    ],
)
def test_what_an_empty_table_means_depends_on_the_driver(driver, source, severity, confidence) -> None:
    """mlx5 is known to keep it empty in PCP trust; a trust table says it itself."""
    (fault,) = fails(roce_trust_pcp_untagged, changed_nic(dcb(pcp(), trust_source=source), 1, driver=driver))

    assert (severity, confidence) == (fault.severity, fault.confidence)


# roce-vlan-no-egress-map: tags with the wrong priority; and every guard alone.


def unmapped():
    return vlan(roce(), "")


def test_a_vlan_without_a_map_is_a_warning() -> None:
    """Tags say 0."""
    (fault,) = fails(roce_vlan_no_egress_map, unmapped())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "VLAN tags carry priority 0, PFC is on for priority 3" == fault.summary
    assert fault.remedy.startswith("`ip link set eth1.5 type vlan egress 0:3 4:3`, or NCCL_IB_SL=3")
    assert ("none", "ip -d link show eth1.5") == (fault.evidence[0].value, fault.evidence[0].source)
    assert "0:2" == fails(roce_vlan_no_egress_map, vlan(roce(), "0:2"))[0].evidence[0].value


# roce-ets-starved: what the scheduler leaves to RDMA; and every guard alone.


def ets(share: int = 10, **changes):
    """Queue 3 of rail 1 with this share, the rest for queue 0."""
    values = {"prio_tc": QUEUES, "tc_tsa": ["ets"] * 8, "tc_bandwidth": [100 - share, 0, 0, share, 0, 0, 0, 0]}
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
