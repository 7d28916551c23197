"""What NCCL and NVSHMEM jobs need of the host: limits, device nodes, modules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import NcclLibrary
from agent.model.reasons import Reason
from agent.rules.cabling import is_plain_ethernet
from agent.rules.context import RuleContext
from agent.rules.nccl.hcas import NODE, rdma_rails, report_no_gpus, report_no_rails, severity_by_scope
from agent.rules.nccl.settings import effective_settings, files_unread_reason, jobs_unread_reason, parse_number
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule


def mapped_libraries(case: RuleContext, *names: str) -> list[NcclLibrary]:
    """Libraries of these names ("libnvshmem") that at least one running job has mapped."""
    nccl = case.software.nccl
    rows = [*nccl.libraries, *nccl.plugins, *nccl.helpers]
    return [row for row in rows if row.used_by and row.path.rpartition("/")[2].startswith(names)]


def report_unused(case: RuleContext, what: str) -> Iterator[Result]:
    """The answer where no running job uses something: not applicable where all of them were seen."""
    yield from (silent := list(report_no_gpus(case)))
    if not silent:
        why = jobs_unread_reason(case)
        yield (
            Unknown("node", why)
            if why
            else NotApplicable("node", Reason("not-in-use", detail=f"no running job uses {what}"))
        )


def library_evidence(rows: list[NcclLibrary]) -> tuple[Evidence, ...]:
    """Which libraries, and by how many processes."""
    return tuple(
        Evidence(what=f"mapped by {row.used_by} processes", value=row.path, source="/proc/*/maps") for row in rows[:4]
    )


_ENOUGH_GIB = read_limit("gdr-memlock-low.gib")
_SHELL = "shell"
_SCHEDULERS = ("slurmd.service", "pbs_mom.service", "lsfd.service")  # jobs of users inherit theirs
_RUNTIMES = ("containerd.service", "docker.service", "crio.service", "k3s.service", "rke2-agent.service")


@rule("gdr-memlock-low")
def gdr_memlock_low(case: RuleContext) -> Iterator[Result]:
    silent = list(report_no_rails(case))
    enough = case.threshold(_ENOUGH_GIB) * (1 << 30)
    if any(isinstance(answer, NotApplicable) for answer in silent) or not _is_shell_low(case, enough):
        yield from silent
    else:
        yield _fail_memlock_shell(case)
        return
    if silent:
        return
    judged = {who: _severity_for_owner(case, who) for who in _list_limits(case)}
    low = [who for who, severity in judged.items() if severity and _parse_bytes(case, who) < enough]
    for severity in ("error", "info"):
        of_kind = [who for who in low if judged[who] == severity]
        if of_kind:
            yield _fail_memlock_low(case, of_kind, severity)
    if low:
        return
    why = case.probe_failure("limits")
    if any(judged.values()):
        yield Pass("node")
    elif why:
        yield Unknown("node", why)
    else:
        yield NotApplicable(
            "node",
            Reason("not-in-use", detail="no service that starts jobs, and no job with an RDMA device, is running"),
        )


def _is_shell_low(case: RuleContext, enough: float) -> bool:
    """Whether somebody saved the small limit of a shell, and nothing shows what jobs have."""
    others = [who for who in _list_limits(case) if _severity_for_owner(case, who)]
    return f"memlock {_SHELL}" in case.software.limits and not others and _parse_bytes(case, _SHELL) < enough


def _fail_memlock_shell(case: RuleContext) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=f"the shell in which `ulimit` ran may lock {_parse_bytes(case, _SHELL) / 1024:.0f} KiB of memory",
        impact="Jobs that this shell starts cannot register memory with a NIC: they end with ENOMEM (Cannot allocate "
        "memory), or fall back to TCP. What jobs of a scheduler may lock is not in the source.",
        remedy="For users, `* soft memlock unlimited` and `* hard memlock unlimited` in /etc/security/limits.d/ "
        "(beside limits.conf), and a new login; for a container, `--ulimit memlock=-1`; for jobs of a scheduler, "
        "LimitMEMLOCK=infinity in a drop-in of its service.",
        evidence=(
            Evidence(
                what="max locked memory of the shell",
                value=f"{case.software.limits[f'memlock {_SHELL}']} bytes",
                source="ulimit -l",
            ),
        ),
        severity="warning",
        confidence="medium",
        cause="shell",
        places=NODE,
    )


def _list_limits(case: RuleContext) -> list[str]:
    return [key.removeprefix("memlock ") for key in case.software.limits if key.startswith("memlock ")]


def _severity_for_owner(case: RuleContext, who: str) -> str | None:
    """How grave a small limit is of a service or process; None where it says nothing of a job."""
    limits = case.software.limits
    if who in _SCHEDULERS:
        return "error"
    if who in _RUNTIMES:
        return "info"
    of_job = who.startswith("pid ") and limits.get(f"rdma {who}") == "yes"
    return "error" if of_job and limits.get(f"exempt {who}") == "no" else None


def _parse_bytes(case: RuleContext, who: str) -> float:
    value = case.software.limits[f"memlock {who}"]
    return float(value) if value.isdecimal() else float("inf")


def _fail_memlock_low(case: RuleContext, who: list[str], severity: str) -> Fail:
    first = who[0]
    more = f" and {len(who) - 1} more" if len(who) > 1 else ""
    runtime = severity == "info"
    return Fail(
        subject="node",
        label="node",
        summary=f"{first}{more} may lock {_parse_bytes(case, first) / 1024:.0f} KiB of memory",
        impact="Containers without CAP_IPC_LOCK cannot register memory: RDMA fails there."
        if runtime
        else "Registering memory fails with ENOMEM: jobs end, or fall back to TCP.",
        remedy="Set LimitMEMLOCK=infinity in a drop-in of the service, and restart it; for users, memlock unlimited "
        "in /etc/security/limits.d/.",
        evidence=tuple(
            Evidence(
                what=f"max locked memory of {process}",
                value=f"{case.software.limits[f'memlock {process}']} bytes",
                source=f"/proc/{process.split()[1]}/limits"
                if process.startswith("pid ")
                else f"systemctl show -p LimitMEMLOCK {process}",
            )
            for process in who[:8]
        ),
        severity=severity,
        cause="runtime" if runtime else "jobs",
        places=NODE,
    )


@rule("gdr-devnodes-missing")
def gdr_devnodes_missing(case: RuleContext) -> Iterator[Result]:
    yield from (silent := list(report_no_rails(case)))
    if silent:
        return
    nodes = case.software.device_nodes
    if nodes is None:
        yield Unknown("node", case.probe_failure("limits") or Reason("not-shown", detail="/dev is not visible here"))
        return
    rails = sorted({rail.name for rail in rdma_rails(case)})
    verbs = [node for node in nodes if node.startswith("infiniband/uverbs")]
    inside = case.node.container is not None
    whole = rails if inside else sorted({*rails, *_list_verbs_devices(case)})
    if len(verbs) >= len(whole):
        yield Pass("node")
        return
    if not verbs and is_plain_ethernet(case):
        yield NotApplicable("node", Reason("not-in-use", detail="nothing on this node states that RDMA is used"))
        return
    kind = "RDMA rails" if len(verbs) < len(rails) else "RDMA devices"
    rails = rails if len(verbs) < len(rails) else whole
    yield Fail(
        subject="node",
        label="node",
        summary=f"{len(verbs)} device nodes (/dev/infiniband/uverbs*) for {len(rails)} {kind}",
        impact=f"programs here cannot open {len(rails) - len(verbs)} of {len(rails)} rails; NCCL goes over TCP where "
        "none is left, which is far slower.",
        remedy="Give the container /dev/infiniband (--device, or the RDMA device plugin)."
        if inside
        else "Load the module: `modprobe ib_uverbs`. Where it is loaded, look at the rules of udev.",
        evidence=(
            Evidence(what="nodes", value=", ".join(verbs[:8]) or "none", source="ls /dev/infiniband"),
            Evidence(what="rails", value=", ".join(rails[:8]), source="ls /sys/class/infiniband"),
        ),
        severity="warning" if inside else "error",
        cause="none" if not verbs else "some",
        places=NODE,
    )


def _list_verbs_devices(case: RuleContext) -> Iterator[str]:
    """All RDMA devices of the host: each has a node, whatever it is for."""
    shared = case.software.rdma_namespaces != "exclusive"
    yield from (nic.rdma_device for nic in case.topology.nics if shared and nic.rdma_device and not nic.software)


_SMALL_MIB = read_limit("gdr-shm-small.mib")


@rule("gdr-shm-small")
def gdr_shm_small(case: RuleContext) -> Iterator[Result]:
    yield from (silent := list(report_no_gpus(case)))
    if silent:
        return
    size = case.software.shared_memory_mib
    if len(case.topology.gpus) < 2:
        yield NotApplicable("node", Reason("nothing-to-compare", detail="one GPU"))
    elif size is None:
        yield Unknown("node", case.probe_failure("nccl") or Reason("not-known", fact="the size of /dev/shm"))
    elif size > case.threshold(_SMALL_MIB):
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary=f"{size} MiB of shared memory (/dev/shm) for {len(case.topology.gpus)} GPUs",
            impact='Jobs that fill it end with a bus error or "No space left on device".',
            evidence=(Evidence(what="size", value=f"{size} MiB", source="/proc/mounts"),),
            places=NODE,
        )


_NEW_DRIVER = 570  # from here on NVSHMEM was seen to work without
_IBGDA_REGKEY_KEY = "NVSHMEM_IB_ENABLE_IBGDA"


@rule("gdr-ibgda-regkey")
def gdr_ibgda_regkey(case: RuleContext) -> Iterator[Result]:
    users = mapped_libraries(case, "libnvshmem")
    settings = [
        setting
        for setting in effective_settings(case, _IBGDA_REGKEY_KEY)
        if parse_number(setting.value) or setting.value.lower() in ("true", "yes", "on")
    ]
    by_cpu = [
        setting for setting in effective_settings(case, "NVSHMEM_IBGDA_NIC_HANDLER") if setting.value.lower() == "cpu"
    ]
    parameters, version = case.software.driver.parameters, case.software.driver.version or ""
    if not case.topology.gpus or not users or not settings:
        yield from report_unused(case, "NVSHMEM's IBGDA")
    elif (parse_number(version) or 0) >= _NEW_DRIVER:
        yield NotApplicable("node", Reason("other-kind", detail=f"driver {version}, with which it works without"))
    elif "RegistryDwords" not in parameters:
        yield Unknown("node", Reason("not-shown", detail="the driver's parameters were not read"))
    elif by_cpu or "PeerMappingOverride=1" in parameters["RegistryDwords"].replace(" ", ""):
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="jobs use NVSHMEM's IBGDA, and the driver runs without PeerMappingOverride=1",
            impact="GPUs cannot drive the NIC by themselves: NVSHMEM ends, or sends by a proxy thread of "
            "the CPU, with fewer small messages per second.",
            evidence=(
                *library_evidence(users),
                *(setting.evidence(_IBGDA_REGKEY_KEY) for setting in settings[:4]),
                Evidence(
                    what="RegistryDwords",
                    value=parameters["RegistryDwords"] or "empty",
                    source="/proc/driver/nvidia/params",
                ),
            ),
            places=NODE,
        )


@rule("gdr-gdrcopy-missing")
def gdr_gdrcopy_missing(case: RuleContext) -> Iterator[Result]:
    users = mapped_libraries(case, "libgdrapi", "nvshmem_transport")
    settings = [setting for setting in effective_settings(case, "NCCL_GDRCOPY_ENABLE") if parse_number(setting.value)]
    nodes = case.software.device_nodes
    if not case.topology.gpus or not (users or settings):
        yield from report_unused(case, "GDRCopy")
    elif nodes is None:
        yield Unknown("node", case.probe_failure("limits") or Reason("not-shown", detail="/dev is not visible here"))
    elif "gdrdrv" in nodes:
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="jobs use GDRCopy, and /dev/gdrdrv is not there",
            impact="small messages take 5 to 10 microseconds instead of 1; NVSHMEM has no atomics over the network.",
            evidence=(
                *library_evidence(users),
                *(setting.evidence("NCCL_GDRCOPY_ENABLE") for setting in settings[:4]),
                Evidence(what="gdrdrv", value="not there", source="ls /dev"),
            ),
            places=NODE,
        )


_P2PDMA = (6, 2)  # kernels in which NVMe can use P2PDMA from user space, in place of nvidia-fs


@rule("gdr-gds-not-ready")
def gdr_gds_not_ready(case: RuleContext) -> Iterator[Result]:
    users = mapped_libraries(case, "libcufile")
    why = case.probe_failure("modules")
    if not case.topology.gpus or not users:
        yield from report_unused(case, "GPUDirect Storage")
    elif why:
        yield Unknown("node", why)
    elif any(module.name == "nvidia_fs" for module in case.software.modules):
        yield Pass("node")
    elif sum(row.used_by for row in users) <= sum(row.used_by for row in mapped_libraries(case, "libtorch_cuda")):
        yield Unknown("node", Reason("undecided", detail="PyTorch has libcufile mapped, whether it is used or not"))
    elif case.software.driver.open is not False and _kernel_version(case) >= _P2PDMA:
        yield Unknown(
            "node", Reason("undecided", detail="nvidia_fs is not loaded; P2PDMA of this kernel may replace it")
        )
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="jobs use GPUDirect Storage, and nvidia_fs is not loaded",
            impact="Reads from storage go through host memory instead of straight to the GPU.",
            evidence=(*library_evidence(users), Evidence(what="nvidia_fs", value="not loaded", source="/proc/modules")),
            places=NODE,
        )


def _kernel_version(case: RuleContext) -> tuple[int, int]:
    """Major and minor; one that is not known may be new."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})", case.node.kernel or "")
    return (int(match[1]), int(match[2])) if match else _P2PDMA


