"""Limits, memory, GPUs and NVLink fabric of the host of a cause."""

from __future__ import annotations

from collections.abc import Iterator

from agent.job.join.context import CauseOnHost, list_times, match_time


def join_limits(subject: CauseOnHost) -> Iterator[str]:
    """Locked memory, shared memory, devices of containers."""
    cause, report = subject.cause, subject.report
    if cause.id in ("memlock-low", "verbs-create-failed", "ucx-memlock"):
        limits = [(name, value) for name, value in sorted(report.software.limits.items()) if name.startswith("memlock")]
        for name, value in limits[:4]:
            yield f"limit of locked memory, {name.removeprefix('memlock').strip() or 'this shell'}: {value}"
        low = [value for _, value in limits if value.isdecimal() and int(value) < 1 << 30]
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


def join_gpu(subject: CauseOnHost) -> Iterator[str]:
    """The GPU of the rank: its link, its Xids, what its driver recommends."""
    cause, report, gpus = subject.cause, subject.report, subject.gpus
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
            elif event.kind in ("aer", "dpc") and event.subject in (gpu.pci, gpu.id):
                when = match_time(cause, list_times(event))
                if when is not None:
                    yield f"{gpu.label}: kernel log: {event.text[:120]} {when}"


def join_moment(subject: CauseOnHost) -> Iterator[str]:
    """What the kernel logged of any device when steps became slower."""
    cause = subject.cause
    if cause.id != "pace-dropped":
        return
    found = [
        f"{event.text[:120]} {when}"
        for event in subject.report.events
        if (when := match_time(cause, list_times(event))) is not None
    ]
    if found and "the kernel log" not in cause.summary:
        cause.summary += f"; the kernel log of {subject.host or 'the host'}: {found[0]}"
    yield from (f"kernel log: {text}" for text in found[:4])


def join_fabric(subject: CauseOnHost) -> Iterator[str]:
    """Fabric manager, IMEX, and the fabric state of GPUs."""
    cause, report = subject.cause, subject.report
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
