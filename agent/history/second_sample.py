"""Two samples in one run: the probes that read counters run again, and their second answers are the report's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from agent.history.window import compare_samples, take_sample
from agent.model.counters import AER, GPU, LINK, NETDEV, PORT, list_counted
from agent.model.report import CountersWindow, Report
from probes.probe import Outcome, Probe

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
