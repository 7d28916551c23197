"""What the rules get of a report; and the rules that need two samples, on a report that had only one, and an earlier
sample of the same boot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from agent.model.finding import HISTORY_SOURCE, UNDATED_RULE, Evidence, Finding, worst_first
from agent.model.node import Platform
from agent.model.profile import BadProfile, Profile
from agent.model.reasons import needs_sample
from agent.model.report import CountersWindow, Report
from agent.rules.catalogue import rules_for
from agent.rules.context import RuleContext, Settings
from agent.rules.engine import build_findings, evaluate, summarize
from probes.catalogue import providers

if TYPE_CHECKING:
    from agent.history.window import CounterSample


def build_context(report: Report, settings: Settings, platform: Platform, expected: Profile | None) -> RuleContext:
    """What the rules get of a report."""
    return RuleContext(
        node=report.node,
        platform=platform,
        probes={run.name: run for run in report.probes},
        providers=providers(),
        software=report.software,
        events=tuple(event for event in report.events if event.boot is None),
        earlier_events=tuple(event for event in report.events if event.boot is not None),
        topology=msgspec.structs.replace(report.topology, nics=report.topology.host_nics),
        accelerator_nics=tuple(nic for nic in report.topology.nics if nic.accelerator is not None),
        settings=settings,
        window=report.counters_window,
        history=report.history,
        observed_at=report.observed_at,
        profile=expected,
        recorded=report.source.kind != "live",
    )


def judge_with_base(report: Report, base: CounterSample) -> Report:
    """The report with the window since an earlier sample, and with what the rules find in it."""
    from agent.history.window import compare_samples  # lazy: one sample alone needs none of it

    return judge_with_window(report, compare_samples(base, report))


def judge_with_window(report: Report, window: CountersWindow) -> Report:
    """The report with what the rules that need two samples find in a window; any other check stays as it is.

    A count since boot that the window dates is no finding any more: the rules that need two samples have judged it.
    """
    undated = {check.rule for check in report.checks if check.rule == UNDATED_RULE and check.state == "fail"}
    pending = undated | {check.rule for check in report.checks if needs_sample(check)}
    report = msgspec.structs.replace(report, counters_window=window)
    from agent.platforms.profiles import choose_profile  # lazy: most scans have one sample

    try:
        expected = choose_profile("auto", report.platform).profile
    except BadProfile:
        return report
    context = build_context(report, Settings(), report.platform, expected)
    rules = rules_for(context)
    chosen = [rule for rule in rules if rule.name in pending]
    checks, faults, _ = evaluate(context, chosen)
    findings, _ = build_findings(context, chosen, checks, faults)
    known = {(finding.rule, finding.subject) for finding in report.findings}
    new = [_mark(finding, report, window) for finding in findings if (finding.rule, finding.subject) not in known]
    still = [finding for finding in findings if finding.rule in undated and (finding.rule, finding.subject) in known]
    kept = [*(finding for finding in report.findings if finding.rule not in undated), *still]
    by_rule = {check.rule: check for check in checks}
    all_checks = [by_rule.get(check.rule, check) for check in report.checks]
    all_findings = sorted([*kept, *new], key=worst_first)
    summary = summarize(all_checks, all_findings, {rule.name for rule in rules if rule.essential})
    if not new and len(kept) == len(report.findings):
        summary = msgspec.structs.replace(summary, verdict=report.summary.verdict)
    return msgspec.structs.replace(report, checks=all_checks, findings=all_findings, summary=summary)


def _mark(finding: Finding, report: Report, window: CountersWindow) -> Finding:
    from agent.history.window import time_of

    between = f"{window.since} to {time_of(report)}"
    row = Evidence(what="window", value=between, source=HISTORY_SOURCE)
    return msgspec.structs.replace(
        finding, summary=f"{finding.summary} (fleet history, {between})", evidence=[*finding.evidence, row]
    )


def complete_sample(
    report: Report, at: str, uptime_seconds: float, counts: Iterable[tuple[str, str, int]]
) -> CounterSample:
    """An earlier sample of the same counters of the same devices, of which only those that were not zero are given."""
    from agent.history.window import take_sample

    now = take_sample(report)
    if now is None:
        raise ValueError("a report without uptime")
    counters = {subject: dict.fromkeys(row, 0) for subject, row in now.counters.items()}
    for subject, name, value in counts:
        if name in counters.get(subject, {}):
            counters[subject][name] = value
    return msgspec.structs.replace(now, at=at, uptime_seconds=uptime_seconds, counters=counters)
