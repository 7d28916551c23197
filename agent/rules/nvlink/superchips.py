"""GPUs that are joined to their CPU by NVLink-C2C."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import C2c, Gpu
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, find_function, report_no_gpu
from agent.rules.nvlink.fabric import merge_gpus
from agent.rules.nvlink.link_counts import LinkForm, find_form, not_offered_reason
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, Result, rule
from agent.rules.wording import format_ranges


def superchips(context: RuleContext) -> Iterator[Gpu | Result]:
    """Every GPU of a Grace superchip, or why it is none that can be judged."""
    yield from report_no_gpu(context)
    for gpu in context.topology.gpus:
        about = about_gpu(gpu)
        if answer := not_offered_reason(context, gpu):
            yield answer
        elif find_form(context, gpu) is not LinkForm.SUPERCHIP:
            yield about.not_applicable("other-kind", detail="a GPU without NVLink-C2C")
        elif context.virtual_machine:
            yield about.not_applicable(
                "guest", detail="a virtual machine: its hypervisor decides what a guest sees of C2C"
            )
        else:
            yield gpu


_SHARE = read_limit("c2c-down.share")


@rule("c2c-down", each=superchips, merge=merge_gpus)
def c2c_down(context: RuleContext, gpu: Gpu) -> Result:
    about, c2c = about_gpu(gpu), gpu.c2c or C2c()
    if c2c.enabled is False:
        return _fail_c2c_down(gpu, "NVLink-C2C is off", "critical")
    dead = [number for number, state in enumerate(c2c.links) if state == "inactive"]
    if dead:
        what = f"C2C links {format_ranges(dead)} of {len(c2c.links)} inactive"
        return _fail_c2c_down(gpu, what, "critical" if len(dead) == len(c2c.links) else "error")
    expected = context.profile.c2c_gbyte_s.value if context.profile and context.profile.c2c_gbyte_s else None
    if (
        isinstance(expected, int | float)
        and c2c.max_gbyte_s is not None
        and c2c.max_gbyte_s < expected * context.threshold(_SHARE)
    ):
        return _fail_c2c_down(gpu, f"C2C carries {c2c.max_gbyte_s:.0f} GB/s, expected {expected:.0f}", "error")
    if c2c.enabled is None or any(state != "active" for state in c2c.links):
        return about.unknown("not-reported", fact="the state of C2C")
    return about.passes()


def _fail_c2c_down(gpu: Gpu, what: str, severity: str) -> Fail:
    states = gpu.c2c.links if gpu.c2c else []
    return about_gpu(gpu).fail(
        summary=what,
        impact="The path to the CPU's memory and to NICs is slower than 450 GB/s in each direction, or goes over PCIe.",
        evidence=(
            Evidence("C2C links", ", ".join(states) or "none active", "nvidia-smi c2c -s"),
            Evidence("C2C mode", str(gpu.c2c and gpu.c2c.enabled), "nvidia-smi -q"),
        ),
        severity=severity,
    )


@rule("gpu-ats-off", each=superchips, merge=merge_gpus)
def gpu_ats_off(context: RuleContext, gpu: Gpu) -> Result:
    about, mode = about_gpu(gpu), gpu.addressing_mode
    if mode is None:
        return about.unknown("not-shown", detail="the driver does not report its addressing mode (R580 and later do)")
    if mode == "ats":
        return about.passes()
    return about.fail(
        summary=f"addressing mode {mode}, where ATS is due",
        impact="CPU and GPU share no page table: memory is copied or migrated instead of read at 450 GB/s.",
        evidence=(Evidence("addressing mode", mode, "nvidia-smi -q"),),
        cause=mode,
        situation="new-kernel" if _is_new_kernel(context) else "",
    )


_VERSION = r"(\d{1,4})\.(\d{1,4})\b"
_SVA_WITH_PASSTHROUGH = (6, 11)  # from here on the SMMU shares page tables beside passthrough
_PASSTHROUGH = r"(?:^|\s)iommu(?:=pt|\.passthrough=(?P<number>\S+))(?=\s|$)"
_OFF = ("0", "n", "N", "off")


def _is_new_kernel(context: RuleContext) -> bool | None:
    """Whether the kernel's SMMU shares page tables in passthrough mode, too; None where its version is not known."""
    version = re.match(_VERSION, context.node.kernel or "")
    return (int(version[1]), int(version[2])) >= _SVA_WITH_PASSTHROUGH if version else None


