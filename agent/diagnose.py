"""The whole pipeline on one page: host -> outcomes -> topology -> findings -> Report. A newcomer starts here."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from agent.assemble import assemble
from agent.config import Configuration
from agent.model.finding import Check, Gpudirect, Summary
from agent.model.node import Platform
from agent.model.profile import Profile
from agent.model.report import Config, Generator, ProbeRun, Report, Source
from agent.rules.case import Case
from agent.rules.catalogue import rules_for
from agent.rules.engine import Faults, asked, told
from agent.version import VERSION
from probes.catalogue import probes
from probes.host.door import Host
from probes.host.recording import Recording
from probes.probe import Outcome, Probe, Status
from probes.readers.told import FactsSource
from probes.run import Ran, run_probes

_FIRST_SHARE = 2 / 3  # of the time that is left beside an interval, for the first reading: it asks everything
NOT_JUDGED = Summary(verdict="unknown", counts={})


class Plan(NamedTuple):
    """What a run shall do: which probes, how long, and how it is judged."""

    only: Collection[str] = ()
    skip: Collection[str] = ()
    timeout_seconds: float = 30.0
    configuration: Configuration = Configuration()
    record: bool = False
    progress: Callable[[str], None] | None = None
    interval_seconds: float | None = None  # read counters twice, so long apart; of a live host only
    profile: str = "auto"  # a name, a file, "none", or what is recognized
    history: Callable[[Report], Report] | None = None  # adds what earlier runs know of this host, before it is judged
    kept: Mapping[str, Outcome] = MappingProxyType({})  # of earlier readings, dated, where a probe does not run now


class Seen(NamedTuple):
    """One run: its report, what was asked and answered where that was wanted, and an outcome for every probe."""

    report: Report
    recording: Recording | None
    outcomes: list[Outcome]


def diagnose(host: Host | FactsSource, plan: Plan) -> tuple[Report, Recording | None]:
    """Probe a host, build its topology, judge it. The recording is what `capture` writes, where one was asked for."""
    seen = observe(host, plan)
    return seen.report, seen.recording


def observe(host: Host | FactsSource, plan: Plan) -> Seen:
    """The same, with the outcomes, which a later run may keep.

    A source that is already facts is not probed: it gives the outcomes itself.
    """
    started = time.monotonic()
    catalogue = probes()
    chosen = [p for p in catalogue if (not plan.only or p.name in plan.only) and p.name not in plan.skip]
    if isinstance(host, FactsSource):
        ran = Ran(host.outcomes(chosen), None)
    else:
        first_seconds = plan.timeout_seconds
        if plan.interval_seconds is not None:
            first_seconds = (plan.timeout_seconds - plan.interval_seconds) * _FIRST_SHARE
        ran = run_probes(chosen, host, first_seconds, record=plan.record, progress=plan.progress)
    outcomes = _in_order(catalogue, ran.outcomes, plan.kept)
    report = _report(host, outcomes)
    if plan.interval_seconds is not None and not isinstance(host, FactsSource):
        report = _again(host, plan, ran.outcomes, report, started + plan.timeout_seconds)
    if plan.history is not None:
        report = plan.history(report)
    whole = judged(report, plan.configuration, plan.profile)
    whole = msgspec.structs.replace(whole, duration_seconds=round(time.monotonic() - started, 3))
    return Seen(whole, ran.recording, outcomes)


def _report(host: Host | FactsSource, outcomes: Sequence[Outcome]) -> Report:
    """What was seen, not judged yet."""
    assembled = assemble(outcomes)
    return Report(
        generated_at=now(),
        observed_at=host.observed_at,
        generator=Generator(name="fabricscope", version=VERSION),
        source=Source(kind=host.kind, path=host.path),
        node=assembled.node,
        platform=assembled.platform,
        probes=[_probe_run(outcome) for outcome in outcomes],
        software=assembled.software,
        events=assembled.events,
        topology=assembled.topology,
        summary=NOT_JUDGED,
    )


def _again(host: Host, plan: Plan, first: Sequence[Outcome], report: Report, deadline: float) -> Report:
    """The report of a second reading of all counters, with the window between the two."""
    from agent.history.interval import counting, joined, windowed

    if plan.progress:
        plan.progress(f"waiting {plan.interval_seconds:.0f} s for the second reading of all counters")
    time.sleep(plan.interval_seconds or 0)
    catalogue = probes()
    counter_probes = [probe for probe in counting(catalogue) if any(probe.name == outcome.name for outcome in first)]
    second = run_probes(counter_probes, host, max(deadline - time.monotonic(), 1.0), progress=plan.progress).outcomes
    return windowed(report, _report(host, _in_order(catalogue, joined(first, second))), second)


def _in_order(
    catalogue: Sequence[Probe], outcomes: Sequence[Outcome], preloaded: Mapping[str, Outcome] = MappingProxyType({})
) -> list[Outcome]:
    """An outcome for every probe there is, those that did not run included."""
    answered = {**preloaded, **{outcome.name: outcome for outcome in outcomes}}
    return [answered.get(probe.name) or _left_out(probe.name) for probe in catalogue]


def judged(report: Report, configuration: Configuration, profile: str = "auto") -> Report:
    """The same report with its checks, findings and verdict made anew: nothing but the report itself is looked at.

    Raises BadProfile for a profile that is not there or cannot be read.
    """
    platform, expected, declared = _profile(report, profile)
    case = Case(
        node=report.node,
        platform=platform,
        probes={run.name: run for run in report.probes},
        software=report.software,
        events=tuple(report.events),
        topology=report.topology,
        settings=configuration.settings,
        window=report.counters_window,
        history=report.history,
        observed_at=report.observed_at,
        profile=expected,
    )
    rules = rules_for(case)
    checks, faults = asked(case, rules)
    findings, summary = told(case, rules, checks, faults)
    return msgspec.structs.replace(
        report,
        generated_at=now(),
        generator=Generator(name="fabricscope", version=VERSION),
        config=Config(changed=[*configuration.changed, *declared]),
        platform=platform,
        gpudirect=_gpudirect(case, checks, faults),
        checks=checks,
        findings=findings,
        summary=summary,
    )


def _profile(report: Report, requested: str) -> tuple[Platform, Profile | None, list[str]]:
    """The platform as it is judged, its profile, and what the operator declared."""
    if requested == "auto" and report.platform.profile is None:
        return report.platform, None, []
    from agent.platforms.profiles import chosen

    profile, platform, declared = chosen(requested, report.platform)
    return platform, profile, [declared] if declared else []


def _gpudirect(case: Case, checks: list[Check], faults: Faults) -> list[Gpudirect]:
    if not case.topology.gpus or not case.rails:
        return []
    from agent.rules.gpudirect.rows import gpudirect_rows  # most nodes that are looked at have no rail

    return gpudirect_rows(case, checks, faults)


def now() -> str:
    """This moment, RFC 3339, UTC, whole seconds."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _left_out(name: str) -> Outcome:
    return Outcome(name, Status.SKIPPED, None, "left out by --only or --skip", (), 0.0)


def _probe_run(outcome: Outcome) -> ProbeRun:
    return ProbeRun(
        name=outcome.name,
        status=outcome.status.value,
        reason=outcome.reason,
        sources=list(outcome.sources),
        duration_seconds=outcome.seconds,
        hung=outcome.hung,
        observed_at=outcome.observed_at,
    )
