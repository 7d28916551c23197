"""GPUs that are joined to their CPU by NVLink-C2C."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import C2c, Gpu
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, report_no_gpu
from agent.rules.nvlink.fabric import for_each_gpu, gpu_ids
from agent.rules.nvlink.link_counts import LinkForm, find_form, not_offered_reason
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import format_ranges


def superchips(case: RuleContext) -> Iterator[Gpu | Result]:
    """Every GPU of a Grace superchip, or why it is none that can be judged."""
    yield from report_no_gpu(case)
    for gpu in case.topology.gpus:
        subject = f"gpu:{gpu.id}"
        if answer := not_offered_reason(case, gpu):
            yield answer
        elif find_form(case, gpu) is not LinkForm.SUPERCHIP:
            yield NotApplicable(subject, Reason("other-kind", detail="a GPU without NVLink-C2C"))
        elif case.virtual_machine:
            yield NotApplicable(
                subject, Reason("guest", detail="a virtual machine: its hypervisor decides what a guest sees of C2C")
            )
        else:
            yield gpu


_SHARE = read_limit("c2c-down.share")


@rule("c2c-down")
def c2c_down(case: RuleContext) -> Iterator[Result]:
    yield from for_each_gpu(superchips(case), lambda gpu: _judge_c2c_down(case, gpu))


def _judge_c2c_down(case: RuleContext, gpu: Gpu) -> Result:
    subject, c2c = f"gpu:{gpu.id}", gpu.c2c or C2c()
    if c2c.enabled is False:
        return _fail_c2c_down(case, gpu, "NVLink-C2C is off", "critical")
    dead = [number for number, state in enumerate(c2c.links) if state == "inactive"]
    if dead:
        what = f"C2C links {format_ranges(dead)} of {len(c2c.links)} inactive"
        return _fail_c2c_down(case, gpu, what, "critical" if len(dead) == len(c2c.links) else "error")
    expected = case.profile.c2c_gbyte_s.value if case.profile and case.profile.c2c_gbyte_s else None
    if (
        isinstance(expected, int | float)
        and c2c.max_gbyte_s is not None
        and c2c.max_gbyte_s < expected * case.threshold(_SHARE)
    ):
        return _fail_c2c_down(case, gpu, f"C2C carries {c2c.max_gbyte_s:.0f} GB/s, expected {expected:.0f}", "error")
    if c2c.enabled is None or any(state != "active" for state in c2c.links):
        return Unknown(subject, Reason("not-reported", fact="the state of C2C"))
    return Pass(subject)


def _fail_c2c_down(case: RuleContext, gpu: Gpu, what: str, severity: str) -> Fail:
    states = gpu.c2c.links if gpu.c2c else []
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=what,
        impact="The path to the CPU's memory and to NICs is slower than 450 GB/s in each direction, or goes over PCIe.",
        evidence=(
            Evidence(what="C2C links", value=", ".join(states) or "none active", source="nvidia-smi c2c -s"),
            Evidence(what="C2C mode", value=str(gpu.c2c and gpu.c2c.enabled), source="nvidia-smi -q"),
        ),
        severity=severity,
        places=gpu_ids(case, gpu),
    )


@rule("gpu-ats-off")
def gpu_ats_off(case: RuleContext) -> Iterator[Result]:
    yield from for_each_gpu(superchips(case), lambda gpu: _judge_gpu_ats_off(case, gpu))


def _judge_gpu_ats_off(case: RuleContext, gpu: Gpu) -> Result:
    subject, mode = f"gpu:{gpu.id}", gpu.addressing_mode
    if mode is None:
        return Unknown(
            subject, Reason("not-shown", detail="the driver does not report its addressing mode (R580 and later do)")
        )
    if mode == "ats":
        return Pass(subject)
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"addressing mode {mode}, where ATS is due",
        impact="CPU and GPU share no page table: memory is copied or migrated instead of read at 450 GB/s.",
        evidence=(Evidence(what="addressing mode", value=mode, source="nvidia-smi -q"),),
        cause=mode,
        situation="new-kernel" if _is_new_kernel(case) else "",
        places=gpu_ids(case, gpu),
    )


_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\b")
_SVA_WITH_PASSTHROUGH = (6, 11)  # from here on the SMMU shares page tables beside passthrough
_PASSTHROUGH = re.compile(r"(?:^|\s)iommu(?:=pt|\.passthrough=(?P<number>\S+))(?=\s|$)")
_OFF = ("0", "n", "N", "off")


def _is_new_kernel(case: RuleContext) -> bool | None:
    """Whether the kernel's SMMU shares page tables in passthrough mode, too; None where its version is not known."""
    version = _VERSION.match(case.node.kernel or "")
    return (int(version[1]), int(version[2])) >= _SVA_WITH_PASSTHROUGH if version else None


