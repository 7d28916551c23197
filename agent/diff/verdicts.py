"""Findings that came and went, checks that are judged otherwise, probes that answer otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from agent.diff.ledger import ChangedThing, Ledger
from agent.diff.pairing import Pairing
from agent.model.finding import Check, Finding, describe_silence
from agent.model.report import Report

ANSWERED = ("ok", "partial")


def verdicts(ledger: Ledger, old: Report, new: Report, pairs: Pairing) -> None:
    """A finding is the same by its fingerprint, else by its rule and the subject that it is on."""
    reported: set[str] = set()
    after = {finding.fingerprint: finding for finding in new.findings} if pairs.same_host else {}
    subjects = {(f.rule, _subject(f.subject, {})): f for f in new.findings}
    met: set[int] = set()

    def add(kind: str, finding: Finding, place: ChangedThing) -> None:
        reported.add(finding.rule)
        ledger.add("findings", kind, finding.rule, place, note=f"{finding.severity}: {finding.summary}")

    for finding in old.findings:
        other = after.get(finding.fingerprint) or subjects.get((finding.rule, _subject(finding.subject, pairs.ids)))
        if other is None or id(other) in met:
            add("gone", finding, ChangedThing(old=finding.subject, label=finding.label))
            continue
        met.add(id(other))
        place = ChangedThing(old=finding.subject, new=other.subject, label=other.label)
        ledger.compare("findings", f"{finding.rule} severity", place, finding.severity, other.severity)
        ledger.compare("findings", f"{finding.rule} silenced", place, *map(_silence, (finding, other)))
    for finding in new.findings:
        if id(finding) not in met:
            add("new", finding, ChangedThing(new=finding.subject, label=finding.label))
    _checks(ledger, old, new, reported)


def probes(ledger: Ledger, old: Report, new: Report) -> None:
    """Of two sources of one kind: a probe that answered and does not any more, and the reverse."""
    if old.source.kind != new.source.kind:
        return
    after = {run.name: run for run in new.probes}
    for run in old.probes:
        other = after.get(run.name)
        if (
            other
            and (run.status in ANSWERED) != (other.status in ANSWERED)
            and "skipped" not in (run.status, other.status)
        ):
            place = ChangedThing(old=f"probe:{run.name}", new=f"probe:{run.name}", label=run.name)
            reason = other.reason if other.status not in ANSWERED else run.reason
            ledger.add("evidence", "changed", "probe", place, run.status, other.status, note=reason)


def _checks(ledger: Ledger, old: Report, new: Report, reported: set[str]) -> None:
    """Rules that are judged otherwise, but for those whose findings state it already."""
    absorbed = {line.partition(" ")[0] for side in (old, new) for finding in side.findings for line in finding.absorbs}
    after = {check.rule: check for check in new.checks}
    for check in old.checks:
        other = after.get(check.rule)
        idle = other and {check.state, other.state} == {"pass", "unknown"} and (_idle(old, check) or _idle(new, other))
        if other and not idle and check.rule not in reported | absorbed:
            place = ChangedThing(old=f"rule:{check.rule}", new=f"rule:{check.rule}", label=check.rule)
            ledger.compare("findings", "check", place, check.state, other.state, note=other.reason or check.reason)


def _idle(report: Report, check: Check) -> bool:
    """Whether a check is open for no other reason than that links rest."""
    topology = report.topology
    functions = {gpu.id: gpu.pci for gpu in topology.gpus} | {nic.id: nic.pci for nic in topology.nics}
    resting = {row.id for row in topology.pci if row.link and row.link.quality.state == "idle"}
    subjects = [subject.subject.partition(":")[2] for subject in check.unknown_subjects]
    return bool(subjects) and all(functions.get(ident, ident) in resting for ident in subjects)


def _subject(subject: str, ids: Mapping[str, str]) -> str:
    """A subject with its ids in the words of NEW: `gpu:ID`, `link:ID/7`, `pair:ID+ID`.

    >>> _subject("link:0000:19:00.0/7", {"0000:19:00.0": "0000:1a:00.0"})
    'link:0000:1a:00.0/7'
    """
    kind, _, rest = subject.partition(":")
    ends = []
    for end in rest.split("+"):
        ident, slash, part = end.partition("/")
        ends.append(ids.get(end) or ids.get(ident, ident) + slash + part)
    return f"{kind}:{'+'.join(ends)}"


def _silence(finding: Finding) -> str:
    return describe_silence(finding.silenced) if finding.silenced else "no"
