"""Joins the causes of a job with reports of its hosts: a cause becomes a part, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from agent.job.answer import Conclusion
from agent.job.candidate import SLOW, PossibleCause
from agent.job.evidence import Evidence
from agent.job.lines import find_time
from agent.model.finding import SEVERITIES, Finding
from agent.model.gpu import Gpu
from agent.model.job_answer import JobEvidence, JoinedFinding, JoinedReport
from agent.model.nic import Nic, Port
from agent.model.report import Report

_MOST_FINDINGS = 8
_CLOCKS = 5.0  # seconds
_NETWORK = ("roce", "ib", "rails", "nic", "rdma", "gdr", "mtu", "gid", "net")
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
}


class HostReport(NamedTuple):
    """A report, and where it is from."""

    report: Report
    source: str
    guessed: bool = False  # made of other files in the folder


def _time_of(one: HostReport) -> str | None:
    """When the host was as the report shows it; of outputs that are scanned now, none but what they hold."""
    return one.report.observed_at or (None if one.guessed else one.report.generated_at or None)


def short_name(name: str) -> str:
    """A host's name as logs have it: without domain, in small letters."""
    return name.partition(".")[0].lower()


def join_reports(conclusion: Conclusion, reports: Sequence[HostReport]) -> list[JoinedReport]:
    """What was joined; causes get the evidence and findings of their parts."""
    evidence = conclusion.evidence
    hosts = {short_name(host): host for host in (*evidence.ranks.hosts(), *_file_hosts(evidence), *_named(conclusion))}
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
    if not by_host:
        return rows
    for cause in conclusion.causes:
        _join_cause(conclusion, cause, by_host)
    return rows


def _file_hosts(evidence: Evidence) -> Iterator[str]:
    for hosts in evidence.ranks.file_hosts.values():
        yield from hosts


def _named(conclusion: Conclusion) -> Iterator[str]:
    for cause in conclusion.causes:
        yield from cause.hosts


def _match(name: str | None, hosts: dict[str, str], conclusion: Conclusion) -> tuple[str | None, str | None]:
    """The host of the job that a report is of, and what is to be said of it."""
    if name and short_name(name) in hosts:
        return hosts[short_name(name)], None
    if name and hosts:
        return None, f"{name} is no host of this job ({', '.join(list(hosts.values())[:3])}): nothing is joined with it"
    if len(hosts) == 1:
        only = next(iter(hosts.values()))
        return only, f"the report has no host name: it is taken for {only}, the host of the log"
    if hosts:
        first = next((host for cause in conclusion.causes for host in cause.hosts), next(iter(hosts.values())))
        return first, f"the report has no host name: it is taken for {first}, the host of the first cause"
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
    known = [host for host in related if host in reports]
    if not known:
        if related and cause.order < SLOW:
            cause.next.append(f"no report of {', '.join(related[:3])} is here: run `fabricscope scan` there")
        return
    if len(known) > 1 and cause.role == "network":
        _compare_mtu(cause, [reports[host] for host in known])
    for host in known[:16]:
        _join_host(conclusion, cause, host, reports[host])
    if len(known) < len(related) and cause.order < SLOW:
        rest = [host for host in related if host not in reports]
        cause.next.append(f"no report of {', '.join(rest[:3])} is here: run `fabricscope scan` there")


def _join_host(conclusion: Conclusion, cause: PossibleCause, host: str, one: HostReport) -> None:
    report = one.report
    gpus, nics = (
        _find_gpus(conclusion.evidence, cause, host, report),
        _find_nics(conclusion.evidence, cause, host, report),
    )
    lines: list[str] = []
    for join in _JOINS:
        lines += join(conclusion, cause, host, report, gpus, nics)
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
    if not findings and not lines and not one.guessed:
        when = f" of {_time_of(one)}" if _time_of(one) else ""
        what = f" with {', '.join(parts)}" if parts else ""
        unknown = sum(check.state == "unknown" for check in report.checks)
        rest = f"; {unknown} checks had no data" if unknown else ""
        lines.append(f"the report of {host or 'the host'}{when}: nothing is wrong{what}{rest}")
    for text in lines[:10]:
        cause.evidence.append(JobEvidence(text=text[:400], source=one.source))


