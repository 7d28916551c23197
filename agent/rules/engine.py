"""Judging: every rule over one context -> checks and findings, and the verdict."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from agent.model.finding import (
    SEVERITIES,
    Check,
    Finding,
    Silenced,
    Step,
    Summary,
    UnknownSubject,
    bound_severity,
    worst_first,
)
from agent.model.reasons import Reason
from agent.rules.consequences import RootFinding, find_standing
from agent.rules.context import RuleContext
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Rule, Unknown

_BUS = frozenset({"pci", "pci_sysfs"})
UNKNOWN_SUBJECTS_SHOWN = 64  # per check; the count is always whole


Failures = list[tuple[Rule, Fail]]


def judge(context: RuleContext, rules: Sequence[Rule]) -> tuple[list[Check], list[Finding], Summary]:
    """Checks in catalogue order; findings worst first; and the verdict."""
    checks, faults, _ = evaluate(context, rules)
    return checks, *build_findings(context, rules, checks, faults)


def evaluate(context: RuleContext, rules: Sequence[Rule]) -> tuple[list[Check], Failures, list[Reason]]:
    """What every rule answers: checks in the order of the catalogue; faults, those too that another one explains; and
    the reasons of all that is unknown, not applicable or disabled."""
    checks: list[Check] = []
    faults: Failures = []
    reasons: list[Reason] = []
    looks = list_second_looks(context)
    for rule in rules:
        if rule.name in context.settings.disabled:
            why = Reason("disabled")
            checks.append(Check(rule=rule.name, state="disabled", reason=str(why), reason_code=why.code))
            reasons.append(why)
            continue
        answers = list(rule.check(context)) or [_empty_result(rule, context)]
        checks.append(_build_check(context, rule, answers, reasons))
        if checks[-1].failed:
            faults += [(rule, _bound(rule, answer)) for answer in answers if isinstance(answer, Fail)]
        faults += [(rule, _bound(rule, fault)) for look in looks for fault in look(rule, answers)]
    return checks, faults, reasons


SecondLook = Callable[[Rule, Sequence[Result]], Iterable[Fail]]


def list_second_looks(context: RuleContext) -> list[SecondLook]:
    """What a rule is asked again for, after its answers: with assumed context, and of the logs of earlier boots."""
    is_fragment = context.recorded and (context.why_bus_unread or context.why_probe_failed("pci_sysfs")) is not None
    if not is_fragment and not context.earlier_events:
        return []
    from agent.rules import fragments, since_cleared  # lazy: no live host needs them

    looks: list[SecondLook] = []
    if is_fragment:
        assumed = fragments.assume_context(context)
        looks.append(partial(fragments.find_in_fragment, assumed))
        machines = since_cleared.list_counted_machines(assumed)
        looks += [partial(since_cleared.find_since_cleared, machine) for machine in machines]
    if context.earlier_events:
        looks.append(partial(fragments.find_before_boot, replace(context, events=context.earlier_events)))
    return looks


def _bound(rule: Rule, fault: Fail) -> Fail:
    """The fault, no more severe than its confidence allows."""
    if fault.confidence == "high":
        return fault
    return msgspec.structs.replace(fault, severity=bound_severity(fault.severity or rule.severity, fault.confidence))


def build_findings(
    context: RuleContext, rules: Sequence[Rule], checks: Sequence[Check], faults: Failures
) -> tuple[list[Finding], Summary]:
    """The findings to report, and the verdict."""
    findings = sorted(_fold_failures(faults, context), key=worst_first)
    summary = summarize(checks, findings, {r.name for r in rules if r.essential})
    if summary.verdict in ("ok", "unknown") and not context.has_devices:
        verdict = "unknown" if context.devices_unread else "nothing_to_check"
        summary = msgspec.structs.replace(summary, verdict=verdict)
    return findings, msgspec.structs.replace(
        summary, devices_unread=str(context.devices_unread) if context.devices_unread else None
    )


def summarize(checks: Iterable[Check], findings: Iterable[Finding], essential: set[str]) -> Summary:
    """The worst finding that is not silenced; unknown where nothing is wrong but an essential rule was not judged."""
    counts = dict.fromkeys(SEVERITIES, 0)
    silenced = 0
    for finding in findings:
        if finding.silenced:
            silenced += 1
        else:
            counts[finding.severity] += 1
    some = {c.rule for c in checks if c.state == "unknown" or (c.unknown and c.rule in essential)}
    unknown = sorted(some, key=lambda name: (name not in essential, name))  # what keeps the verdict from ok comes first
    verdict = next((s for s in reversed(SEVERITIES) if counts[s]), "info")
    open_essential = len(essential.intersection(unknown))
    if verdict == "info":
        verdict = "unknown" if open_essential else "ok"
    return Summary(
        verdict=verdict, counts=counts, silenced=silenced, unknown_rules=unknown, unknown_essential=open_essential
    )


def _empty_result(rule: Rule, context: RuleContext) -> Result:
    """A rule that looked at nothing: because its facts are missing, or because there is nothing of its kind here."""
    why = context.why_probe_failed(*rule.needs) or (context.why_bus_unread if _BUS.intersection(rule.needs) else None)
    if why:
        return Unknown("node", why)
    return NotApplicable("node", Reason("no-such-device", detail="nothing here that this rule judges"))


def _build_check(context: RuleContext, rule: Rule, answers: Sequence[Result], reasons: list[Reason]) -> Check:
    """The tally of a rule; the reasons that it names are added to `reasons`."""
    kinds = list(map(type, answers))  # of a few answers: Counter takes five times as long
    passed, failed, open_answers = kinds.count(Pass), kinds.count(Fail), kinds.count(Unknown)
    unknown: list[tuple[str, Reason]] = []
    if open_answers:
        unknown = sorted({(a.subject, a.reason) for a in answers if isinstance(a, Unknown)})[:UNKNOWN_SUBJECTS_SHOWN]
    if failed:
        state = "fail"
    elif open_answers:
        state = "unknown"
    else:
        state = "pass" if passed else "not_applicable"
    why: Reason | None = None
    if state in ("unknown", "not_applicable"):
        given = {a.reason for a in answers if isinstance(a, (Unknown, NotApplicable))}
        why = min(given) if len(given) == 1 else None
    settles = context.commands_for(rule.needs) if open_answers else ()
    reasons += [reason.settled_by(settles) for _, reason in unknown]
    if why is not None:
        reasons.append(why.settled_by(settles))
    return Check(
        rule=rule.name,
        state=state,
        passed=passed,
        failed=failed,
        unknown=open_answers,
        not_applicable=kinds.count(NotApplicable),
        reason=str(why) if why is not None else None,
        reason_code=why.code if why is not None else None,
        unknown_subjects=[UnknownSubject(subject=s, reason=str(r), reason_code=r.code) for s, r in unknown],
    )


def _fold_failures(faults: Failures, context: RuleContext) -> Iterable[Finding]:
    """Fold consequences into their causes, then write the findings out."""
    if not context.settings.silences:
        yield from (_build_finding(context, standing) for standing in find_standing(faults))
        return
    from agent.rules.silences import fold_with_silences  # lazy: most nodes have none

    yield from (
        _build_finding(context, standing, silenced) for standing, silenced in fold_with_silences(faults, context)
    )


def _build_finding(context: RuleContext, standing: RootFinding, silenced: Silenced | None = None) -> Finding:
    from agent.rules.fingerprints import fingerprint  # lazy, all of these: a healthy node has no finding
    from agent.rules.instructions import build_confirm, build_steps, describe_steps
    from agent.rules.location import find_location

    rule, fault = standing.rule, standing.fault
    location = find_location(context, fault.subject)
    steps = build_steps(context, rule.name, fault, location)
    impact = str(fault.impact)
    if fault.depends_on is not None:
        from agent.rules.fragments import describe_assumption, describe_settling

        steps = [Step(do=describe_settling(context, fault)), *steps]
        impact = f"{describe_assumption(fault)} {impact[:1].upper()}{impact[1:]}"
    return Finding(
        rule=rule.name,
        severity=standing.severity,
        subject=fault.subject,
        label=fault.label,
        summary=str(fault.summary),
        # a reason as a value is its text
        evidence=[msgspec.structs.replace(row, value=str(row.value)) for row in fault.evidence],
        impact=impact,
        remedy=describe_steps(steps),
        steps=steps,
        confirm=build_confirm(context, rule.name, fault),
        location=location,
        silenced=silenced,
        confidence=fault.confidence,
        absorbs=list(standing.absorbs),
        devices=_list_devices(context, standing),
        field=fault.field or None,
        fingerprint=fingerprint(rule.name, fault, context),
    )


def _list_devices(context: RuleContext, standing: RootFinding) -> list[str]:
    """Where subjects name no device: of the places, which name whatever two rules may meet on, the devices."""
    subjects = [standing.fault.subject, *(line.partition(" ")[2] for line in standing.absorbs)]
    if "node" not in subjects:
        return []
    topology = context.topology
    rows = (topology.pci, topology.gpus, topology.nvswitches, topology.nics, topology.netdevs)
    known = {row.id for table in rows for row in table}
    return sorted(known & {place.partition("/")[0] for place in standing.ids})
