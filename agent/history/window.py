"""Counters of one moment, and by how much they moved until another, or why that is unknown. Time is the host's own
since boot: no clock jumps.

A window is over a minute at least, against the newest earlier sample that is as old as that; or over two samples of one
run, of which the second answers of the probes that read counters are the report's. A false number is worse than none:
what decreased, is its end, or reads all-ones is not compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from agent.model.counters import AER, FABRIC_PORT, GPU, LINK, MAXIMUM_VALUE, NETDEV, PORT, Counted, list_counted
from agent.model.identity import Earlier, identities
from agent.model.node import Event
from agent.model.report import CountersWindow, Report
from probes.probe import Outcome, Probe

_COUNTED_PORT = (FABRIC_PORT, "counters")  # kind and code of an event
_ONE_OUTPUT = "in one output of the source alone"
WHOLE_SUBJECT = "*"  # in the place of a counter: the whole subject
TWO_32, TWO_64 = 1 << 32, 1 << 64
_ALL_ONES = frozenset({TWO_32 - 1, TWO_64 - 1})
# What stands among counters and is none: bit error rates, and mlx5's share of the last second in percent.
_NO_COUNTERS = frozenset({"outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "lifespan"})
_NO_COUNTER_END = "_ber_packed"
WINDOW_SECONDS = 60.0  # counters are compared over this time at least
SPACING_SECONDS = 30.0  # samples are kept this far apart: four are enough for runs of any frequency
ROW_LIMIT = 8000  # of the window's two tables together: a report has a limit
REPLACED_OR_GONE = "not there at the last full scan, or another device stands there now"
# Which counters each probe reads; the kernel probe shows the time.
COUNTERS_OF_PROBE: Mapping[str, tuple[str, ...]] = {
    "kernel": (),
    "pci": (AER,),
    "nvml": (GPU, LINK),
    "kfd": (GPU,),
    "rdma": (PORT,),
    "netdev": (NETDEV,),
    "ethtool": (NETDEV,),
    "dcb": (NETDEV,),
}


class CounterDeltas(msgspec.Struct, frozen=True):
    """Counters that moved, and those that could not be compared; any other did not move."""

    moved: dict[str, int]
    gaps: dict[str, str]  # counter, or "*" -> reason


def compute_deltas(before: Mapping[str, int], now: Counted) -> CounterDeltas:
    """Compare one subject with its earlier sample."""
    if before.keys().isdisjoint(now.counters):
        return CounterDeltas({}, {WHOLE_SUBJECT: "the earlier sample has none of its counters"})
    gaps: dict[str, str] = {}
    usable: list[str] = []
    for name, value in now.counters.items():
        earlier = before.get(name)
        if value == 0 == earlier and name not in now.twice:
            continue  # most counters of a healthy machine
        why = _why_unusable(name, now, earlier)
        if why or earlier is None:
            gaps[name] = why or "not in the earlier sample"
        else:
            usable.append(name)
    decreased = [name for name in usable if now.counters[name] < before[name]]
    wrapped = _find_wrapped(before, now, usable, decreased)
    decreased = [name for name in decreased if name not in wrapped]
    if decreased and 2 * len(decreased) >= sum(before[name] > 0 for name in usable):
        decrease = _describe_decrease(decreased[0], before, now)
        return CounterDeltas(
            {},
            {WHOLE_SUBJECT: f"restarted ({decrease}): driver reloaded, device reset or cleared"},
        )
    gaps |= {name: f"it {_describe_decrease('', before, now, name)}: restarted" for name in decreased}
    moved = {name: now.counters[name] - before[name] for name in usable if now.counters[name] > before[name]}
    return CounterDeltas(moved | wrapped, gaps)


def is_count(value: int) -> bool:
    """Whether a counter can be there: hostile reports hold anything."""
    return 0 <= value < TWO_64


def _why_unusable(name: str, now: Counted, earlier: int | None) -> str | None:
    """Why a counter is not compared whatever it stood at; None where it can be."""
    value = now.counters[name]
    if name in now.twice:
        return "two counters of this port have this name"
    if name in _NO_COUNTERS or name.endswith(_NO_COUNTER_END):
        return "a rate, not a counter"
    if not is_count(value) or (earlier is not None and not is_count(earlier)):
        return "no number that a counter can have"
    end = MAXIMUM_VALUE.get(name) if now.subject.startswith(f"{PORT}:") else None
    if value == end:
        return f"it is at its maximum ({end}) and counts no further"
    if value in _ALL_ONES or earlier in _ALL_ONES:
        return "it reads all-ones, which is its maximum or no number"
    return None


def _find_wrapped(before: Mapping[str, int], now: Counted, usable: list[str], decreased: list[str]) -> dict[str, int]:
    """Counters that went through 2^32, and by how much they moved; none where the fall may be a reset.

    A reset takes all counters of a port along: all that decreased must have been in the upper half, and one that
    counted must have gone on.
    """
    if not decreased:
        return {}
    has_unchanged = any(before[name] > 0 for name in usable if name not in decreased)
    deltas = {name: now.counters[name] - before[name] + TWO_32 for name in decreased}
    is_certain = has_unchanged and all(
        name in now.wraps and before[name] < TWO_32 and before[name] >= TWO_32 // 2 > deltas[name] for name in decreased
    )
    return deltas if is_certain else {}


def _describe_decrease(name_shown: str, before: Mapping[str, int], now: Counted, name: str = "") -> str:
    name = name or name_shown
    return f"{name_shown} fell from {before[name]} to {now.counters[name]}".strip()


class CounterSample(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of one run."""

    uptime_seconds: float
    at: str  # RFC 3339
    counters: dict[str, dict[str, int]]  # subject -> counter -> value
    identity: dict[str, str]  # subject -> what lasts of it


