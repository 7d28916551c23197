"""What the rules get of a report."""

from __future__ import annotations

import msgspec

from agent.model.node import Platform
from agent.model.profile import Profile
from agent.model.report import Report
from agent.rules.context import RuleContext, Settings
from probes.catalogue import providers


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