_EFA_STACK_KEY = "FI_PROVIDER"
_SLOW = ("tcp", "sockets", "udp", "ofi_rxm;tcp", "tcp;ofi_rxm")


@rule("gdr-efa-stack")
def gdr_efa_stack(case: RuleContext) -> Iterator[Result]:
    yield from (silent := list(report_no_gpus(case)))
    if silent:
        return
    if not any((nic.driver or "") == "efa" for nic in case.topology.nics):
        why = case.bus_unread
        yield (
            Unknown("node", why)
            if why and not case.topology.nics
            else NotApplicable("node", Reason("no-such-device", detail="no EFA"))
        )
        return
    slow = [setting for setting in effective_settings(case, _EFA_STACK_KEY) if setting.value.strip().lower() in _SLOW]
    users = mapped_libraries(case, "libnccl.so")
    unread = files_unread_reason(case) or jobs_unread_reason(case)
    if slow:
        yield _fail_efa_stack(
            summary=f"{_EFA_STACK_KEY}={slow[0].value} in {slow[0].source}: libfabric does not use EFA",
            remedy=f"Remove {_EFA_STACK_KEY}, or set it to efa.",
            rows=tuple(setting.evidence(_EFA_STACK_KEY) for setting in slow[:8]),
            cause="provider",
            severity=severity_by_scope("error", slow),
        )
    elif users and not mapped_libraries(case, "libnccl-net", "libfabric"):
        yield _fail_efa_stack(
            summary="jobs use NCCL without a plugin for EFA",
            remedy="Install aws-ofi-nccl and libfabric where the jobs run, on their library path.",
            rows=(
                *library_evidence(users),
                Evidence(what="libnccl-net*.so", value="not mapped", source="/proc/*/maps"),
            ),
            cause="plugin",
            confidence="medium",
        )
    else:
        yield Unknown("node", unread) if unread else Pass("node")


def _fail_efa_stack(
    summary: str,
    remedy: str,
    rows: tuple[Evidence, ...],
    cause: str,
    severity: str | None = None,
    confidence: str = "high",
) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=summary,
        impact="NCCL uses TCP sockets instead of EFA, which is far slower.",
        remedy=remedy,
        evidence=rows,
        severity=severity,
        confidence=confidence,
        cause=cause,
        places=NODE,
    )
