"""What NCCL and NVSHMEM jobs need of the host: limits, device nodes, modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent.model.finding import Evidence
from agent.model.node import NcclLibrary
from agent.model.reasons import Reason
from agent.rules.applicability import shows_gpus
from agent.rules.context import RuleContext
from agent.rules.nccl.hcas import rdma_rails, report_no_rails, severity_by_scope
from agent.rules.nccl.settings import effective_settings, parse_number, why_files_unread, why_jobs_unread
from agent.rules.pages import read_limit
from agent.rules.roce.plain_ethernet import is_plain_ethernet
from agent.rules.rule import NODE, Fail, NotApplicable, Result, rule


def mapped_libraries(context: RuleContext, *names: str) -> list[NcclLibrary]:
    """Libraries of these names ("libnvshmem") that at least one running job has mapped."""
    nccl = context.software.nccl
    rows = [*nccl.libraries, *nccl.plugins, *nccl.helpers]
    return [row for row in rows if row.used_by and row.path.rpartition("/")[2].startswith(names)]


def report_unused(context: RuleContext, what: str) -> Result:
    """The answer where no running job uses something: not applicable where all of them were seen."""
    if silent := shows_gpus(context):
        return silent
    why = why_jobs_unread(context)
    return NODE.unknown(why) if why else NODE.not_applicable("not-in-use", detail=f"no running job uses {what}")


def library_evidence(rows: list[NcclLibrary]) -> tuple[Evidence, ...]:
    """Which libraries, and by how many processes."""
    return tuple(Evidence(f"mapped by {row.used_by} processes", row.path, "/proc/*/maps") for row in rows[:4])


_ENOUGH_GIB = read_limit("gdr-memlock-low.gib")
_SHELL = "shell"
_SCHEDULERS = ("slurmd.service", "pbs_mom.service", "lsfd.service")  # jobs of users inherit theirs
_RUNTIMES = ("containerd.service", "docker.service", "crio.service", "k3s.service", "rke2-agent.service")


@rule("gdr-memlock-low")
def gdr_memlock_low(context: RuleContext) -> Result | Iterable[Result]:
    silent = report_no_rails(context)
    enough = context.threshold(_ENOUGH_GIB) * (1 << 30)
    if not isinstance(silent, NotApplicable) and _is_shell_low(context, enough):
        return _fail_memlock_shell(context)
    if silent:
        return silent
    judged = {who: _severity_for_owner(context, who) for who in _list_limits(context)}
    low = [who for who, severity in judged.items() if severity and _parse_bytes(context, who) < enough]
    by_severity = {severity: [who for who in low if judged[who] == severity] for severity in ("error", "info")}
    if low:
        return [_fail_memlock_low(context, who, severity) for severity, who in by_severity.items() if who]
    if any(judged.values()):
        return NODE.passes()
    if why := context.why_probe_failed("limits"):
        return NODE.unknown(why)
    return NODE.not_applicable(
        "not-in-use", detail="no service that starts jobs, and no job with an RDMA device, is running"
    )


def _is_shell_low(context: RuleContext, enough: float) -> bool:
    """Whether someone saved the small limit of a shell, and nothing shows what jobs have."""
    others = [who for who in _list_limits(context) if _severity_for_owner(context, who)]
    return f"memlock {_SHELL}" in context.software.limits and not others and _parse_bytes(context, _SHELL) < enough


def _fail_memlock_shell(context: RuleContext) -> Fail:
    return NODE.fail(
        summary=f"the shell in which `ulimit` ran may lock {_parse_bytes(context, _SHELL) / 1024:.0f} KiB of memory",
        impact="Jobs that this shell starts cannot register memory with a NIC: they end with ENOMEM (Cannot allocate "
        "memory), or fall back to TCP. What jobs of a scheduler may lock is not in the source.",
        remedy="For users, `* soft memlock unlimited` and `* hard memlock unlimited` in /etc/security/limits.d/ "
        "(beside limits.conf), and a new login; for a container, `--ulimit memlock=-1`; for jobs of a scheduler, "
        "LimitMEMLOCK=infinity in a drop-in of its service.",
        evidence=(
            Evidence(
                "max locked memory of the shell", f"{context.software.limits[f'memlock {_SHELL}']} bytes", "ulimit -l"
            ),
        ),
        severity="warning",
        confidence="medium",
        cause="shell",
    )


def _list_limits(context: RuleContext) -> list[str]:
    return [key.removeprefix("memlock ") for key in context.software.limits if key.startswith("memlock ")]


def _severity_for_owner(context: RuleContext, who: str) -> str | None:
    """How severe a small limit is of a service or process; None where it reports nothing of a job."""
    limits = context.software.limits
    if who in _SCHEDULERS:
        return "error"
    if who in _RUNTIMES:
        return "info"
    of_job = who.startswith("pid ") and limits.get(f"rdma {who}") == "yes"
    return "error" if of_job and limits.get(f"exempt {who}") == "no" else None


def _parse_bytes(context: RuleContext, who: str) -> float:
    value = context.software.limits[f"memlock {who}"]
    return float(value) if value.isdecimal() else float("inf")


def _fail_memlock_low(context: RuleContext, who: list[str], severity: str) -> Fail:
    first = who[0]
    more = f" and {len(who) - 1} more" if len(who) > 1 else ""
    runtime = severity == "info"
    return NODE.fail(
        summary=f"{first}{more} may lock {_parse_bytes(context, first) / 1024:.0f} KiB of memory",
        impact="Containers without CAP_IPC_LOCK cannot register memory: RDMA fails there."
        if runtime
        else "Registering memory fails with ENOMEM: jobs end, or fall back to TCP.",
        remedy="Set LimitMEMLOCK=infinity in a drop-in of the service, and restart it; for users, memlock unlimited "
        "in /etc/security/limits.d/.",
        evidence=tuple(
            Evidence(
                f"max locked memory of {process}",
                f"{context.software.limits[f'memlock {process}']} bytes",
                f"/proc/{process.split()[1]}/limits"
                if process.startswith("pid ")
                else f"systemctl show -p LimitMEMLOCK {process}",
            )
            for process in who[:8]
        ),
        severity=severity,
        cause="runtime" if runtime else "jobs",
    )


@rule("gdr-devnodes-missing", gate=report_no_rails)
def gdr_devnodes_missing(context: RuleContext) -> Result:
    nodes = context.software.device_nodes
    if nodes is None:
        return NODE.unknown(
            context.why_probe_failed("limits") or Reason("not-shown", detail="/dev is not visible here")
        )
    rails = sorted({rail.name for rail in rdma_rails(context)})
    verbs = [node for node in nodes if node.startswith("infiniband/uverbs")]
    inside = context.node.container is not None
    whole = rails if inside else sorted({*rails, *_list_verbs_devices(context)})
    if len(verbs) >= len(whole):
        return NODE.passes()
    if not verbs and is_plain_ethernet(context):
        return NODE.not_applicable("not-in-use", detail="nothing on this node states that RDMA is used")
    kind = "RDMA rails" if len(verbs) < len(rails) else "RDMA devices"
    rails = rails if len(verbs) < len(rails) else whole
    return NODE.fail(
        summary=f"{len(verbs)} device nodes (/dev/infiniband/uverbs*) for {len(rails)} {kind}",
        impact=f"programs here cannot open {len(rails) - len(verbs)} of {len(rails)} rails; NCCL goes over TCP where "
        "none is left, which is far slower.",
        remedy="Give the container /dev/infiniband (--device, or the RDMA device plugin)."
        if inside
        else "Load the module: `modprobe ib_uverbs`. Where it is loaded, look at the rules of udev.",
        evidence=(
            Evidence("nodes", ", ".join(verbs[:8]) or "none", "ls /dev/infiniband"),
            Evidence("rails", ", ".join(rails[:8]), "ls /sys/class/infiniband"),
        ),
        severity="warning" if inside else "error",
        cause="none" if not verbs else "some",
    )


def _list_verbs_devices(context: RuleContext) -> Iterator[str]:
    """All RDMA devices of the host: each has a node, whatever it is for."""
    shared = context.software.rdma_namespaces != "exclusive"
    yield from (nic.rdma_device for nic in context.topology.nics if shared and nic.rdma_device and not nic.software)


_SMALL_MIB = read_limit("gdr-shm-small.mib")


@rule("gdr-shm-small", gate=shows_gpus)
def gdr_shm_small(context: RuleContext) -> Result:
    size = context.software.shared_memory_mib
    if len(context.topology.gpus) < 2:
        return NODE.not_applicable("nothing-to-compare", detail="one GPU")
    if size is None:
        return NODE.unknown(context.why_probe_failed("nccl") or Reason("not-known", fact="the size of /dev/shm"))
    if size > context.threshold(_SMALL_MIB):
        return NODE.passes()
    return NODE.fail(
        summary=f"{size} MiB of shared memory (/dev/shm) for {len(context.topology.gpus)} GPUs",
        impact='Jobs that fill it end with a bus error or "No space left on device".',
        evidence=(Evidence("size", f"{size} MiB", "/proc/mounts"),),
    )


_NEW_DRIVER = 570  # from here on NVSHMEM was seen to work without
_IBGDA_REGKEY_KEY = "NVSHMEM_IB_ENABLE_IBGDA"


@rule("gdr-ibgda-regkey")
def gdr_ibgda_regkey(context: RuleContext) -> Result:
    users = mapped_libraries(context, "libnvshmem")
    settings = [
        setting
        for setting in effective_settings(context, _IBGDA_REGKEY_KEY)
        if parse_number(setting.value) or setting.value.lower() in ("true", "yes", "on")
    ]
    by_cpu = [
        setting
        for setting in effective_settings(context, "NVSHMEM_IBGDA_NIC_HANDLER")
        if setting.value.lower() == "cpu"
    ]
    parameters, version = context.software.driver.parameters, context.software.driver.version or ""
    if not context.topology.gpus or not users or not settings:
        return report_unused(context, "NVSHMEM's IBGDA")
    if (parse_number(version) or 0) >= _NEW_DRIVER:
        return NODE.not_applicable("other-kind", detail=f"driver {version}, with which it works without")
    if "RegistryDwords" not in parameters:
        return NODE.unknown("not-shown", detail="the driver's parameters were not read")
    if by_cpu or "PeerMappingOverride=1" in parameters["RegistryDwords"].replace(" ", ""):
        return NODE.passes()
    return NODE.fail(
        summary="jobs use NVSHMEM's IBGDA, and the driver runs without PeerMappingOverride=1",
        impact="GPUs cannot drive the NIC by themselves: NVSHMEM ends, or sends by a proxy thread of "
        "the CPU, with fewer small messages per second.",
        evidence=(
            *library_evidence(users),
            *(setting.evidence(_IBGDA_REGKEY_KEY) for setting in settings[:4]),
            Evidence("RegistryDwords", parameters["RegistryDwords"] or "empty", "/proc/driver/nvidia/params"),
        ),
    )


@rule("gdr-gdrcopy-missing")
def gdr_gdrcopy_missing(context: RuleContext) -> Result:
    users = mapped_libraries(context, "libgdrapi", "nvshmem_transport")
    settings = [
        setting for setting in effective_settings(context, "NCCL_GDRCOPY_ENABLE") if parse_number(setting.value)
    ]
    nodes = context.software.device_nodes
    if not context.topology.gpus or not (users or settings):
        return report_unused(context, "GDRCopy")
    if nodes is None:
        return NODE.unknown(
            context.why_probe_failed("limits") or Reason("not-shown", detail="/dev is not visible here")
        )
    if "gdrdrv" in nodes:
        return NODE.passes()
    return NODE.fail(
        summary="jobs use GDRCopy, and /dev/gdrdrv is not there",
        impact="small messages take 5 to 10 microseconds instead of 1; NVSHMEM has no atomics over the network.",
        evidence=(
            *library_evidence(users),
            *(setting.evidence("NCCL_GDRCOPY_ENABLE") for setting in settings[:4]),
            Evidence("gdrdrv", "not there", "ls /dev"),
        ),
    )


_P2PDMA = (6, 2)  # kernels in which NVMe can use P2PDMA from user space, in place of nvidia-fs


@rule("gdr-gds-not-ready")
def gdr_gds_not_ready(context: RuleContext) -> Result:
    users = mapped_libraries(context, "libcufile")
    why = context.why_probe_failed("modules")
    if not context.topology.gpus or not users:
        return report_unused(context, "GPUDirect Storage")
    if why:
        return NODE.unknown(why)
    if any(module.name == "nvidia_fs" for module in context.software.modules):
        return NODE.passes()
    if sum(row.used_by for row in users) <= sum(row.used_by for row in mapped_libraries(context, "libtorch_cuda")):
        return NODE.unknown("undecided", detail="PyTorch has libcufile mapped, whether it is used or not")
    if context.software.driver.open is not False and _kernel_version(context) >= _P2PDMA:
        return NODE.unknown("undecided", detail="nvidia_fs is not loaded; P2PDMA of this kernel may replace it")
    return NODE.fail(
        summary="jobs use GPUDirect Storage, and nvidia_fs is not loaded",
        impact="Reads from storage go through host memory instead of straight to the GPU.",
        evidence=(*library_evidence(users), Evidence("nvidia_fs", "not loaded", "/proc/modules")),
    )


def _kernel_version(context: RuleContext) -> tuple[int, int]:
    """Major and minor; one that is not known may be new."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})", context.node.kernel or "")
    return (int(match[1]), int(match[2])) if match else _P2PDMA