@rule("gpu-smmu-passthrough")
def gpu_smmu_passthrough(case: RuleContext) -> Iterator[Result]:
    yield from for_each_gpu(superchips(case), lambda gpu: _judge_smmu(case, gpu))


def _judge_smmu(case: RuleContext, gpu: Gpu) -> Result:
    subject, new = f"gpu:{gpu.id}", _is_new_kernel(case)
    if new or gpu.addressing_mode == "ats":
        return Pass(subject)
    passthrough = _is_passed_through(case, gpu)
    if passthrough is False:
        return Pass(subject)
    if passthrough is None:
        return Unknown(subject, Reason("not-known", fact="whether the SMMU passes its addresses through"))
    if new is None:
        return Unknown(subject, Reason("not-known", fact="the version of the kernel"))
    if "nvidia" in (case.node.kernel or ""):
        return Unknown(
            subject,
            Reason("not-known", fact="whether this kernel of the vendor shares page tables in passthrough mode"),
        )
    kernel = case.node.kernel or ""
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"the SMMU is in passthrough mode, which kernel {kernel} cannot combine with address translation",
        impact="CUDA does not start on it: the kernel cannot give the GPU the page tables of a process.",
        evidence=(
            Evidence(what="kernel", value=kernel, source="uname -r"),
            Evidence(what="kernel command line", value=case.node.cmdline or "not known", source="/proc/cmdline"),
        ),
        confidence="medium",
        places=gpu_ids(case, gpu),
    )


def _is_passed_through(case: RuleContext, gpu: Gpu) -> bool | None:
    """The domain of the GPU, else what the kernel was told; None where neither shows it."""
    function = find_function(case, gpu)
    if function and function.iommu_type:
        return function.iommu_type == "identity"
    matches = list(_PASSTHROUGH.finditer(case.node.cmdline or ""))
    return matches[-1]["number"] not in _OFF if matches else None


_BY_DRIVER = "CoherentGPUMemoryMode"


@rule("gpu-memory-numa-missing")
def gpu_memory_numa_missing(case: RuleContext) -> Iterator[Result]:
    is_kept_by_driver = case.software.driver.parameters.get(_BY_DRIVER, "").strip('"') == "driver"
    yield from for_each_gpu(superchips(case), lambda gpu: _judge_memory_numa(case, gpu, is_kept_by_driver))


def _judge_memory_numa(case: RuleContext, gpu: Gpu, is_kept_by_driver: bool) -> Result:
    subject = f"gpu:{gpu.id}"
    if is_kept_by_driver:
        return NotApplicable(
            subject, Reason("by-design", detail="the driver keeps the memory to itself (CoherentGPUMemoryMode=driver)")
        )
    if gpu.mig and gpu.mig.current:
        return NotApplicable(subject, Reason("not-in-use", detail="MIG is on: its memory is divided"))
    nodes = {node.id: node for node in case.node.numa_nodes}
    if not nodes or any(node.cpus is None for node in nodes.values()):
        return Unknown(subject, case.probe_failure("numa") or Reason("not-known", fact="which NUMA nodes have CPUs"))
    own = gpu.memory_numa_node
    if own is None:
        if any(node.cpus == "" for node in nodes.values()):
            return Unknown(
                subject, Reason("not-shown", detail="the driver names no NUMA node, and there are some without CPUs")
            )
        if all(node.memory_mib is None for node in nodes.values()):  # a NCCL topology has those of CPUs alone
            return Unknown(
                subject,
                Reason("undecided", detail="the memory of no NUMA node is known: nodes without CPUs may be left out"),
            )
        return _fail_memory_numa(case, gpu, "its memory is not a NUMA node")
    if own not in nodes:
        return _fail_memory_numa(case, gpu, f"its memory is NUMA node {own}, which the system does not have")
    return (
        _fail_memory_numa(case, gpu, f"NUMA node {own} is its memory, and has CPUs")
        if nodes[own].cpus
        else Pass(subject)
    )


def _fail_memory_numa(case: RuleContext, gpu: Gpu, what: str) -> Fail:
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=what,
        impact="Only CUDA can use the GPU's memory (96 GB and more); numactl and malloc cannot.",
        evidence=(
            Evidence(what="NUMA nodes", value=str(len(case.node.numa_nodes)), source="/sys/devices/system/node"),
            Evidence(
                what="of the GPU",
                value="none" if gpu.memory_numa_node is None else str(gpu.memory_numa_node),
                source="nvidia-smi topo -m",
            ),
        ),
        places=gpu_ids(case, gpu),
    )