def take_sample(report: Report) -> CounterSample | None:
    """The counters of a report; None where it does not show for how long its host had run."""
    up = report.node.uptime_seconds
    if up is None:
        return None
    rows = {
        item.subject: {name: count for name, count in item.counters.items() if is_count(count)}
        for item in list_counted(report.topology)
    }
    lasting = identities(report.topology)
    return CounterSample(
        uptime_seconds=up,
        at=time_of(report),
        counters={subject: counters for subject, counters in rows.items() if counters},
        identity={subject: own for subject, own in lasting.items() if rows.get(subject)},
    )


def time_of(report: Report) -> str:
    """When the host was seen, by its own clock where the source has it. RFC 3339."""
    return report.observed_at or report.generated_at


def compare_samples(base: CounterSample, report: Report, kinds: Collection[str] = ()) -> CountersWindow:
    """The counters of a report against an earlier sample of the same boot. `kinds`: of these subjects only."""
    replaced = CounterDeltas({}, {WHOLE_SUBJECT: "not in the earlier sample, or another device stands there now"})
    deltas = {
        now.subject: replaced if was is None else compute_deltas(base.counters[was], now)
        for was, now in _match_subjects(base.identity, base.counters, report)
        if not kinds or now.subject.partition(":")[0] in kinds
    }
    seconds = (report.node.uptime_seconds or 0.0) - base.uptime_seconds
    return _tabulate(deltas, base.at, round(seconds, 3))


def _match_subjects(
    identity: Mapping[str, str], counters: Mapping[str, Mapping[str, int]], report: Report
) -> Iterator[tuple[str | None, Counted]]:
    """What has counters in a report, each with its subject in the earlier sample; None: it was not there."""
    earlier = Earlier(identity, counters, report.topology)
    for now in list_counted(report.topology):
        if now.counters:
            yield earlier.subject(now.subject), now