@rule("gpu-smmu-passthrough", each=superchips, merge=merge_gpus)
def gpu_smmu_passthrough(context: RuleContext, gpu: Gpu) -> Result:
    about, new = about_gpu(gpu), _is_new_kernel(context)
    if new or gpu.addressing_mode == "ats":
        return about.passes()
    passthrough = _is_passed_through(context, gpu)
    if passthrough is False:
        return about.passes()
    if passthrough is None:
        return about.unknown("not-known", fact="whether the SMMU passes its addresses through")
    if new is None:
        return about.unknown("not-known", fact="the version of the kernel")
    if "nvidia" in (context.node.kernel or ""):
        return about.unknown(
            "not-known", fact="whether this kernel of the vendor shares page tables in passthrough mode"
        )
    kernel = context.node.kernel or ""
    return about.fail(
        summary=f"the SMMU is in passthrough mode, which kernel {kernel} cannot combine with address translation",
        impact="CUDA does not start on it: the kernel cannot give the GPU the page tables of a process.",
        evidence=(
            Evidence("kernel", kernel, "uname -r"),
            Evidence("kernel command line", context.node.cmdline or "not known", "/proc/cmdline"),
        ),
        confidence="medium",
    )


def _is_passed_through(context: RuleContext, gpu: Gpu) -> bool | None:
    """The domain of the GPU, else what the kernel was given; None where neither shows it."""
    function = find_function(context, gpu)
    if function and function.iommu_type:
        return function.iommu_type == "identity"
    matches = list(re.finditer(_PASSTHROUGH, context.node.cmdline or ""))
    return matches[-1]["number"] not in _OFF if matches else None


_BY_DRIVER = "CoherentGPUMemoryMode"


@rule("gpu-memory-numa-missing", each=superchips, merge=merge_gpus)
def gpu_memory_numa_missing(context: RuleContext, gpu: Gpu) -> Result:
    about = about_gpu(gpu)
    if context.software.driver.parameters.get(_BY_DRIVER, "").strip('"') == "driver":
        return about.not_applicable(
            "by-design", detail="the driver keeps the memory to itself (CoherentGPUMemoryMode=driver)"
        )
    if gpu.mig and gpu.mig.current:
        return about.not_applicable("not-in-use", detail="MIG is on: its memory is divided")
    nodes = {node.id: node for node in context.node.numa_nodes}
    if not nodes or any(node.cpus is None for node in nodes.values()):
        return about.unknown(context.why_probe_failed("numa") or Reason("not-known", fact="which NUMA nodes have CPUs"))
    own = gpu.memory_numa_node
    if own is None:
        if any(node.cpus == "" for node in nodes.values()):
            return about.unknown("not-shown", detail="the driver names no NUMA node, and there are some without CPUs")
        if all(node.memory_mib is None for node in nodes.values()):  # a NCCL topology has those of CPUs alone
            return about.unknown(
                "undecided", detail="the memory of no NUMA node is known: nodes without CPUs may be left out"
            )
        return _fail_memory_numa(context, gpu, "its memory is not a NUMA node")
    if own not in nodes:
        return _fail_memory_numa(context, gpu, f"its memory is NUMA node {own}, which the system does not have")
    if nodes[own].cpus:
        return _fail_memory_numa(context, gpu, f"NUMA node {own} is its memory, and has CPUs")
    return about.passes()


def _fail_memory_numa(context: RuleContext, gpu: Gpu, what: str) -> Fail:
    return about_gpu(gpu).fail(
        summary=what,
        impact="Only CUDA can use the GPU's memory (96 GB and more); numactl and malloc cannot.",
        evidence=(
            Evidence("NUMA nodes", str(len(context.node.numa_nodes)), "/sys/devices/system/node"),
            Evidence(
                "of the GPU",
                "none" if gpu.memory_numa_node is None else str(gpu.memory_numa_node),
                "nvidia-smi topo -m",
            ),
        ),
    )
