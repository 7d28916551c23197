"""Fixture machines, with an overlay on their description, really scanned and judged: no file, no guest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report, Source
from agent.platforms.profiles import choose_profile
from agent.rules import engine, fingerprints
from agent.rules.catalogue import rules_for
from agent.rules.context import RuleContext
from bench.fleet.forms import Recipe
from fixtures.build import capture_machine, host_in_memory
from fixtures.loader import merge_tables, read_table
from fixtures.machine import parse_machine
from probes.catalogue import providers


def scanned(shape: str, overlay: Mapping[str, Any]) -> Report:
    """The report of a fixture machine with that laid over its description, as a scan of a live host writes it."""
    result = capture_machine(parse_machine(merge_tables(read_table("hosts", shape), dict(overlay)), shape))
    report, _ = diagnose(host_in_memory(result, shape), ScanPlan())
    return msgspec.structs.replace(report, source=Source(kind="live"))


def fault(name: str) -> dict[str, Any]:
    """The overlay of a fault of fixtures/faults, with the shape that it is made for as "base"."""
    return read_table("faults", name)


def recipes(report: Report) -> list[Recipe]:
    """What the fingerprint of every finding of a report is made of, in their order."""
    profile, platform, _ = (
        choose_profile("auto", report.platform) if report.platform.profile else (None, report.platform, None)
    )
    case = RuleContext(
        node=report.node,
        platform=platform,
        probes={run.name: run for run in report.probes},
        providers=providers(),
        software=report.software,
        events=tuple(report.events),
        topology=report.topology,
        observed_at=report.observed_at,
        profile=profile,
    )
    collected = {}
    for rule, fault in engine.evaluate(case, rules_for(case))[1]:
        identity = fingerprints.lasting_identity(fault.subject, case)
        collected[fingerprints.fingerprint(rule.name, fault, case)] = Recipe(rule.name, fault.cause, [identity], [])
    return [collected[finding.fingerprint] for finding in report.findings]
