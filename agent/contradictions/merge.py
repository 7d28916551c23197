"""One report of outputs that are each judged alone: their findings, and no topology that joins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from agent.contradictions.compare import Contradiction, describe
from agent.model.finding import SEVERITIES, Check, Finding, Summary, UnknownSubject, worst_first
from agent.model.reasons import Reason, list_reasons
from agent.model.report import ProbeRun, Report, SourceHost

SEVERAL = "outputs of several hosts, or of several times"
_SHOWN = 3  # contradictions in a reason
_PEERS = 2  # hosts
_LINES_READ = "lines of parts"
_NAMED = 2  # findings of an output that is not used


def merge_reports(
    whole: Report, parts: Sequence[Report], hosts: list[SourceHost], found: Sequence[Contradiction]
) -> Report:
    """The report of all outputs. `whole`: without node and topology; `parts`: the judged report of each alone."""
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    why = Reason("sources-disagree", detail=f"{SEVERAL}: {'; '.join(map(describe, found[:_SHOWN]))}{more}")
    checks = [_merge_checks(rows, why) for rows in zip(*(part.checks for part in parts), strict=True)]
    owners = {file: host.name for host in hosts for file in host.files}
    active = {name: _list_ports(parts, owners, name) for name in owners.values() if name}
    named = [_name_host(part, owners, active) for part in parts]
    findings: dict[tuple[str, str], Finding] = {}
    for finding in sorted((finding for rows in named for finding in rows), key=worst_first):
        findings.setdefault((finding.fingerprint, finding.label), finding)
    strong = {key: finding for key, finding in findings.items() if not _is_of_lines_read(finding)}
    findings = strong or findings
    return msgspec.structs.replace(
        whole,
        source=msgspec.structs.replace(whole.source, hosts=hosts),
        probes=[_merge_runs(runs) for runs in zip(*(part.probes for part in parts), strict=True)],
        config=parts[0].config,
        checks=checks,
        reasons=list_reasons([why]),
        findings=list(findings.values()),
        summary=_summarize(checks, list(findings.values())),
    )


def _is_of_lines_read(finding: Finding) -> bool:
    """Whether hosts were compared by lines that have their own checks: it counts where these find nothing."""
    return any(_LINES_READ in (evidence.source or "") for evidence in finding.evidence)


def _find_host(part: Report, owners: Mapping[str, str | None]) -> str | None:
    return next((name for file in part.source.files or [] if (name := owners.get(file.name))), None)


def _list_ports(parts: Sequence[Report], owners: Mapping[str, str | None], host: str) -> dict[str, bool]:
    """The ports that outputs of a host list, and whether they are active."""
    return {
        f"{nic.label}/{port.port}": port.state == "ACTIVE"
        for part in parts
        if _find_host(part, owners) == host
        for nic in part.topology.nics
        for port in nic.ports
        if port.state
    }


def _name_host(
    part: Report, owners: Mapping[str, str | None], active: Mapping[str, Mapping[str, bool]]
) -> list[Finding]:
    """The findings of one output, each with the host before its part: others have parts of the same name."""
    host = _find_host(part, owners)
    if host is None:
        return part.findings
    others = [ports for name, ports in active.items() if name != host]
    compared = (_compare(finding, active[host], others) for finding in part.findings)
    return [msgspec.structs.replace(finding, label=f"{host}: {finding.label}") for finding in compared]


def _compare(finding: Finding, own: Mapping[str, bool], others: Sequence[Mapping[str, bool]]) -> Finding:
    """A note about a port that is down, which alone may have no use: a warning where all other hosts use theirs."""
    states = [ports[finding.label] for ports in others if finding.label in ports]
    if finding.severity != "info" or own.get(finding.label) is not False or len(states) < _PEERS or not all(states):
        return finding
    impact = f"The same port of {len(states)} other hosts is up. {finding.impact}"
    return msgspec.structs.replace(finding, severity="warning", impact=impact)


def _merge_checks(checks: Sequence[Check], why: Reason) -> Check:
    """One rule over all outputs: what no output states alone is unknown, for nothing is joined."""
    states = {check.state for check in checks}
    if states == {"disabled"}:
        return checks[0]
    return Check(
        rule=checks[0].rule,
        state="fail" if "fail" in states else "unknown",
        failed=sum(check.failed for check in checks),
        unknown=1,
        reason=None if "fail" in states else str(why),
        reason_code=None if "fail" in states else why.code,
        unknown_subjects=[UnknownSubject(subject="node", reason=str(why), reason_code=why.code)],
    )


def _merge_runs(runs: Sequence[ProbeRun]) -> ProbeRun:
    """How one probe ended over all outputs: as well as it did on any of them."""
    best = min(runs, key=lambda run: (run.status not in ("ok", "partial"), run.status == "absent"))
    sources = sorted({source for run in runs for source in run.sources})
    seconds = round(sum(run.duration_seconds for run in runs), 3)
    return msgspec.structs.replace(best, sources=sources, duration_seconds=seconds)


def _summarize(checks: Sequence[Check], findings: Sequence[Finding]) -> Summary:
    counts = dict.fromkeys(SEVERITIES, 0)
    for finding in findings:
        if finding.silenced is None:
            counts[finding.severity] += 1
    return Summary(
        verdict="unknown",
        counts=counts,
        silenced=sum(finding.silenced is not None for finding in findings),
        unknown_rules=[check.rule for check in checks if check.state == "unknown"],
        devices_unread=SEVERAL,
    )


def name_unused_findings(report: Report, alone: Mapping[str, Report]) -> Report:
    """The report with what outputs that are not used show by themselves and it does not: another time of the host.

    `alone`: the judged report of each by its name in `source.files`.
    """
    known = {(finding.rule, finding.subject) for finding in report.findings}
    notes = {}
    for name, unused in alone.items():
        other = [finding for finding in unused.findings if (finding.rule, finding.subject) not in known]
        if other:
            more = f", and {len(other) - _NAMED} more" if len(other) > _NAMED else ""
            shown = "; ".join(f"{finding.label}: {finding.summary} ({finding.rule})" for finding in other[:_NAMED])
            notes[name] = f"by itself it shows {shown}{more}"
    if not notes:
        return report
    files = [
        msgspec.structs.replace(file, reason="; ".join(filter(None, (file.reason, notes.get(file.name)))) or None)
        for file in report.source.files or []
    ]
    return msgspec.structs.replace(report, source=msgspec.structs.replace(report.source, files=files))