_EFA_STACK_KEY = "FI_PROVIDER"
_SLOW = ("tcp", "sockets", "udp", "ofi_rxm;tcp", "tcp;ofi_rxm")


@rule("gdr-efa-stack", gate=shows_gpus)
def gdr_efa_stack(context: RuleContext) -> Result:
    if not any((nic.driver or "") == "efa" for nic in context.topology.nics):
        why = context.why_bus_unread
        if why and not context.topology.nics:
            return NODE.unknown(why)
        return NODE.not_applicable("no-such-device", detail="no EFA")
    slow = [
        setting for setting in effective_settings(context, _EFA_STACK_KEY) if setting.value.strip().lower() in _SLOW
    ]
    users = mapped_libraries(context, "libnccl.so")
    unread = why_files_unread(context) or why_jobs_unread(context)
    if slow:
        return _fail_efa_stack(
            summary=f"{_EFA_STACK_KEY}={slow[0].value} in {slow[0].source}: libfabric does not use EFA",
            remedy=f"Remove {_EFA_STACK_KEY}, or set it to efa.",
            rows=tuple(setting.evidence(_EFA_STACK_KEY) for setting in slow[:8]),
            cause="provider",
            severity=severity_by_scope("error", slow),
        )
    if users and not mapped_libraries(context, "libnccl-net", "libfabric"):
        return _fail_efa_stack(
            summary="jobs use NCCL without a plugin for EFA",
            remedy="Install aws-ofi-nccl and libfabric where the jobs run, on their library path.",
            rows=(*library_evidence(users), Evidence("libnccl-net*.so", "not mapped", "/proc/*/maps")),
            cause="plugin",
            confidence="medium",
        )
    return NODE.unknown(unread) if unread else NODE.passes()


def _fail_efa_stack(
    summary: str,
    remedy: str,
    rows: tuple[Evidence, ...],
    cause: str,
    severity: str | None = None,
    confidence: str = "high",
) -> Fail:
    return NODE.fail(
        summary=summary,
        impact="NCCL uses TCP sockets instead of EFA, which is far slower.",
        remedy=remedy,
        evidence=rows,
        severity=severity,
        confidence=confidence,
        cause=cause,
    )