def _tabulate(deltas: Mapping[str, CounterDeltas], since: str | None, seconds: float | None) -> CountersWindow:
    """A window of as many rows as a report can hold, of the subjects that come first."""
    moved: dict[str, dict[str, int]] = {}
    gaps: dict[str, dict[str, str]] = {}
    rows = 0
    for subject, compared in deltas.items():
        if rows + len(compared.moved) + len(compared.gaps) > ROW_LIMIT:
            compared = CounterDeltas({}, {WHOLE_SUBJECT: "more counters moved than a report can hold"})
        rows += len(compared.moved) + len(compared.gaps)
        if compared.moved:
            moved[subject] = dict(sorted(compared.moved.items()))
        if compared.gaps:
            gaps[subject] = dict(sorted(compared.gaps.items()))
    return CountersWindow(since=since, seconds=seconds, moved=moved, not_compared=gaps)


def holds_counters(report: Report) -> bool:
    """Whether there is something of which a second output shows what grew."""
    in_topology = any(item.counters for item in list_counted(report.topology))
    return in_topology or any((event.kind, event.code) == _COUNTED_PORT for event in report.events)


def compare_outputs(report: Report, later: Sequence[tuple[Report, float | None]]) -> Report:
    """The report with the window between its counters and those of later outputs of the same source, each with the
    seconds between, where the source states them. What is in one output alone is not compared."""
    then = {item.subject: item.counters for item in list_counted(report.topology) if item.counters}
    lasting = identities(report.topology)
    deltas = dict.fromkeys(then, CounterDeltas({}, {WHOLE_SUBJECT: _ONE_OUTPUT}))
    elapsed: float | None = 0.0  # since the first output
    seconds: dict[str, float | None] = {}
    for other, waited in later:
        elapsed = None if elapsed is None or waited is None else elapsed + waited
        for was, now in _match_subjects(lasting, then, other):
            if was is not None:
                compared = compute_deltas(then[was], now)
                left_out = dict.fromkeys(then[was].keys() - now.counters.keys(), _ONE_OUTPUT)
                deltas[was] = CounterDeltas(compared.moved, {**compared.gaps, **left_out})
                seconds[was] = elapsed
    grown = list(_list_grown(report, [other for other, _ in later]))
    report = msgspec.structs.replace(report, events=[*report.events, *grown]) if grown else report
    if not seconds:
        return report
    spans = set(seconds.values())
    window = _tabulate(deltas, None, spans.pop() if len(spans) == 1 else None)
    return msgspec.structs.replace(report, counters_window=window)


def _list_grown(report: Report, later: Sequence[Report]) -> Iterator[Event]:
    """Ports of a fabric's tools whose counters are higher in a later output."""
    then = {event.subject: event for event in report.events if (event.kind, event.code) == _COUNTED_PORT}
    for event in [event for other in later for event in other.events if (event.kind, event.code) == _COUNTED_PORT]:
        before = then[event.subject].detail if event.subject in then else {}
        counts = {name: int(count) for name, count in event.detail.items() if count.isdecimal()}
        grown = {name: count - int(before.get(name, "0")) for name, count in counts.items()}
        detail = {name: str(count) for name, count in grown.items() if count > 0}
        if detail and min(grown.values()) >= 0:
            far = {"far": event.detail["far"]} if "far" in event.detail else {}
            detail |= {"when": "between two outputs of the source", **far}
            yield msgspec.structs.replace(event, code="growing", detail=detail)


def make_window(samples: Sequence[CounterSample], report: Report) -> CountersWindow:
    """The counters of a report against the samples of its boot, the oldest first; else why there is no window."""
    up = report.node.uptime_seconds
    if up is None:
        return CountersWindow(reset_reason="the source does not contain the uptime of its host")
    ready = [sample for sample in samples if up - sample.uptime_seconds >= WINDOW_SECONDS]
    if ready:
        return compare_samples(ready[-1], report)
    if not samples:
        return CountersWindow(reset_reason="no earlier sample of this boot")
    ago = up - samples[0].uptime_seconds
    least = f"counters are compared over {WINDOW_SECONDS:.0f} s at least"
    return CountersWindow(reset_reason=f"the last run was {ago:.0f} s ago: {least}")


