"""gpu-memory-numa-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.nvlink.fabric import by_each, places
from agent.rules.nvlink.superchips import superchips
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_BY_DRIVER = "CoherentGPUMemoryMode"


@rule("gpu-memory-numa-missing", "info", needs=("nvml|nvidia_smi", "numa"), references=("NVL-026",))
def gpu_memory_numa_missing(case: Case) -> Iterator[Answer]:
    """The memory of a superchip's GPU is no NUMA node of the system.

    ## What it checks
    Whether every GPU with NVLink-C2C names a NUMA node, and whether that node is there and has no CPUs.

    ## Why it matters
    As a NUMA node the GPU's memory (96 GB and more) can be allocated by any program with numactl or malloc; without
    it only CUDA gets at it.

    ## How it is decided
    The GPU names no node and the system has none without CPUs, or it names one that has CPUs or is not there: info.

    ## What keeps it silent
    - GPUs without C2C, virtual machines, no driver: not applicable. MIG is on, or the driver keeps the memory to
      itself (`NVreg_CoherentGPUMemoryMode=driver`): not applicable.
    - The driver names no node and the system has some without CPUs: unknown whose they are.

    ## How to confirm
    `numactl -H; nvidia-smi topo -m` (column GPU NUMA ID)

    ## How to fix
    Nothing, where nobody needs it. Else check that the kernel onlines memory: `memhp_default_state=online_movable` is
    what NVIDIA advises.

    ## Source
    NVIDIA Grace Hopper documentation (coherent memory, CDMM); NVML nvmlDeviceGetNumaNodeId.
    """
    kept = case.software.driver.parameters.get(_BY_DRIVER, "").strip('"') == "driver"
    yield from by_each(superchips(case), lambda gpu: _judge(case, gpu, kept))


def _judge(case: Case, gpu: Gpu, kept: bool) -> Answer:
    subject = f"gpu:{gpu.id}"
    if kept:
        return NotApplicable(subject, "the driver keeps the memory to itself (CoherentGPUMemoryMode=driver)")
    if gpu.mig and gpu.mig.current:
        return NotApplicable(subject, "MIG is on: its memory is divided")
    nodes = {node.id: node for node in case.node.numa_nodes}
    if not nodes or any(node.cpus is None for node in nodes.values()):
        return Unknown(subject, case.probe_failure("numa") or "which NUMA nodes have CPUs is not known")
    own = gpu.memory_numa_node
    if own is None:
        if any(node.cpus == "" for node in nodes.values()):
            return Unknown(subject, "the driver names no NUMA node, and there are some without CPUs")
        return _fault(case, gpu, "its memory is no NUMA node")
    if own not in nodes:
        return _fault(case, gpu, f"its memory is NUMA node {own}, which the system does not have")
    return _fault(case, gpu, f"NUMA node {own} is its memory, and has CPUs") if nodes[own].cpus else Pass(subject)


def _fault(case: Case, gpu: Gpu, what: str) -> Fail:
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=what,
        impact="Only CUDA gets at the GPU's memory (96 GB and more); numactl and malloc do not.",
        remedy="Nothing, where nobody needs it; else let the kernel online the memory (memhp_default_state).",
        evidence=(
            Evidence(what="NUMA nodes", value=str(len(case.node.numa_nodes)), source="/sys/devices/system/node"),
            Evidence(what="of the GPU", value=str(gpu.memory_numa_node), source="nvidia-smi topo -m"),
        ),
        places=places(case, gpu),
    )
