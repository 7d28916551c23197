"""Joins the causes of a job with reports of its hosts: a cause becomes a part, and what is wrong with it.

Reports come in finished: nothing is scanned or looked up in a dataset here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from agent.job.candidate import SLOW, PossibleCause
from agent.job.conclusion import Conclusion
from agent.job.evidence import Evidence
from agent.job.join.common import find_common_parts
from agent.job.join.context import CauseOnHost, HostReport
from agent.job.join.host import join_fabric, join_gpu, join_limits, join_moment
from agent.job.join.network import compare_mtu, join_gids, join_ports
from agent.model.finding import SEVERITIES, Finding
from agent.model.gpu import Gpu
from agent.model.job_answer import JoinedFinding, JoinedReport
from agent.model.nic import Nic
from agent.model.node import shorten_host
from agent.model.report import Report
from probes.text import lazy_pattern

_MOST_FINDINGS = 8
_NETWORK = ("roce", "ib", "rails", "nic", "rdma", "gdr", "mtu", "gid", "net")
_EVERY_RULE = ("",)  # each name begins so
_FAMILIES = {  # rules of the whole node that matter for a cause
    "shm-full": ("shm", "container"),
    "memlock-low": ("gdr-memlock", "memlock", "limits"),
    "verbs-create-failed": ("gdr-memlock", "memlock"),
    "ucx-memlock": ("gdr-memlock", "memlock"),
    "nvls-bind-failed": ("fabric", "nvlink"),
    "nvls-cuda-error": ("fabric", "nvlink"),
    "cuda-802": ("fabric", "nvlink"),
    "cuda-401": ("fabric", "nvlink"),
    "imex-not-working": ("imex", "fabric"),
    "sockets": ("gdr", "nccl", "ib", "roce", "rdma"),
    "gpudirect-off": ("gdr",),
    "efa-not-found": ("efa", "gdr"),
    "gpu-memory-not-registered": ("gdr",),
    "dmabuf-unsupported": ("gdr",),
    "completion-4": ("gdr", "acs", "iommu"),
    "completion-9": ("gdr", "acs", "iommu"),
    "device-event": ("gdr", "acs", "iommu"),
    "pace-dropped": _EVERY_RULE,  # whatever slows a host slows the job
    **dict.fromkeys(
        (
            "hccl-link-timeout",
            "link-not-established",
            "tls-differs",
            "hccl-completion",
            "hccl-root-timeout",
            "hccl-heartbeat",
            "hccl-notify-timeout",
            "hccl-ei0009",
            "hccl-ei0012",
            "hccl-ej0002",
            "rank-silent",
        ),
        ("npu",),
    ),
}


def _time_of(one: HostReport) -> str | None:
    """When the host was as the report shows it; of outputs that are scanned now, none but what they hold."""
    return one.report.observed_at or (None if one.guessed else one.report.generated_at or None)


def short_name(name: str) -> str:
    """A host's name as logs have it: without domain, in small letters; an address whole.

    >>> short_name("Gpu7.example.org"), short_name("10.0.0.7")
    ('gpu7', '10.0.0.7')
    """
    return shorten_host(name).lower()


def join_reports(conclusion: Conclusion, reports: Sequence[HostReport]) -> list[JoinedReport]:
    """What was joined; causes get the evidence and findings of their parts."""
    evidence = conclusion.evidence
    of_files, of_causes = evidence.ranks.file_hosts.values(), (cause.hosts for cause in conclusion.causes)
    hosts = {short_name(host): host for host in chain(evidence.ranks.hosts(), *of_files, *of_causes)}
    by_host: dict[str, HostReport] = {}
    rows = []
    for one in reports:
        name = one.report.node.hostname
        host, reason = _match(name, hosts, conclusion)
        if host is not None and host in by_host:
            host, reason = None, f"another report of {host} is joined"
        if host is not None:
            by_host[host] = one
        findings = [finding for finding in one.report.open_findings if SEVERITIES.index(finding.severity) > 0]
        rows.append(
            JoinedReport(
                host=host or name,
                source=one.source,
                observed_at=_time_of(one),
                joined=host is not None,
                reason=reason,
                findings=[_show(finding) for finding in findings[:_MOST_FINDINGS]],
            )
        )
    find_common_parts(conclusion, by_host)
    for cause in conclusion.causes:
        _join_cause(conclusion, cause, by_host) if by_host else None
    if conclusion.ended != "well":
        conclusion.causes += [cause for one in reports if one.guessed for cause in _list_shown(conclusion, one)]
    return rows


def _list_shown(conclusion: Conclusion, one: HostReport) -> Iterator[PossibleCause]:
    """What outputs of commands show beside the log, and no cause has: a value that one part alone has is a suspect."""
    known = "\n".join(cause.summary for cause in conclusion.causes)
    lines = "\n".join(row.text for cause in conclusion.causes for row in cause.evidence)
    is_alone = not any(file.read_as for file in conclusion.evidence.files)  # nothing of a job
    is_asked = conclusion.ended != "unknown" or any(conclusion.evidence.prompts.values())  # by a command
    places: list[object] = []
    for finding in sorted(one.report.open_findings, key=lambda row: -SEVERITIES.index(row.severity)):
        rows = [row for row in finding.evidence if is_alone or _OF_A_COMMAND.search(row.source or "")]
        if not rows:
            continue
        place = _OF_A_COMMAND.findall(rows[0].source or "")[:1] or rows[0].source
        is_shown = finding.summary in known or any(str(row.value) in lines for row in rows)
        is_sure = finding.severity != "info"
        is_odd = is_alone or (is_asked and any((row.source or "").endswith(_OF_PARTS) for row in rows))
        if not (is_sure or is_odd) or is_shown or place in places or len(places) == _MOST_SHOWN:
            continue
        places.append(place)
        cause = PossibleCause("output-shows", "note", "unknown", finding.summary, "low")
        cause.confidence = "medium" if is_sure and finding.confidence != "low" else "low"
        if finding.label != "node":
            cause.summary = f"{finding.label}: {finding.summary}"
        cause.findings = [finding.fingerprint]
        for row in rows[:2]:
            cause.show_text(f"{row.what}: {row.value}"[:400], _AGAIN.sub(r"\1", row.source or one.source))
        cause.next = [step.do for step in finding.steps[:2]]
        yield cause


_OF_A_COMMAND, _AGAIN = lazy_pattern(r", line \d{1,9}"), lazy_pattern(r"(, line \d{1,9}), line \d{1,9}")
_OF_PARTS = ("(lines of a loop)", "(lines of parts)", "(table of devices)")  # compared with each other
_MOST_SHOWN = 2


def _match(name: str | None, hosts: dict[str, str], conclusion: Conclusion) -> tuple[str | None, str | None]:
    """The host of the job that a report is of, and what is to be reported of it."""
    if name and short_name(name) in hosts:
        return hosts[short_name(name)], None
    if name and hosts:
        return None, f"{name} is no host of this job ({', '.join(list(hosts.values())[:3])}): nothing is joined with it"
    if len(hosts) == 1:
        only = next(iter(hosts.values()))
        return only, f"the report has no host name: it is taken for {only}, the host of the log"
    if hosts:
        first = next((host for cause in conclusion.causes for host in cause.hosts), None)
        which = "the host of the first cause" if first is not None else "the first host of the log"
        first = first or next(iter(hosts.values()))
        return first, f"the report has no host name: it is taken for {first}, {which}"
    return name or "", f"the log names no host: the report{f' of {name}' if name else ''} is taken for its host"


def _show(finding: Finding) -> JoinedFinding:
    return JoinedFinding(
        fingerprint=finding.fingerprint,
        rule=finding.rule,
        severity=finding.severity,
        label=finding.label,
        summary=finding.summary,
    )


def _join_cause(conclusion: Conclusion, cause: PossibleCause, reports: dict[str, HostReport]) -> None:
    wanted = list(cause.hosts) or list(cause.peers)
    related = [*wanted, *(host for host in cause.peers if host not in wanted)]
    if not cause.hosts and not cause.peers and "" in reports:
        related = [""]
    if not related and len(reports) == 1 and not conclusion.evidence.ranks.hosts():
        related = list(reports)
    if _FAMILIES.get(cause.id) is _EVERY_RULE:
        related = list(reports)
    known = [host for host in related if host in reports]
    if not known:
        if related and cause.order < SLOW:
            cause.next.append(f"no report of {', '.join(related[:3])} is here: run `fabricscope scan` there")
        return
    if len(known) > 1 and cause.role == "network":
        compare_mtu(cause, [reports[host] for host in known])
    healthy = [host for host in known[:16] if not _join_host(conclusion, cause, host, reports[host])]
    if healthy == related and cause.role == "network":
        cause.summary += (
            f"; nothing is wrong there by the report{'s' if len(healthy) > 1 else ''} of {', '.join(healthy[:3])}"
        )
        cause.next.insert(1, "what is between the hosts: drops, errors and states of the switch ports of these rails")
    if len(known) < len(related) and cause.order < SLOW:
        rest = [host for host in related if host not in reports]
        cause.next.append(f"no report of {', '.join(rest[:3])} is here: run `fabricscope scan` there")


def _join_host(conclusion: Conclusion, cause: PossibleCause, host: str, one: HostReport) -> bool:
    """Adds what the report shows of the parts of a cause; returns whether anything is wrong with them."""
    report = one.report
    gpus = _find_gpus(conclusion.evidence, cause, host, report)
    nics = _find_nics(conclusion.evidence, cause, host, report)
    subject = CauseOnHost(conclusion, cause, host, report, gpus, nics)
    lines: list[str] = []
    for join in _JOINS:
        lines += join(subject)
    findings = list(_find_findings(cause, report, gpus, nics))
    for finding in findings[:_MOST_FINDINGS]:
        if finding.fingerprint not in cause.findings:
            cause.findings.append(finding.fingerprint)
        lines.append(f"{finding.severity} {finding.rule} on {finding.label}: {finding.summary}")
    grave = [
        finding for finding in findings if finding.severity in ("error", "critical") and finding.confidence != "low"
    ]
    if grave and grave[0].summary not in cause.summary:
        cause.summary += f"; the report of {host or 'the host'}: {grave[0].label}: {grave[0].summary}"
        if grave[0].steps:
            cause.next.insert(0, f"{host + ': ' if host else ''}{grave[0].steps[0].do}")
    parts = [*(gpu.label for gpu in gpus), *(nic.label for nic in nics)][:6]
    wrong = bool(findings or lines or one.guessed)
    if not wrong:
        when = f" of {_time_of(one)}" if _time_of(one) else ""
        what = f" with {', '.join(parts)}" if parts else ""
        unknown = sum(check.state == "unknown" for check in report.checks)
        rest = f"; {unknown} checks had no data" if unknown else ""
        lines.append(f"the report of {host or 'the host'}{when}: nothing is wrong{what}{rest}")
    for text in lines[:10]:
        cause.show_text(text[:400], one.source)
    return wrong


def _find_gpus(evidence: Evidence, cause: PossibleCause, host: str, report: Report) -> list[Gpu]:
    """The GPUs of the cause on this host."""
    buses, indices = {cause.bus} if cause.bus else set(), set()
    for rank in cause.ranks:
        if evidence.ranks.host(rank) in (host, None) and (gpu := evidence.ranks.gpu(rank)) is not None:
            buses |= {gpu.pci} if gpu.pci else set()
            indices |= {gpu.index} if gpu.index is not None and not gpu.pci else set()
    found = [gpu for gpu in report.topology.gpus if gpu.pci in buses or gpu.id in buses or gpu.index in indices]
    if len(found) == 1 and cause.gpu is None:
        cause.gpu = found[0].pci or found[0].label
    return found


def _find_nics(evidence: Evidence, cause: PossibleCause, host: str, report: Report) -> list[Nic]:
    """The NICs of the cause on this host: by name, else those of its ranks, else all rails of a network cause."""
    names = {cause.nic} if cause.nic else set()
    if not names and cause.role in ("network", "port", "hang"):
        names = {
            name for rank in cause.ranks if evidence.ranks.host(rank) == host for name in evidence.ranks.nics(rank)
        }
    if (not names and cause.role in ("network", "port")) or cause.id in ("sockets", "gpudirect-off", "efa-not-found"):
        used = {name for name, _, _ in evidence.ranks.devices.get(host, {}).values()}
        nics = [nic for nic in report.topology.nics if (nic.rdma_device or nic.label) in used] if used else []
        return nics or [nic for nic in report.topology.nics if nic.role in ("rail", "unknown") and nic.rdma_device]
    return [nic for nic in report.topology.nics if nic.rdma_device in names or nic.label in names]


def _find_findings(cause: PossibleCause, report: Report, gpus: Sequence[Gpu], nics: Sequence[Nic]) -> Iterator[Finding]:
    """Findings of the parts, and those of the whole node that matter for this cause."""
    ids = {gpu.id for gpu in gpus} | {nic.id for nic in nics}
    ids |= {netdev.id for netdev in report.topology.netdevs if netdev.nic in {nic.id for nic in nics}}
    families = _FAMILIES.get(cause.id, ())
    if cause.role in ("network", "port") and not families:
        families = _NETWORK
    for finding in report.open_findings:
        concerned = finding.list_concerned()
        of_part = bool(concerned & ids) and (finding.severity != "info")
        of_node = not concerned and finding.rule.startswith(families) if families else False
        of_family = bool(families) and finding.rule.startswith(families) and not ids and finding.severity != "info"
        whole = (
            finding.subject == "node"
            and finding.severity in ("error", "critical")
            and cause.id in ("rank-behind", "rank-silent", "rank-late")
        )
        if of_part or (of_node and finding.severity != "info") or of_family or whole:
            yield finding


_JOINS: tuple[Callable[[CauseOnHost], Iterable[str]], ...] = (
    join_ports,
    join_gids,
    join_limits,
    join_gpu,
    join_moment,
    join_fabric,
)