Found = Callable[[Conclusion, PossibleCause, str, Report, Sequence[Gpu], Sequence[Nic]], Iterable[str]]


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


def _port_of(nic: Nic, number: int | None) -> Port | None:
    return next((port for port in nic.ports if number in (None, port.port)), None)


def _join_ports(
    conclusion: Conclusion, cause: PossibleCause, host: str, report: Report, gpus: Sequence[Gpu], nics: Sequence[Nic]
) -> Iterator[str]:
    """State, flaps and losses of the ports that a network cause uses."""
    if cause.role not in ("network", "port"):
        return
    down = [(nic, port) for nic in nics for port in nic.ports if port.state not in ("ACTIVE", None)]
    if cause.nic is None and cause.role == "port" and len(down) == 1:
        cause.nic, cause.port = down[0][0].label, down[0][1].port
        cause.summary = cause.summary.replace("a port of an RDMA device", f"port {cause.port} of {cause.nic}")
    for nic, port in down[:4]:
        yield f"{nic.label} port {port.port}: {port.state}{f' ({port.phys_state})' if port.phys_state else ''}"
    for nic in report.topology.nics if cause.nic is None else ():
        for port in nic.ports:
            if (
                nic not in nics
                and nic.rdma_device
                and nic.role in ("rail", "unknown")
                and port.state not in ("ACTIVE", None)
            ):
                yield f"not used by the job: {nic.label} port {port.port}: {port.state}"
    odd = [nic for nic in nics for port in nic.ports if port.link_layer == "Ethernet" and (port.lid or 0) > 0]
    if odd and cause.id == "qp-invalid":
        yield f"{odd[0].label}: LID {odd[0].ports[0].lid} on an Ethernet port"
        cause.summary += (
            f"; {odd[0].label} has LID {odd[0].ports[0].lid} on an Ethernet port, which old NCCL takes for InfiniBand"
        )
        cause.next.insert(0, "a later NCCL, which looks at the link layer and not at the LID")
    if down and (cause.nic in (None, down[0][0].rdma_device, down[0][0].label)) and cause.fault != "setting":
        nic = down[0][0]
        cause.fault, cause.nic, cause.port = "wire", nic.rdma_device or nic.label, down[0][1].port
        if cause.role == "network":
            cause.hosts = {host: None} if host else cause.hosts
            cause.ranks = {
                rank: None for rank in cause.ranks if conclusion.evidence.ranks.host(rank) == host
            } or cause.ranks
        if "port is down there" not in cause.summary:
            cause.summary += f"; {nic.rdma_device or nic.label} on {host}: the port is down there"
        cause.confidence = "high"
    for nic in nics[:16]:
        used = _port_of(nic, cause.port)
        if used is None:
            continue
        counters = {**used.counters, **used.hw_counters}
        shown = [
            f"{name} {counters[name]}"
            for name in ("link_downed", "symbol_error", "local_ack_timeout_err", "out_of_sequence", "rnr_nak_retry_err")
            if counters.get(name)
        ]
        if shown and (cause.nic is not None or cause.role == "port"):
            yield f"{nic.label} port {used.port}: {', '.join(shown)} since the driver was loaded"
        yield from _list_flaps(cause, report, nic)


def _list_flaps(cause: PossibleCause, report: Report, nic: Nic) -> Iterator[str]:
    """Links that went down at the time of the failure, by the kernel log of the report."""
    names = {nic.pci, nic.id, nic.label, nic.rdma_device} | {
        name for netdev in report.topology.netdevs if netdev.nic == nic.id for name in (netdev.id, netdev.label)
    }
    for event in report.events:
        if event.kind != "link_down" or event.subject not in names:
            continue
        for text in event.times or ([event.at] if event.at else []):
            moment = find_time(text.replace("T", " "))
            if moment is None or cause.at is None:
                continue
            offset = cause.at.seconds - moment.seconds
            hours = round(offset / 1800) * 1800
            if abs(offset - hours) <= _CLOCKS and abs(hours) <= 14 * 3600:
                zone = "" if not hours else f" (the log's clock is {hours / 3600:+g} h from the report's)"
                yield f"kernel log: {nic.label} went down at {text}, at the time of the failure{zone}"
                return


