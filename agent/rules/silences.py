"""Findings that the operator acknowledged: which entry of the configuration is for which fault."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agent.model.finding import Silenced
from agent.rules.consequences import RootFinding, find_standing
from agent.rules.context import RuleContext, Silence, parse_time
from agent.rules.fingerprints import fingerprint
from agent.rules.location import find_gpu, find_nic, find_port
from agent.rules.rule import Fail, Rule


def fold_with_silences(
    faults: Sequence[tuple[Rule, Fail]], context: RuleContext
) -> list[tuple[RootFinding, Silenced | None]]:
    """The faults to report, each with the entry that silences it.

    What a silenced fault explains stands by itself, unless the entry is for that, too.
    """
    silences = [silence for silence in context.settings.silences if _is_in_force(silence, context)]
    while True:
        rows = [(row, find_silence(silences, row.rule.name, row.fault, context)) for row in find_standing(faults)]
        apart = {
            (row.rule.name, row.fault.subject)
            for row, silence in rows
            if silence is not None and not silence.all and row.absorbs
        }
        if not apart:
            return [(row, _describe(silence) if silence else None) for row, silence in rows]
        faults = [
            (replace(rule, absorbs=()) if _is_among(apart, rule, fault) else rule, fault) for rule, fault in faults
        ]


def find_silence(silences: Sequence[Silence], rule: str, fault: Fail, context: RuleContext) -> Silence | None:
    """The first entry for a fault; one of several devices is silenced where each of them is."""
    own = [silence for silence in silences if silence.rule == rule and silence.field in (None, fault.field)]
    by_rule = next((silence for silence in own if silence.device is None), None)
    by_rule = by_rule or _find_by_name(own, rule, fault, context)
    if by_rule or not fault.parts:
        return by_rule
    of_parts = [_find_by_name(own, rule, part, context) for part in fault.parts]
    known = [silence for silence in of_parts if silence is not None]
    if len(known) < len(of_parts):
        return None
    first_to_end = min(known, key=lambda silence: silence.until or "9999-12-31")
    return replace(first_to_end, all=all(silence.all for silence in known))


def _find_by_name(silences: Sequence[Silence], rule: str, fault: Fail, context: RuleContext) -> Silence | None:
    names = _names(rule, fault, context)
    return next((silence for silence in silences if silence.device in names), None)


def _names(rule: str, fault: Fail, context: RuleContext) -> set[str | None]:
    """By what an entry can name the device of a fault; a pair of devices only as the pair."""
    kind, _, rest = fault.subject.partition(":")
    device, _, part = rest.partition("/")
    names: set[str | None] = {
        fault.subject,
        rest or kind,
        device or kind,
        fault.label,
        fingerprint(rule, fault, context),
    }
    gpu, nic = find_gpu(context, device), find_nic(context, device)
    netdev = next((n for n in context.topology.netdevs if n.id == device), None)
    if gpu:
        names |= {gpu.id, gpu.pci, gpu.label}
    if nic:
        port = find_port(nic, part)
        names |= {nic.id, nic.pci, nic.label, nic.rdma_device, *(port.netdevs if port else ())}
    if netdev:
        names |= {netdev.label, netdev.pci}
    return names - {None}


def _is_in_force(silence: Silence, context: RuleContext) -> bool:
    """Up to the end of its last day, UTC; at a time that is not known only one without an end."""
    if silence.until is None:
        return True
    now = parse_time(context.observed_at)
    return now is not None and now.strftime("%Y-%m-%d") <= silence.until


def _is_among(subjects: set[tuple[str, str]], rule: Rule, fault: Fail) -> bool:
    return any((rule.name, part.subject) in subjects for part in (fault, *fault.parts))


def _describe(silence: Silence) -> Silenced:
    return Silenced(until=silence.until, reason=silence.reason, ticket=silence.ticket)
