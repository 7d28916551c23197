"""Pause frames that RoCE ports sent and received."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent.model.finding import Evidence
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import (
    Count,
    CounterDelta,
    delta,
    format_window,
    limit,
    scale_count,
    sum_deltas,
    with_subject,
)
from agent.rules.node_wide import on_all
from agent.rules.pages import read_limit
from agent.rules.roce.port_counters import RocePortCounters, delta_by_priority, lossless_priorities, watch_interfaces
from agent.rules.rule import Fail, Pass, Result, rule
from agent.rules.wording import find_median

# Microseconds of pause: mlx5 by priority and of the whole port, bnxt and Ascend by priority
_NAMES = ("{way}_prio{p}_pause_duration", "pfc_pri{p}_{way}_duration_us", "{way}_pfc{p}_duration_us")
_GLOBAL = "{way}_global_pause_duration"


class PauseTime(msgspec.Struct, frozen=True):
    """The longest pause of one priority, or of the whole port."""

    share: float  # of the window, 0 to 1
    counter: str
    evidence: tuple[Evidence, ...]


def pause_time(context: RuleContext, counters: RocePortCounters, way: str) -> PauseTime | Result:
    """For how long one port was paused in the window, or why that is not known.

    `way`: "rx" it was held by the switch, "tx" it held the switch.
    """
    names = [_GLOBAL.format(way=way), *(name.format(way=way, p=p) for p in range(8) for name in _NAMES)]
    count = delta(context, counters.eth, names)
    if not isinstance(count, CounterDelta):
        return with_subject(counters.place, count)
    if not count.parts:
        return PauseTime(0.0, "", ()) if count.gap is None else counters.place.unknown(count.gap)
    name = max(count.parts, key=lambda part: count.parts[part])
    rows = tuple(row for row in count.evidence if row.what == name)
    return PauseTime(min(scale_count(context, count.parts[name] / 1e6, 1.0), 1.0), name, rows)


_INFO = read_limit("roce-rt-congested.paused_percent")
_PAUSE_RECEIVED_WARN = read_limit("roce-rt-congested.paused_warning_percent")
_STICKS_OUT = 5.0  # times the median of the other ports


def judge_received_pauses(context: RuleContext) -> Iterator[Result]:
    """For every interface that has a cable: whether the switch holds it back; of several, whether it is one path."""
    pauses: list[tuple[RocePortCounters, PauseTime]] = []
    for interface in watch_interfaces(context):
        if not isinstance(interface, RocePortCounters):
            yield interface
            continue
        received = pause_time(context, interface, "rx")
        if isinstance(received, PauseTime):
            pauses.append((interface, received))
        else:
            yield received
    for counters, pause in pauses:
        others = [other.share for port, other in pauses if port is not counters]
        yield _judge_pause_received(context, counters, pause, others)


def _judge_pause_received(
    context: RuleContext, counters: RocePortCounters, pause: PauseTime, others: list[float]
) -> Result:
    place, percent = counters.place, 100 * pause.share
    if percent <= context.threshold(_INFO):
        return place.passes()
    usual_share = find_median(others) if others else pause.share
    sticks_out = pause.share >= _STICKS_OUT * usual_share and percent > context.threshold(_PAUSE_RECEIVED_WARN)
    limit = context.threshold(_PAUSE_RECEIVED_WARN if sticks_out else _INFO)
    among = f"; the other ports {100 * usual_share:.0f}%" if others else ""
    return place.fail(
        summary=f"paused by the switch for {percent:.0f}% of {format_window(context)}, limit {limit:g}%{among}",
        impact=f"{percent:.0f}% of the time it sends nothing of that priority: congestion further down.",
        evidence=pause.evidence,
        severity=place.severity("warning") if sticks_out else "info",
        cause="one-port" if sticks_out else "paused",
    )


_PAUSE_SENT_WARN = read_limit("roce-rt-pause-sent.percent")
_ERROR = read_limit("roce-rt-pause-sent.error_percent")


@rule("roce-rt-pause-sent", each=watch_interfaces, merge=on_all("pause sent on every RoCE port"))
def roce_rt_pause_sent(context: RuleContext, counters: RocePortCounters) -> Result:
    place, pause = counters.place, pause_time(context, counters, "tx")
    if not isinstance(pause, PauseTime):
        return pause
    percent = 100 * pause.share
    if percent <= context.threshold(_PAUSE_SENT_WARN):
        return place.passes()
    grave = percent > context.threshold(_ERROR)
    inside = counters.roce.nic.accelerator is not None
    return place.fail(
        summary=f"paused its switch for {percent:.0f}% of {format_window(context)}, "
        f"limit {context.threshold(_ERROR if grave else _PAUSE_SENT_WARN):g}%",
        impact=f"{percent:.0f}% of the time this {'NPU' if inside else 'host'} accepts no data; the backlog fills "
        "switches and stops other nodes.",
        evidence=pause.evidence,
        severity=place.severity("error" if grave else "warning"),
    )


_STOPPED = Count(
    ("tx_pause_storm_error_events",),
    (limit("roce-rt-pause-storm.events", "critical"),),
    "pause storms that firmware ended",
    "Pause is off on this port: it drops packets.",
    cause="off",
)
_STORM = Count(
    ("tx_pause_storm_warning_events", "continuous_pause_events", "continuous_roce_pause_events"),
    (limit("roce-rt-pause-storm.events", "error"),),
    "pause storms",
    "One node that pauses continuously can stop its whole rail in the fabric.",
)


@rule("roce-rt-pause-storm", each=watch_interfaces, merge=on_all("pause storms on every RoCE port"))
def roce_rt_pause_storm(context: RuleContext, counters: RocePortCounters) -> Result:
    storms = sum_deltas(*(delta(context, one, _STORM.names) for one in (counters.eth, counters.rdma)))
    answers = [
        _STOPPED.judge(context, counters.place, counters.eth),
        _STORM.judge_delta(context, counters.place, storms),
    ]
    failure = next((answer for answer in answers if isinstance(answer, Fail)), None)
    return failure or next((answer for answer in answers if not isinstance(answer, Pass)), answers[0])


_UNANSWERED = Count(
    ("rx_pause_ctrl_phy", "rx_unsupported_op_phy"),
    (limit("roce-rt-pause-unanswered.per_minute", "warning"),),
    "pause frames that no queue here obeys",
    "What the port sends meanwhile can be dropped by the switch: host and switch disagree about the class.",
    "medium",
)
_OBEYED = ("rx_global_pause", *(f"rx_prio{p}_pause" for p in range(8)))


@rule("roce-rt-pause-unanswered", each=watch_interfaces, merge=on_all("unanswered pause frames on every RoCE port"))
def roce_rt_pause_unanswered(context: RuleContext, counters: RocePortCounters) -> Result:
    received, foreign = (delta(context, counters.eth, (name,)) for name in _UNANSWERED.names)
    obeyed = delta(context, counters.eth, _OBEYED)
    if not isinstance(received, CounterDelta) or not isinstance(foreign, CounterDelta):
        first = received if not isinstance(received, CounterDelta) else foreign
        return _UNANSWERED.judge_delta(context, counters.place, first)
    if isinstance(obeyed, CounterDelta) and obeyed.gap and received.total:
        received = CounterDelta({}, (), obeyed.gap)
    rest = max(received.total - (obeyed.total if isinstance(obeyed, CounterDelta) else 0), 0)
    unused = _unused_priorities(context, counters)
    parts = {"rx_pause_ctrl_phy": rest, "rx_unsupported_op_phy": foreign.total} | unused
    rows = received.evidence + foreign.evidence + (obeyed.evidence if isinstance(obeyed, CounterDelta) else ())
    count = CounterDelta(parts, rows, received.gap or foreign.gap)
    return _UNANSWERED.judge_delta(context, counters.place, count)


def _unused_priorities(context: RuleContext, counters: RocePortCounters) -> dict[str, int]:
    """Pause frames of priorities with PFC on which (next to) nothing is sent, while something is on others."""
    sent = delta_by_priority(context, counters, "tx_prio{}_bytes")
    pauses = delta_by_priority(context, counters, "rx_prio{}_pause")
    total, on = sum(sent.values()), lossless_priorities(counters)
    if not on:
        return {}
    return {f"rx_prio{p}_pause": n for p, n in pauses.items() if 100 * sent.get(p, total) < total}