def _join_gids(
    conclusion: Conclusion, cause: PossibleCause, host: str, report: Report, gpus: Sequence[Gpu], nics: Sequence[Nic]
) -> Iterator[str]:
    """The GID that is in use, and the one that is right."""
    if cause.id not in (
        "gid-link-local",
        "qp-address-unresolved",
        "qp-invalid",
        "qp-no-route",
        "completion-12",
        "gid-type-unreadable",
    ):
        return
    index = cause.facts.get("index")
    for nic in nics[:8]:
        port = _port_of(nic, cause.port)
        if port is None or not port.gids:
            continue
        if index is None and (local := cause.facts.get("local")):
            index = next((str(gid.index) for gid in port.gids if _same_gid(gid.gid, local)), None)
        used = next((gid for gid in port.gids if str(gid.index) == index), None)
        right = [gid for gid in port.gids if (gid.type or "").lower() in ("roce v2", "rocev2") and _is_ipv4(gid.gid)]
        if used is not None and _is_link_local(used.gid):
            yield f"{nic.label}: GID index {used.index} is link-local ({used.gid}, {used.type})"
        elif used is not None and (used.type or "").lower() in ("ib/roce v1", "roce v1"):
            yield f"{nic.label}: GID index {used.index} is RoCE v1"
        elif index is not None and used is None and index.lstrip("-").isdigit() and int(index) >= 0 and port.gids_known:
            yield f"{nic.label}: GID index {index} has no entry"
        if right and (used is None or used not in right):
            best = right[0]
            yield f"{nic.label}: GID index {best.index} is RoCE v2 with an IPv4 address ({best.gid})"
            advice = (
                f"NCCL_IB_GID_INDEX={best.index} on {host or 'this host'} (NCCL 2.21 and later choose it "
                f"without the setting)"
            )
            if advice not in cause.next:
                cause.next.insert(0, advice)
                state = (
                    f"GID index {used.index} is link-local"
                    if used is not None and _is_link_local(used.gid)
                    else "another GID is in use"
                )
                cause.summary += f"; {nic.label}: {state}, index {best.index} is RoCE v2 with an IPv4 address"
                cause.fault = "setting"
            return


def _is_link_local(gid: str) -> bool:
    return gid.lower().startswith("fe80")


def _is_ipv4(gid: str) -> bool:
    return ":ffff:" in gid.lower()