def select_samples(samples: Sequence[CounterSample], new: CounterSample) -> list[CounterSample]:
    """The samples that a later run may need: the newest that is old enough, and what will be in time."""
    older = [sample for sample in samples if sample.uptime_seconds < new.uptime_seconds]
    recent = bool(older) and new.uptime_seconds - older[-1].uptime_seconds < WINDOW_SECONDS
    if recent and len(older) > 1 and older[-1].uptime_seconds - older[-2].uptime_seconds < SPACING_SECONDS:
        older.pop()
    ready = [sample for sample in older if new.uptime_seconds - sample.uptime_seconds >= WINDOW_SECONDS]
    return [*ready[-1:], *older[len(ready) :], new]


def carry_window(full: Report, report: Report) -> Report:
    """The report with the window of `full`, the last one for which everything was read; its subjects as named now."""
    window = full.counters_window
    if window is None:
        return msgspec.structs.replace(report, counters_window=None)
    then = {item.subject for item in list_counted(full.topology)}
    earlier = Earlier(identities(full.topology), then, report.topology)
    moved: dict[str, dict[str, int]] = {}
    gaps: dict[str, dict[str, str]] = {}
    for now in list_counted(report.topology):
        was = earlier.subject(now.subject)
        if was is None:
            if now.counters:
                gaps[now.subject] = {"*": REPLACED_OR_GONE}
            continue
        if was in window.moved:
            moved[now.subject] = window.moved[was]
        if was in window.not_compared:
            gaps[now.subject] = window.not_compared[was]
    carried: CountersWindow = msgspec.structs.replace(
        window, until=window.until or time_of(full), moved=moved, not_compared=gaps
    )
    return msgspec.structs.replace(report, counters_window=carried)


def select_counter_probes(probes: Sequence[Probe]) -> list[Probe]:
    """Those that run twice."""
    return [probe for probe in probes if probe.name in COUNTERS_OF_PROBE or probe.fallback_for in COUNTERS_OF_PROBE]


def merge_outcomes(first: Sequence[Outcome], second: Sequence[Outcome]) -> list[Outcome]:
    """The second answer of each probe that answered twice; else the first, which may be why it did not answer."""
    again = {outcome.name: outcome for outcome in second if outcome.facts is not None}
    return [again.get(outcome.name, outcome) if outcome.facts is not None else outcome for outcome in first]


def add_window(first: Report, report: Report, second: Sequence[Outcome]) -> Report:
    """The report of both readings with the window between them."""
    base = take_sample(first)
    if base is None or report.node.uptime_seconds is None:
        why = "the source does not contain the uptime of its host"
        return msgspec.structs.replace(report, counters_window=CountersWindow(reset_reason=why))
    window = compare_samples(base, report)
    silent = _read_once(report, second)
    moved = {subject: row for subject, row in window.moved.items() if subject not in silent}
    gaps = {**window.not_compared, **{subject: {"*": why} for subject, why in silent.items()}}
    return msgspec.structs.replace(
        report, counters_window=msgspec.structs.replace(window, moved=moved, not_compared=gaps)
    )


def _read_once(report: Report, second: Sequence[Outcome]) -> dict[str, str]:
    """Subjects whose probe answered once only: the same numbers twice are not counters that stood still."""
    lost = {o.name: f"{o.name} did not answer twice: {o.reason or o.status.value}" for o in second if o.facts is None}
    kinds = {
        kind: lost[name] for name in lost if _answered_first(report, name) for kind in COUNTERS_OF_PROBE.get(name, ())
    }
    reasons = {item.subject: kinds.get(item.subject.partition(":")[0]) for item in list_counted(report.topology)}
    return {subject: reason for subject, reason in reasons.items() if reason}


def _answered_first(report: Report, name: str) -> bool:
    return any(run.name == name and run.status in ("ok", "partial") for run in report.probes)
