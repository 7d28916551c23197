"""roce-rt-retrans: ratios of both directions, who is blamed, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import Nccl, NcclSetting
from agent.rules.roce.counters import roce_rt_retrans as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, nic_id, software
from tests.agent.rules.moves import (
    NETDEV,
    PORT,
    PORT_GUARDS,
    gap,
    moved,
    one,
    roce,
    severities,
    silent,
    storage,
    without,
    without_window,
)

MILLION = 10**6
FIRING = moved(roce(), PORT, {"packet_seq_err": 50, "port_xmit_packets": 10 * MILLION})


def test_lost_packets_are_told_as_a_ratio() -> None:
    """Count, window, packets and limit."""
    (fault,) = fails(rule, FIRING)

    assert (PORT, "warning") == (fault.subject, fault.severity)
    assert fault.summary == "50 packets sent again in 60 min: 5e-06 of 10000000 packets sent, limit 1e-06"
    assert fault.remedy.startswith("Nothing was dropped on this host")
    assert "/sys/class/infiniband/mlx5_1/ports/1/hw_counters/packet_seq_err" == fault.evidence[0].source


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"packet_seq_err": 10, "port_xmit_packets": 10 * MILLION}, "warning"),
        ({"packet_seq_err": 9, "port_xmit_packets": MILLION}, None),
        ({"packet_seq_err": 10, "port_xmit_packets": 10 * MILLION + 1}, None),
        ({"packet_seq_err": 10, "port_xmit_packets": MILLION}, "warning"),
        ({"packet_seq_err": 10, "port_xmit_packets": MILLION - 1}, "unknown"),
        ({"local_ack_timeout_err": 1000, "port_xmit_packets": 10 * MILLION}, "error"),
        ({"implied_nak_seq_err": 999, "port_xmit_packets": 10 * MILLION}, "warning"),
        ({"out_of_sequence": 1000, "port_rcv_packets": 10 * MILLION}, "error"),
        ({"out_of_sequence": 1000, "port_xmit_packets": 10 * MILLION}, "unknown"),
        ({"out_of_sequence": 50, "port_rcv_packets": 10 * MILLION, "packet_seq_err": 5}, "warning"),
        ({"port_xmit_packets": 10**12, "port_rcv_packets": 10**12}, None),
    ],
)
def test_the_limits(counters: dict[str, int], expected: str | None) -> None:
    """Each direction against its own packets."""
    case = moved(roce(), PORT, counters)

    if expected == "unknown":
        assert isinstance(one(rule, case, PORT), Unknown)
    else:
        assert [expected] * (expected is not None) == [severity for _, severity in severities(rule, case)]


def test_own_discards_are_blamed_first() -> None:
    """Then the loss is here; where they were not counted, nobody is blamed."""
    (fault,) = fails(rule, moved(FIRING, NETDEV, {"rx_prio3_discards": 7}))
    assert fault.remedy.startswith("This host dropped 7 received frames itself")
    for unread in (changed_netdev(FIRING, 1, counters={}), gap(FIRING, NETDEV, "rx_prio0_discards")):
        (fault,) = fails(rule, unread)
        assert fault.remedy.startswith("Whether this host drops frames itself is not known")
    some = gap(moved(FIRING, NETDEV, {"rx_prio3_discards": 7}), NETDEV, "rx_prio0_discards")
    (fault,) = fails(rule, some)
    assert fault.remedy.startswith("This host dropped 7 received frames itself")


def test_under_adaptive_routing_only_timeouts_count() -> None:
    """Packets overtake each other: gaps and NAKs are no loss."""
    on = Nccl(settings=[NcclSetting(key="NCCL_IB_ADAPTIVE_ROUTING", value="1", source="/etc/nccl.conf:1")])
    gaps = {"out_of_sequence": 1000, "port_rcv_packets": MILLION}

    assert Pass(PORT) == one(rule, software(moved(FIRING, PORT, gaps), nccl=on), PORT)
    (fault,) = fails(rule, software(moved(FIRING, PORT, {"local_ack_timeout_err": 10}), nccl=on))
    assert "1e-06 of 10000000" in fault.summary
    assert "NCCL_IB_ADAPTIVE_ROUTING=1 (/etc/nccl.conf:1)" in fault.remedy
    off = Nccl(settings=[NcclSetting(key="NCCL_IB_ADAPTIVE_ROUTING", value="0", source="/etc/nccl.conf:1")])
    assert [(PORT, "error")] == severities(rule, software(moved(FIRING, PORT, gaps), nccl=off))


def test_other_drivers_count_under_their_own_names() -> None:
    """bnxt_re: NAKs, timeouts and packets."""
    names = {"seq_err_naks_rcvd": 0, "to_retransmits": 0, "oos_drop_count": 0, "tx_pkts": 0, "rx_pkts": 0}
    bnxt = changed_port(roce(), 1, counters={}, hw_counters=names)

    assert [(PORT, "error")] == severities(rule, moved(bnxt, PORT, {"to_retransmits": 100, "tx_pkts": MILLION}))
    assert [(PORT, "error")] == severities(rule, moved(bnxt, PORT, {"oos_drop_count": 100, "rx_pkts": MILLION}))


def test_packets_of_the_interface_serve_where_the_port_has_none() -> None:
    """Else it is unknown."""
    case = without(FIRING, "port_xmit_packets", "port_rcv_packets")
    assert isinstance(one(rule, case, PORT), Unknown)
    packets = {"tx_vport_rdma_unicast_packets": 0}
    case = changed_netdev(case, 1, counters={**case.topology.netdevs[1].counters, **packets})
    assert [(PORT, "warning")] == severities(rule, moved(case, NETDEV, {"tx_vport_rdma_unicast_packets": MILLION}))


def test_storage_is_less_grave_and_all_ports_are_one_finding() -> None:
    """As everywhere."""
    assert [(PORT, "info")] == severities(rule, storage(FIRING))
    case = FIRING
    for n in (0, 2, 3):
        case = moved(case, f"port:{nic_id(n)}/1", {"packet_seq_err": 50, "port_xmit_packets": 10 * MILLION})
    assert [("node", "warning")] == severities(rule, case)


def test_without_an_earlier_sample_it_is_unknown() -> None:
    """The first run on a node."""
    assert isinstance(one(rule, without_window(FIRING), "node"), Unknown)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [*PORT_GUARDS, pytest.param(lambda c: changed_nic(c, 1, driver="efa"), NotApplicable, id="EFA")],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    silent(rule, circumstance(FIRING), kind)


def test_the_gravest_direction_is_told() -> None:
    """A warning of what it sent, an error of what it received; an unknown one hides neither."""
    sent = {"packet_seq_err": 50, "port_xmit_packets": 10 * MILLION}
    received = {"out_of_sequence": 1000, "port_rcv_packets": 10 * MILLION}
    both = moved(roce(), PORT, {**sent, **received})

    assert [(PORT, "error")] == severities(rule, both)
    assert "gaps in what it received" in fails(rule, both)[0].summary
    assert [(PORT, "warning")] == severities(rule, gap(moved(roce(), PORT, sent), PORT, "out_of_sequence"))


@pytest.mark.parametrize("counter", ["packet_seq_err", "out_of_sequence"])
def test_what_could_not_be_compared_is_no_pass(counter: str) -> None:
    """Neither where nothing else moved nor where little did."""
    few = moved(roce(), PORT, {"local_ack_timeout_err": 1, "port_xmit_packets": 10 * MILLION})

    for case in (roce(), few):
        answer = one(rule, gap(case, PORT, counter), PORT)
        assert isinstance(answer, Unknown)


def test_few_that_may_be_more_are_weighed_all_the_same() -> None:
    """Nine that were seen, of packets few enough."""
    few = moved(roce(), PORT, {"packet_seq_err": 9, "port_xmit_packets": MILLION})

    assert [(PORT, "warning")] == severities(rule, gap(few, PORT, "implied_nak_seq_err"))


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({"packet_seq_err": 50, "port_xmit_packets": 10 * MILLION}, "packets sent, limit 1e-06"),
        ({"packet_seq_err": 5000, "port_xmit_packets": 10 * MILLION}, "packets sent, limit 1e-04"),
        ({"out_of_sequence": 50, "port_rcv_packets": 10 * MILLION}, "packets received, limit 1e-06"),
    ],
)
def test_way_and_limit_are_told(counters: dict[str, int], words: str) -> None:
    """Of what it sent or received; the limit that it is over."""
    assert words in fails(rule, moved(roce(), PORT, counters))[0].summary


def test_one_direction_that_is_counted_is_enough() -> None:
    """A driver that counts only gaps in what it receives passes by them."""
    case = without(roce(), "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err")

    assert Pass(PORT) == one(rule, case, PORT)


def test_why_nothing_is_known_is_told() -> None:
    """Where nothing was seen to move, it is not the number of packets."""
    assert Unknown(PORT, "counted anew") == one(rule, gap(roce(), PORT, "packet_seq_err"), PORT)