def _same_gid(one: str, other: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return one.lower() == other.lower()


def _join_limits(
    conclusion: Conclusion, cause: PossibleCause, host: str, report: Report, gpus: Sequence[Gpu], nics: Sequence[Nic]
) -> Iterator[str]:
    """Locked memory, shared memory, devices of containers."""
    if cause.id in ("memlock-low", "verbs-create-failed", "ucx-memlock"):
        limits = [(name, value) for name, value in sorted(report.software.limits.items()) if name.startswith("memlock")]
        for name, value in limits[:4]:
            yield f"limit of locked memory, {name.removeprefix('memlock').strip() or 'this shell'}: {value}"
        low = [value for _, value in limits if value.isdigit() and int(value) < 1 << 30]
        if low and "locked memory of the host" not in cause.summary:
            cause.summary += f"; the limit of locked memory there is {int(low[0]) >> 10} KiB"
            cause.confidence = "high"
    elif cause.id in ("shm-full", "shm-failed") and report.software.shared_memory_mib is not None:
        yield f"shared memory (/dev/shm): {report.software.shared_memory_mib} MiB"  # a name in a text
    elif cause.id in (
        "gpudirect-off",
        "gpu-memory-not-registered",
        "dmabuf-unsupported",
        "completion-4",
        "completion-9",
    ):
        blocked = [row for row in report.gpudirect if row.verdict in ("blocked", "degraded")]
        for text in list(dict.fromkeys(text for row in blocked for text in row.causes))[:4]:
            yield f"GPUDirect RDMA: {text}"
        names = [
            module.name for module in report.software.modules if "peermem" in module.name or "peer_mem" in module.name
        ]
        if report.software.modules:
            yield f"peer memory module: {', '.join(names) or 'none is loaded'}"
    elif cause.id in ("sockets", "efa-not-found"):
        active = [nic.label for nic in report.topology.nics if any(port.state == "ACTIVE" for port in nic.ports)]
        if active:
            yield f"active RDMA ports of the host: {', '.join(active[:8])}: the job's container or settings hide them"
        nodes = report.software.device_nodes
        if nodes is not None and not any(name.startswith("infiniband/") for name in nodes):
            yield "/dev has no infiniband devices where the report was made"


def _join_gpu(
    conclusion: Conclusion, cause: PossibleCause, host: str, report: Report, gpus: Sequence[Gpu], nics: Sequence[Nic]
) -> Iterator[str]:
    """The GPU of the rank: its link, its Xids, what its driver recommends."""
    wanted = cause.role in ("missing", "error", "hard", "crash", "exit", "silent") or cause.id == "rank-late"
    for gpu in gpus[:8] if wanted and len(cause.ranks) <= 8 else ():
        pcie = gpu.pcie
        if pcie is not None and pcie.width and pcie.max_width and pcie.width < pcie.max_width:
            yield f"{gpu.label}: PCIe x{pcie.width} of x{pcie.max_width}"
        if gpu.recovery_action not in (None, "none", "None"):
            yield f"{gpu.label}: the driver recommends: {gpu.recovery_action}"
        for event in report.events:
            if event.kind == "xid" and event.subject in (gpu.pci, gpu.id):
                yield (
                    f"{gpu.label}: Xid {event.code} ({event.at or event.logged or 'time not known'}): "
                    f"{event.text[:120]}"
                )


def _join_fabric(
    conclusion: Conclusion, cause: PossibleCause, host: str, report: Report, gpus: Sequence[Gpu], nics: Sequence[Nic]
) -> Iterator[str]:
    """Fabric manager, IMEX, and the fabric state of GPUs."""
    if cause.id not in ("nvls-bind-failed", "nvls-cuda-error", "cuda-401", "cuda-802", "imex-not-working", "cuda-999"):
        return
    for service in report.software.services:
        if ("fabricmanager" in service.name or "imex" in service.name) and service.state not in (
            "unknown",
            "not_installed",
        ):
            yield f"service {service.name}: {service.state}"
    states = sorted({gpu.fabric.state for gpu in report.topology.gpus if gpu.fabric is not None and gpu.fabric.state})
    if states:
        yield f"fabric state of the GPUs: {', '.join(states)}"


def _compare_mtu(cause: PossibleCause, reports: Sequence[HostReport]) -> None:
    """Rails of two hosts with different MTUs: the smaller one cuts the path."""
    mtus: dict[int, str] = {}
    for one in reports:
        for nic in one.report.topology.nics:
            if nic.role == "rail" and cause.nic in (None, nic.rdma_device, nic.label):
                for port in nic.ports:
                    if port.active_mtu and port.link_layer == "Ethernet":
                        mtus.setdefault(port.active_mtu, f"{one.report.node.hostname} {nic.label}")
    if len(mtus) > 1:
        text = ", ".join(f"{mtu} ({place})" for mtu, place in sorted(mtus.items()))
        cause.summary += f"; the active MTUs of the rails differ: {text}"
        cause.next.insert(0, "one MTU for all rails and switch ports")


_JOINS: tuple[Found, ...] = (_join_ports, _join_gids, _join_limits, _join_gpu, _join_fabric)
