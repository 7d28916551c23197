"""The whole pipeline on one page: host -> outcomes -> topology -> findings -> Report. Start reading here."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from agent.assemble import assemble
from agent.assemble.paths import MOST_GPUS, TooManyDevices
from agent.config import Configuration
from agent.history.context import build_context
from agent.model.finding import Check, Gpudirect, Summary
from agent.model.node import Platform
from agent.model.profile import Profile
from agent.model.reasons import list_reasons
from agent.model.report import Config, Generator, ProbeRun, Report, Source, SourceFile
from agent.platforms.devices import ACCELERATOR_MAKERS, is_accelerator
from agent.rules.catalogue import rules_for
from agent.rules.context import RuleContext
from agent.rules.engine import Failures, build_findings, evaluate
from agent.version import VERSION
from probes.catalogue import probes, providers
from probes.host.interface import BadSource, Host
from probes.probe import Outcome, Probe, Status
from probes.run import ProbeResults, is_outputs_alone, run_probes
from probes.time_limit import TimeIsUp, TimeLimit
from probes.topology_files.preparsed import FactsSource

if TYPE_CHECKING:
    from agent.contradictions.compare import StatedOutput
    from probes.host.recording import Recording
    from probes.sources.dump import OutputPart, SavedOutputs

FILES_SHOWN = 256  # of saved outputs, in a report
_FIRST_SAMPLE_SHARE = 2 / 3  # of the time left besides the interval, for the first sample: it runs every probe
_LONG_BUS = 4 * MOST_GPUS  # functions: of a shorter one all are read in a tenth of a second, and counted then
_SETTLE_SECONDS = 1.0  # before the bus and the driver are read once more
NOT_EVALUATED = Summary(verdict="unknown", counts={})


class ScanPlan(msgspec.Struct, frozen=True):
    """What a run does: which probes, how long, and how the report is evaluated."""

    only: Collection[str] = ()
    skip: Collection[str] = ()
    timeout_seconds: float = 30.0
    configuration: Configuration = Configuration()
    record: bool = False
    progress: Callable[[str], None] | None = None
    interval_seconds: float | None = None  # sample counters twice, this far apart; live hosts only
    profile: str = "auto"  # a name, a file, "none", or the recognized platform's
    history: Callable[[Report], Report] | None = None  # adds data of earlier runs of this host before evaluation
    preloaded: Mapping[str, Outcome] = MappingProxyType({})  # dated outcomes of probes that do not run now
    began: float | None = None  # when its source was to be opened (time.monotonic()), which the time counts from


class ScanResult(msgspec.Struct, frozen=True):
    """One run: its report, the recording if requested, and an outcome for every probe."""

    report: Report
    recording: Recording | None
    outcomes: list[Outcome]


def diagnose(host: Host | FactsSource, plan: ScanPlan) -> tuple[Report, Recording | None]:
    """Probe a host, build its topology, evaluate it. Returns the report and, if requested, the recording."""
    result = scan(host, plan)
    return result.report, result.recording


def scan(host: Host | FactsSource, plan: ScanPlan) -> ScanResult:
    """Like `diagnose`, with the outcomes, which a later run may reuse.

    A source of finished facts is not probed: it supplies the outcomes itself.
    """
    started = time.monotonic() if plan.began is None else plan.began
    catalogue = probes()
    selected = [p for p in catalogue if (not plan.only or p.name in plan.only) and p.name not in plan.skip]
    try:
        with TimeLimit(started + plan.timeout_seconds):
            _refuse_too_many_gpus(host, selected)
            alone = _read_outputs_alone(host, plan, selected, started)
            merged = _merge_contradicting(host, plan, alone)
    except TimeIsUp:  # then no probe of the whole is reached either, and each states it
        alone, merged = [], None
    if merged is not None:
        return ScanResult(merged, None, [])
    if isinstance(host, FactsSource):
        ran = ProbeResults(host.outcomes(selected), None)
    else:
        first_seconds = plan.timeout_seconds
        if plan.interval_seconds is not None:
            first_seconds = (plan.timeout_seconds - plan.interval_seconds) * _FIRST_SAMPLE_SHARE
        ran = run_probes(selected, host, first_seconds, record=plan.record, progress=plan.progress, began=started)
    outcomes = _in_order(catalogue, ran.outcomes, plan.preloaded)
    report = _build_report(host, outcomes)
    if not isinstance(host, FactsSource) and host.live and _sources_disagree(report):
        ran = _look_again(host, plan, selected, ran, started + plan.timeout_seconds)
        outcomes = _in_order(catalogue, ran.outcomes, plan.preloaded)
        report = _build_report(host, outcomes)
    if plan.interval_seconds is not None and not isinstance(host, FactsSource):
        report = _second_sample(host, plan, ran.outcomes, report, started + plan.timeout_seconds)
    report = _compare_later_outputs(host, report, alone)
    report = _note_differing_values(report, alone)
    if plan.history is not None:
        report = plan.history(report)
    evaluated = evaluate_report(report, plan.configuration, plan.profile)
    evaluated = _name_unused_findings(evaluated, plan, alone)
    evaluated = msgspec.structs.replace(evaluated, duration_seconds=round(time.monotonic() - started, 3))
    return ScanResult(evaluated, ran.recording, outcomes)


def _refuse_too_many_gpus(host: Host | FactsSource, selected: Sequence[Probe]) -> None:
    """Of a long recorded bus, before the probes read all of it. Raises BadSource."""
    if isinstance(host, FactsSource) or host.live or is_outputs_alone(host):
        return
    if all(probe.name != "pci" for probe in selected):
        return
    from probes.pci.sysfs import list_models  # lazy: saved outputs have no bus

    gpus = (model for model in list_models(host, _LONG_BUS, ACCELERATOR_MAKERS) if is_accelerator(*model))
    if next(islice(gpus, MOST_GPUS, None), None):
        raise BadSource(f"{host.path or host.kind}: {TooManyDevices.of_gpus()}")


def _read_outputs_alone(
    host: Host | FactsSource, plan: ScanPlan, selected: Sequence[Probe], began: float
) -> list[tuple[OutputPart, Report]]:
    """Each saved output with the report of it alone, where there are several and two may be of different hosts or
    times."""
    saved: SavedOutputs | None = getattr(host, "saved", None)
    if saved is None or not saved.may_be_of_several:
        return []
    from agent.contradictions.statements import split_by_host
    from probes.sources.tree import TreeHost

    parts: list[OutputPart] = []
    for part in saved.list_parts():
        logs = split_by_host(part.text) if part.is_log else {}
        several = [part.of_host(name, text) for name, text in logs.items()]
        parts += several if len(several) > 1 else [part]
    alone: list[tuple[OutputPart, Report]] = []
    for part in parts if len(parts) > 1 else ():
        only_this = TreeHost(host.kind, host.path or "", part.outputs.shown_files, part.outputs)
        ran = run_probes(selected, only_this, plan.timeout_seconds, began=began)
        source = Source(kind=host.kind, path=host.path, files=[SourceFile(name=part.name, read_as=part.read_as)])
        report = _build_report(only_this, _in_order(probes(), ran.outcomes))
        alone.append((part, msgspec.structs.replace(report, source=source)))
    return alone


def _merge_contradicting(
    host: Host | FactsSource, plan: ScanPlan, alone: Sequence[tuple[OutputPart, Report]]
) -> Report | None:
    """The evaluated report of outputs of which two contradict each other, which joins none; None where none do.

    Raises BadSource where the files are of one host each, by their names.
    """
    if not alone:
        return None
    from agent.contradictions.compare import find_contradictions, group_hosts
    from agent.contradictions.gid_indexes import note_gid_indexes
    from agent.contradictions.merge import merge_reports

    stated = [_list_stated(part, report) for part, report in alone]
    found = find_contradictions(stated)
    if not found:
        return None
    saved: SavedOutputs = getattr(host, "saved")  # noqa: B009 - only hosts of saved outputs have it
    saved.refuse_prefixes(host.path or "", [name for one in found for names in one.values.values() for name in names])
    if plan.record:
        raise BadSource(f"{host.path}: no capture is made of it: its outputs are of two hosts, or of two times")
    whole = msgspec.structs.replace(_build_report(host, ()), source=_describe_source(host, [part for part, _ in alone]))
    noted = note_gid_indexes([report for _, report in alone], [part.prompt_host for part, _ in alone])
    evaluated = [evaluate_report(report, plan.configuration, plan.profile) for report in noted]
    return merge_reports(whole, evaluated, group_hosts(stated, found), found)


def _list_stated(part: OutputPart, report: Report) -> StatedOutput:
    from agent.contradictions.compare import StatedOutput
    from agent.contradictions.statements import list_statements

    stated = (report, part.is_log, part.text, part.read_as, part.is_whole, part.log_host)
    statements = [] if part.is_about_one_device else list_statements(*stated)
    devices = frozenset(nic.rdma_device for nic in report.topology.nics if nic.rdma_device and not nic.software)
    return StatedOutput(part.name, part.read_as, part.prompt_host, statements, part.text, part.is_used, devices)


def _compare_later_outputs(
    host: Host | FactsSource, report: Report, alone: Sequence[tuple[OutputPart, Report]]
) -> Report:
    """The report with what grew between an output and a later one of the same command, which counts as read."""
    if all(part.is_used for part, _ in alone):
        return report
    from agent.history.window import compare_outputs, holds_counters

    used = [part for part, _ in alone if part.is_used]
    later = [
        (part, of_part)
        for part, of_part in alone
        if not part.is_used and any(map(part.is_again, used)) and holds_counters(of_part)
    ]
    if not later:
        return report
    report = msgspec.structs.replace(report, source=_describe_source(host, [part for part, _ in later]))
    return compare_outputs(report, [(of_part, part.waited) for part, of_part in later])


def _note_differing_values(report: Report, alone: Sequence[tuple[OutputPart, Report]]) -> Report:
    """The report with events for what two outputs state differently of one part."""
    used = [(part.read_as, of_part) for part, of_part in alone if part.is_used and not part.is_log]
    if not used:
        return report
    from agent.contradictions.values import note_differing_values

    events = note_differing_values(used)
    return msgspec.structs.replace(report, events=[*report.events, *events]) if events else report


def _name_unused_findings(report: Report, plan: ScanPlan, alone: Sequence[tuple[OutputPart, Report]]) -> Report:
    """The report with what outputs that are not used show by themselves and it does not."""
    unused = [(part, of_part) for part, of_part in alone if not part.is_used]
    if not unused:
        return report
    from agent.contradictions.merge import name_unused_findings

    return name_unused_findings(
        report, {part.name: evaluate_report(of_part, plan.configuration, plan.profile) for part, of_part in unused}
    )


def _build_report(host: Host | FactsSource, outcomes: Sequence[Outcome]) -> Report:
    """The report without checks and findings."""
    try:
        assembled = assemble(outcomes, providers())
    except TooManyDevices as error:
        raise BadSource(f"{host.path or host.kind}: {error}") from error
    return Report(
        generated_at=utc_now(),
        observed_at=host.observed_at,
        generator=Generator(name="fabricscope", version=VERSION),
        source=_describe_source(host),
        node=assembled.node,
        platform=assembled.platform,
        probes=[_probe_run(outcome) for outcome in outcomes],
        software=assembled.software,
        events=assembled.events,
        topology=assembled.topology,
        summary=NOT_EVALUATED,
    )


def _describe_source(host: Host | FactsSource, parts: Sequence[OutputPart] = ()) -> Source:
    """The source, with what became of every saved file. `parts`: those of which each was read alone."""
    saved: SavedOutputs | None = getattr(host, "saved", None)
    if saved is None:
        return Source(kind=host.kind, path=host.path)
    for part in parts:
        saved.add_read(part)
    files = [SourceFile(**file._asdict()) for file in saved.list_files()]
    more = max(len(files) - FILES_SHOWN, 0)
    return Source(kind=host.kind, path=host.path, files=files[:FILES_SHOWN], files_more=more or None)


def _sources_disagree(report: Report) -> bool:
    """Whether the bus has a GPU that the driver does not list, or the driver one that is not on the bus: while it is
    removed or comes back, what was read first is not what was read a second later."""
    topology = report.topology
    lost = {function.id for function in topology.pci if function.state == "changed_during_scan"}
    return any(
        gpu.driver_state == "not_open" or gpu.pci in lost or (gpu.pci is None and topology.pci) for gpu in topology.gpus
    )


def _look_again(
    host: Host, plan: ScanPlan, selected: Sequence[Probe], first: ProbeResults, deadline: float
) -> ProbeResults:
    """The results with what the bus and the driver state of GPUs a moment later, where there is time for it."""
    answered = {outcome.name for outcome in first.outcomes if outcome.facts is not None}
    names = {name for subject in ("pci", "gpu") for name in providers()[subject]}
    again = [probe for probe in selected if probe.name in names & answered]
    seconds = deadline - time.monotonic() - _SETTLE_SECONDS
    if not again or seconds < _SETTLE_SECONDS:
        return first
    if plan.progress:
        plan.progress("the bus and the driver list different GPUs: reading both again")
    time.sleep(_SETTLE_SECONDS)
    second = run_probes(again, host, seconds, record=plan.record, progress=plan.progress)
    later = {outcome.name: outcome for outcome in second.outcomes if outcome.facts is not None}
    recording = first.recording
    if second.recording is not None and first.recording is not None:
        recording = second.recording.over(first.recording)
    return ProbeResults([later.get(outcome.name, outcome) for outcome in first.outcomes], recording)


def _second_sample(host: Host, plan: ScanPlan, first: Sequence[Outcome], report: Report, deadline: float) -> Report:
    """The report of a second sample of all counters, with the window between the two."""
    from agent.history.window import add_window, merge_outcomes, select_counter_probes

    if plan.progress:
        plan.progress(f"waiting {plan.interval_seconds:.0f} s for the second reading of all counters")
    time.sleep(plan.interval_seconds or 0)
    catalogue = probes()
    counter_probes = [
        probe for probe in select_counter_probes(catalogue) if any(probe.name == outcome.name for outcome in first)
    ]
    second = run_probes(counter_probes, host, max(deadline - time.monotonic(), 1.0), progress=plan.progress).outcomes
    return add_window(report, _build_report(host, _in_order(catalogue, merge_outcomes(first, second))), second)


def _in_order(
    catalogue: Sequence[Probe], outcomes: Sequence[Outcome], preloaded: Mapping[str, Outcome] = MappingProxyType({})
) -> list[Outcome]:
    """An outcome for every probe, including those that did not run."""
    by_name = {**preloaded, **{outcome.name: outcome for outcome in outcomes}}
    return [by_name.get(probe.name) or _skipped_outcome(probe.name) for probe in catalogue]


def evaluate_report(report: Report, configuration: Configuration, profile: str = "auto") -> Report:
    """Re-evaluate a report: its checks, findings and verdict, from the report alone.

    Raises BadProfile if the profile is missing or cannot be read.
    """
    # What each output states alone was judged when they were read, and what had no room when it was there.
    if report.source.hosts is not None or report.left_out is not msgspec.UNSET:
        return msgspec.structs.replace(report, generated_at=utc_now())
    platform, expected, declared = _select_profile(report, profile)
    context = build_context(report, configuration.settings, platform, expected)
    rules = rules_for(context)
    checks, faults, reasons = evaluate(context, rules)
    findings, summary = build_findings(context, rules, checks, faults)
    if report.source.files:
        from agent.rules.evidence_files import name_files  # lazy: a machine's own findings are of no file

        findings = name_files(findings, report.source)
    evaluated = msgspec.structs.replace(
        report,
        generated_at=utc_now(),
        generator=Generator(name="fabricscope", version=VERSION),
        config=Config(changed=[*configuration.changed, *declared]),
        platform=platform,
        gpudirect=_build_gpudirect(context, checks, faults),
        checks=checks,
        reasons=list_reasons(reasons),
        findings=findings,
        summary=summary,
    )
    if len(report.topology.gpus) < 2 or all(finding.severity == "info" for finding in findings):
        return evaluated
    from agent.recommend.cost import add_costs  # lazy: a healthy node has none

    return add_costs(evaluated)


def _select_profile(report: Report, requested: str) -> tuple[Platform, Profile | None, list[str]]:
    """The platform to evaluate with, its profile, and what the operator declared."""
    if requested == "auto" and report.platform.profile is None:
        return report.platform, None, []
    from agent.platforms.profiles import choose_profile

    chosen = choose_profile(requested, report.platform)
    return chosen.platform, chosen.profile, [chosen.declared] if chosen.declared else []


def _build_gpudirect(context: RuleContext, checks: list[Check], faults: Failures) -> list[Gpudirect]:
    if not context.topology.gpus or not context.rails:
        return []
    from agent.rules.gpudirect.verdicts import build_verdicts  # lazy: most nodes have no rail

    return build_verdicts(context, checks, faults)


def utc_now() -> str:
    """The current time, RFC 3339, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _skipped_outcome(name: str) -> Outcome:
    return Outcome(name, Status.SKIPPED, None, "left out by --only or --skip", (), 0.0, reason_code="left-out")


def _probe_run(outcome: Outcome) -> ProbeRun:
    return ProbeRun(
        name=outcome.name,
        status=outcome.status.value,
        reason=outcome.reason,
        reason_code=outcome.reason_code,
        sources=list(outcome.sources),
        duration_seconds=outcome.seconds,
        hung=outcome.hung,
        observed_at=outcome.observed_at,
    )
