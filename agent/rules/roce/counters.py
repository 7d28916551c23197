"""Error and retransmission counters of RoCE ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.counters import port_counters
from agent.model.nic import Nic, Port
from agent.rules import applicability
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import (
    SINCE_CLEARED,
    Count,
    CounterDelta,
    Counters,
    delta,
    in_window,
    limit,
    with_subject,
)
from agent.rules.node_wide import aggregate_node_wide, merge_failures, on_all
from agent.rules.pages import read_limit
from agent.rules.roce.port_counters import (
    RocePortCounters,
    adaptive_routing,
    delta_of_discards,
    describe_loss,
    rdma_packets,
    watch_interfaces,
    watch_ports,
)
from agent.rules.rule import NODE, Fail, NamedSubject, Pass, Result, Unknown, gravest, rule

_CRC = Count(
    (
        *("rx_crc_errors_phy", "rx_symbol_err_phy", "rx_fcs_err_frames", "frames_rx_bad_fcs", "rx_crc_errors.nic"),
        "mac_rx_fcs_err_pkt_num",  # Ascend
    ),
    (limit("roce-rt-crc.per_hour", "warning"),),
    "received frames with a wrong check sum",
    "Each is a lost packet in spite of PFC: RoCE resends what followed, or waits up to 4.3 s.",
)
_OF_KERNEL = replace(_CRC, names=("rx_crc_errors",))  # of any driver, where its own are not there
_ALL_KINDS = replace(_CRC, names=("rx_errors",), what="received frames with errors")  # `ip -s link` shows no kinds


@rule("roce-rt-crc", each=watch_interfaces, merge=on_all("damaged frames on every RoCE port"))
def roce_rt_crc(context: RuleContext, counters: RocePortCounters) -> Result:
    kinds = (kind for kind in (_CRC, _OF_KERNEL, _ALL_KINDS) if not counters.eth.now.keys().isdisjoint(kind.names))
    return next(kinds, _OF_KERNEL).judge(context, counters.place, counters.eth)


_LOST = Count(
    ("rx_pcs_symbol_err_phy", "rx_fec_uncorrectable_blocks", "fec_uncorrectable_blocks", "fec_uncorr_blocks"),
    (limit("roce-fec-ber.lost_per_hour", "error"),),
    "blocks that FEC could not correct",
    "Each is lost traffic: RoCE resends what followed, or waits up to 4.3 s.",
    cause="lost",
)
_CORRECTED, _BITS = "rx_corrected_bits_phy", "rx_bits_phy"
_DOWNS = ("carrier_down_count", "link_down_events_phy", "link_down_events")
_FEC_BER_WARN = read_limit("roce-fec-ber.warning_ratio")
_FEC_BER_ERROR = read_limit("roce-fec-ber.error_ratio")
_LEAST_BITS = 1e12


@rule("roce-fec-ber", each=watch_interfaces, merge=on_all("bit errors on every RoCE port"))
def roce_fec_ber(context: RuleContext, counters: RocePortCounters) -> Result:
    about = counters.place
    downs = delta(context, counters.eth, _DOWNS)
    if isinstance(downs, CounterDelta) and downs.total:
        return about.not_applicable(
            "not-in-use", detail="its link went down in the window: errors while it comes up do not count"
        )
    lost = _LOST.judge(context, counters.place, counters.eth)
    if isinstance(lost, Fail):
        return lost
    ratio = _corrected_ratio(context, counters)
    return next((a for kind in (Fail, Unknown, Pass) for a in (ratio, lost) if isinstance(a, kind)), lost)


def _corrected_ratio(context: RuleContext, counters: RocePortCounters) -> Result:
    place = counters.place
    fixed = delta(context, counters.eth, [_CORRECTED])
    bits = context.counter_delta(counters.eth.subject, _BITS, counters.eth.now)
    if not isinstance(fixed, CounterDelta):
        return place.not_applicable("not-measured", detail="its driver does not count corrected bits")
    if not fixed.total:
        return place.unknown(fixed.gap) if fixed.gap else place.passes()
    if bits is None or bits < _LEAST_BITS:
        return place.unknown(
            "sample-too-small",
            detail=f"{fixed.total} corrected bits, too few bits received {in_window(context)} for a ratio",
        )
    ratio = fixed.total / bits
    if ratio < context.threshold(_FEC_BER_WARN):
        return place.passes()
    grave = ratio >= context.threshold(_FEC_BER_ERROR)
    return place.fail(
        summary=f"FEC corrected {ratio:.1e} of the bits received {in_window(context)}, "
        f"limit {context.threshold(_FEC_BER_ERROR if grave else _FEC_BER_WARN):.0e}",
        impact=f"At 2.4e-04 the code ends, and traffic is lost; this is {100 * ratio / 2.4e-4:.0f}% of it.",
        evidence=fixed.evidence,
        severity=place.severity("error" if grave else "warning"),
        cause="corrected",
    )


_ICRC = Count(
    ("rx_icrc_encapsulated",),
    (limit("roce-rt-icrc.per_hour", "warning"),),
    "RoCE packets with a wrong ICRC",
    "Each was altered on its way though every link's check sum was right, and must be sent again.",
)


@rule("roce-rt-icrc", each=watch_ports, merge=on_all("altered packets on every RoCE port"))
def roce_rt_icrc(context: RuleContext, counters: RocePortCounters) -> Result:
    return _ICRC.judge(context, counters.place, counters.rdma)


# What a sender counts of packets that it had to send again: mlx5, bnxt_re, irdma, ionic
_SENT_AGAIN = (
    *("packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err"),
    *("seq_err_naks_rcvd", "to_retransmits"),
    *("Nak Sequence Error", "Nak Sequence Error Implied", "RTO"),
    *("req_rx_pkt_seq_err", "req_rx_impl_nak_seq_err"),
    "roce_new_pkt_rty_num",  # Ascend
)
_RETRANS_TIMEOUTS = ("local_ack_timeout_err", "roce_adp_retrans_to", "to_retransmits", "RTO")
# What a receiver counts
_GAPS = (
    *("out_of_sequence", "oos_drop_count", "Rcvd Out of order packets"),
    *("resp_rx_outouf_seq", "roce_out_of_order_num"),
)
_RETRANS_WARN = read_limit("roce-rt-retrans.warning_ratio")
_RETRANS_ERROR = read_limit("roce-rt-retrans.error_ratio")
_RETRANS_MANY = read_limit("roce-rt-retrans.uncounted")
_RETRANS_LEAST = read_limit("roce-rt-retrans.events")
_PACKETS = read_limit("roce-rt-retrans.packets")
_LOSSY_TIMES = read_limit("roce-rt-retrans.lossy_times")
_ALIKE = 4.0  # times the least of all ports: what spreading packets over several paths gives


@rule("roce-rt-retrans")
def roce_rt_retrans(context: RuleContext) -> Iterator[Result]:
    ports = list(watch_ports(context))
    answers = [_judge_retrans(context, port) if isinstance(port, RocePortCounters) else port for port in ports]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    judged = [port for port in ports if isinstance(port, RocePortCounters)]
    if 1 < len(faults) == len(judged) and _is_reordering(context, judged):
        yield from (answer for answer in answers if not isinstance(answer, Fail))
        yield _report_reordering(faults)
    else:
        yield from aggregate_node_wide(answers, "retransmissions on every RoCE port")


def _is_reordering(context: RuleContext, ports: Sequence[RocePortCounters]) -> bool:
    """Whether all ports count packets out of order alike, and none a timeout or a frame that was dropped."""
    counts = [(delta(context, port.rdma, _RETRANS_TIMEOUTS), delta_of_discards(context, port)) for port in ports]
    if any(not isinstance(one, CounterDelta) or one.total or one.gap for both in counts for one in both):
        return False
    ratios = []
    for port in ports:
        counter_delta = delta(context, port.rdma, (*_SENT_AGAIN, *_GAPS))
        carried = (rdma_packets(context, port) or 0) + (rdma_packets(context, port, received=True) or 0)
        ratios.append(getattr(counter_delta, "total", 0) / max(carried, 1))
    return max(ratios) <= _ALIKE * min(ratios)


def _report_reordering(faults: Sequence[Fail]) -> Fail:
    one = merge_failures(faults, "packets arrive out of order on every RoCE port alike, without a timeout or a drop")
    return replace(
        one,
        impact="None where switches or NICs spread packets over several paths: they are reordered, not lost.",
        remedy="",
        severity="info",
        confidence="medium",
        cause="reordered",
        situation="reordered",
    )


def _judge_retrans(context: RuleContext, counters: RocePortCounters) -> Result:
    overtaking = adaptive_routing(context)
    sent = delta(context, counters.rdma, _RETRANS_TIMEOUTS if overtaking else _SENT_AGAIN)
    ways = [_judge_retrans_direction(context, counters, sent, received=False, overtaking=overtaking)]
    if not overtaking:
        ways.append(
            _judge_retrans_direction(
                context, counters, delta(context, counters.rdma, _GAPS), received=True, overtaking=None
            )
        )
    return gravest(ways)


def _judge_retrans_direction(
    context: RuleContext,
    counters: RocePortCounters,
    count: CounterDelta | Result,
    received: bool,
    overtaking: str | None,
) -> Result:
    place = counters.place
    if not isinstance(count, CounterDelta):
        return with_subject(place, count)
    if not count.total or (count.total < context.threshold(_RETRANS_LEAST) and not count.gap):
        return place.unknown(count.gap) if count.gap else place.passes()
    carried = rdma_packets(context, counters, received)
    what, way = ("gaps in what it received", "received") if received else ("packets sent again", "sent")
    if carried is None and context.assumed_window == SINCE_CLEARED and count.total >= context.threshold(_RETRANS_MANY):
        return place.fail(
            summary=f"{count.total} {what} {in_window(context)}; its packets are not counted here",
            impact="Whether it is much depends on the packets that it carried; a lost last packet costs seconds.",
            remedy=describe_loss(context, counters),
            evidence=count.evidence,
            severity="info",
            confidence="low",
        )
    if carried is None:
        return place.unknown("not-shown", detail=f"{count.total} retransmissions, but its RDMA packets are not counted")
    if carried < context.threshold(_PACKETS):
        return place.unknown(
            "sample-too-small", detail=f"{count.total} retransmissions in {carried} packets: too few for a ratio"
        )
    ratio = count.total / max(carried, 1)
    raised = context.threshold(_LOSSY_TIMES) if context.settings.facts.get("roce_mode") == "lossy" else 1.0
    if ratio < context.threshold(_RETRANS_WARN) * raised:
        return place.unknown(count.gap) if count.gap else place.passes()
    grave = ratio >= context.threshold(_RETRANS_ERROR) * raised
    limit = context.threshold(_RETRANS_ERROR if grave else _RETRANS_WARN) * raised
    return place.fail(
        summary=f"{count.total} {what} {in_window(context)}: {ratio:.1g} of {carried} packets {way}, limit {limit:.0e}",
        impact=f"{100 * ratio:.2g}% of its packets are followed by a resend; a lost last packet costs seconds.",
        remedy=describe_loss(context, counters) + (f" Only timeouts are counted: {overtaking}." if overtaking else ""),
        evidence=count.evidence,
        severity=place.severity("error" if grave else "warning"),
    )


_ACK_TIMEOUTS = Count(
    ("local_ack_timeout_err", "to_retransmits", "RTO", "requester_timeout"),
    (limit("roce-rt-ack-timeout.per_minute", "error"),),
    "ACK timeouts",
    "Each stops a queue pair for up to 4.3 s (NCCL's default); seven in a row end the job.",
)


@rule("roce-rt-ack-timeout", each=watch_ports, merge=on_all("ACK timeouts on every RoCE port"))
def roce_rt_ack_timeout(context: RuleContext, counters: RocePortCounters) -> Result:
    remedy = f"Look for a peer that hangs and for drops on the path. {describe_loss(context, counters)}"
    return replace(_ACK_TIMEOUTS, remedy=remedy).judge(context, counters.place, counters.rdma)


_RETRY_EXCEEDED = Count(
    (
        *("req_transport_retries_exceeded", "max_retry_exceeded", "requester_retries_exceeded"),
        "req_tx_retry_excd_err",  # ionic
    ),
    (limit("roce-rt-retry-exceeded.events", "error"),),
    "queue pairs gave up (retries exceeded)",
    "Each ended a connection: a NCCL job aborts with error 12, vendor error 129.",
    "medium",
)


@rule("roce-rt-retry-exceeded", each=watch_ports, merge=on_all("broken connections on every RoCE port"))
def roce_rt_retry_exceeded(context: RuleContext, counters: RocePortCounters) -> Result:
    return _RETRY_EXCEEDED.judge(context, counters.place, counters.rdma)


_RNR = Count(
    (
        *("rnr_nak_retry_err", "rnr_naks_rcvd", "RNR received", "requester_rnr_nak"),  # the peer had no buffer posted
        *("out_of_buffer", "resp_rx_outof_buf"),  # the same seen here as receiver
    ),
    (limit("roce-rt-rnr.warning_per_minute", "warning"), limit("roce-rt-rnr.per_minute", "info")),
    "times no receive buffer was posted",
    "Each makes a sender wait and try again (0.01 to 655 ms): bandwidth falls although the network is healthy.",
)


@rule("roce-rt-rnr", each=watch_ports, merge=on_all("receivers without buffers on every RoCE port"))
def roce_rt_rnr(context: RuleContext, counters: RocePortCounters) -> Result:
    if counters.roce.nic.role == "storage":
        return counters.place.not_applicable(
            "other-kind", detail="a storage NIC: its peers run out of buffers in good health"
        )
    return _RNR.judge(context, counters.place, counters.rdma)


_DUPLICATES = Count(
    ("duplicate_request", "dup_req", "responder_dup_request", "resp_rx_dup_request"),
    (limit("roce-rt-duplicates.per_hour", "info"),),
    "duplicate requests",
    "Peers send again what this host already had: their path to or from here loses packets, and costs them timeouts.",
)


@rule("roce-rt-duplicates", each=watch_ports, merge=on_all("duplicate requests on every RoCE port"))
def roce_rt_duplicates(context: RuleContext, counters: RocePortCounters) -> Result:
    here = delta_of_discards(context, counters)
    if isinstance(here, CounterDelta) and here.total:
        return counters.place.not_applicable(
            "judged-elsewhere", detail="it dropped received frames itself: see roce-rt-rx-discards"
        )
    return _DUPLICATES.judge(context, counters.place, counters.rdma)


_ADAPTIVE = Count(
    ("roce_adp_retrans_to", "roce_slow_restart_trans"),
    (limit("roce-rt-adaptive-retrans.per_hour", "info"),),
    "adaptive timeouts and slow restarts",
    "Each costs a round trip or lowers the rate; the fabric loses packets although the usual counters do not grow.",
)
_RETRANSMISSIONS = ("roce_adp_retrans",)
_ADAPTIVE_RATIO = limit("roce-rt-adaptive-retrans.ratio", "info")
_LEAST_PACKETS = 1_000_000


@rule("roce-rt-adaptive-retrans", each=watch_ports, merge=on_all("hidden loss on every RoCE port"))
def roce_rt_adaptive_retrans(context: RuleContext, counters: RocePortCounters) -> Result:
    if context.settings.facts.get("roce_mode") == "lossy":
        return counters.place.not_applicable(
            "declared", detail='declared roce_mode = "lossy": the features do what they are for'
        )
    kind = replace(_ADAPTIVE, remedy=describe_loss(context, counters))
    answer = kind.judge(context, counters.place, counters.rdma)
    again, sent = delta(context, counters.rdma, _RETRANSMISSIONS), rdma_packets(context, counters)
    if not isinstance(answer, Pass) or not isinstance(again, CounterDelta):
        return answer
    if again.gap:
        return counters.place.unknown(again.gap)
    ratio = context.threshold(_ADAPTIVE_RATIO.threshold)
    if sent is None or sent < _LEAST_PACKETS or again.total <= ratio * sent:
        return answer
    failure = kind.fail(context, counters.place, again, _ADAPTIVE_RATIO)
    return replace(failure, summary=f"{again.total} adaptive retransmissions of {sent} packets, limit {ratio:.0e}")


_WAYS = (  # what the driver rxe counts: loss, all packets of that way, words
    ("out_of_seq_request", "rcvd_pkts", "gaps in what it received"),
    ("completer_retry_err", "sent_pkts", "times it had to send again"),
)
_SOFT_LOSS_LEAST = read_limit("roce-rt-soft-loss.events")
_SOFT_LOSS_RATIO = read_limit("roce-rt-soft-loss.ratio")


@rule("roce-rt-soft-loss", gate=applicability.has_roce_counters)
def roce_rt_soft_loss(context: RuleContext) -> Iterator[Result]:
    soft = [(nic, port) for nic in context.topology.nics if nic.software for port in nic.ports]
    if not soft:
        yield NODE.not_applicable("no-such-device", detail="no software RDMA device")
    for nic, port in soft:
        yield _judge_soft_loss(context, nic, port)


def _judge_soft_loss(context: RuleContext, nic: Nic, port: Port) -> Result:
    about = NamedSubject(f"port:{nic.id}/{port.port}", nic.label, frozenset({nic.id}))
    if port.state != "ACTIVE":
        if port.state:
            return about.not_applicable("not-in-use", detail="not active")
        return about.unknown("not-read", fact="its state")
    folder = f"/sys/class/infiniband/{nic.label}/ports/{port.port}/hw_counters"
    counters = Counters(about.subject, port_counters(port), lambda name: f"{folder}/{name}")
    return gravest(_judge_soft_loss_direction(context, about, counters, *way) for way in _WAYS)


def _judge_soft_loss_direction(
    context: RuleContext, about: NamedSubject, counters: Counters, lost: str, packets: str, words: str
) -> Result:
    count = delta(context, counters, (lost,))
    if not isinstance(count, CounterDelta):
        return count
    if count.gap:
        return about.unknown(count.gap)
    if count.total < max(context.threshold(_SOFT_LOSS_LEAST), 1):
        return about.passes()
    carried = context.counter_delta(about.subject, packets, counters.now)
    if carried is None:
        return about.unknown("not-shown", detail=f"{count.total} {words}, but its packets are not counted")
    ratio = count.total / max(carried, 1)
    if ratio < context.threshold(_SOFT_LOSS_RATIO):
        return about.passes()
    limit = context.threshold(_SOFT_LOSS_RATIO)
    return about.fail(
        summary=f"{count.total} {words} {in_window(context)}: {ratio:.1g} of {carried} packets, limit {limit:.0e}",
        impact="Every lost packet is sent again with all that followed: what is measured here is the loss.",
        evidence=count.evidence,
    )
