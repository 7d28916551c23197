"""gdr-bar1-small."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.devices import away, function_of, is_consumer, is_nvidia
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_SMALL = Threshold("gdr-bar1-small.mib", 256, "BAR1 at which a large GPU is as good as unreachable for a NIC, MiB")
_LARGE_MIB = 8192


@rule(
    "gdr-bar1-small",
    "warning",
    needs=("pci|lspci|nvml|nvidia_smi",),
    references=("PCIE-029", "gdr-bar1-small"),
    absorbs=("gpu-siblings-differ",),
    thresholds=(_SMALL,),
)
def gdr_bar1_small(case: Case) -> Iterator[Answer]:
    """A GPU shows NICs only a small window of its memory (BAR1).

    ## What it checks
    BAR1 of every NVIDIA data-centre GPU on a node with rails, against its memory.

    ## Why it matters
    What a NIC shall read or write must fit into that window at once: with 256 MiB of 80 GB the registration of buffers
    fails, or GPUDirect falls back to host memory, about 50 % of the bandwidth between nodes.

    ## How it is decided
    The driver's size of BAR1, else the largest BAR of the function. 256 MiB or less on a GPU with more than 8 GiB:
    warning. Larger, and smaller than the memory: info.

    ## What keeps it silent
    - No rail on this node; GeForce and TITAN cards; GPUs of other vendors; GPUs that sleep or are gone.
    - Virtual GPUs, and GPUs in MIG mode whose function shows no BAR: not applicable.
    - BAR1 or the memory's size is not known, or which NICs are rails: unknown.

    ## How to confirm
    `nvidia-smi -q -d MEMORY | grep -A1 BAR1`; `lspci -vv -s ADDRESS | grep prefetchable`

    ## How to fix
    Switch "above 4G decoding" and resizable BAR on in the BIOS; workstation cards: leave the display mode
    (`displaymodeselector`).

    ## Source
    NVIDIA GPUDirect RDMA documentation, PCI BAR sizes; NVML `nvmlDeviceGetBAR1MemoryInfo`.
    """
    if not case.rails:
        why = None if case.virtual_machine else case.no_rail_known
        yield Unknown("node", why) if why else NotApplicable("node", "no rail")
        return
    for gpu in case.topology.gpus:
        yield _judge(case, gpu)


def _judge(case: Case, gpu: Gpu) -> Answer:
    subject = f"gpu:{gpu.id}"
    if not is_nvidia(case, gpu) or is_consumer(case, gpu):
        return NotApplicable(subject, "no NVIDIA data-centre GPU")
    absent = away(function_of(case, gpu))
    if absent:
        return NotApplicable(subject, absent)
    if "vgpu" in (gpu.virtualization or "").lower():
        return NotApplicable(subject, "a virtual GPU: its window is the hypervisor's")
    size, source = _bar1(case, gpu)
    if size is None:
        if gpu.mig and gpu.mig.current:
            return NotApplicable(subject, "in MIG mode, and its function shows no BAR")
        return Unknown(subject, "the size of BAR1 is not known")
    if gpu.memory_mib is None:
        return Unknown(subject, "the size of its memory is not known")
    if gpu.memory_mib <= _LARGE_MIB or size >= gpu.memory_mib:
        return Pass(subject)
    tiny = size <= case.threshold(_SMALL)
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"BAR1 is {size} MiB; the GPU has {gpu.memory_mib} MiB of memory",
        impact=f"NICs reach {100 * size / gpu.memory_mib:.1f} % of its memory at once: more fails to register.",
        remedy="Switch above 4G decoding and resizable BAR on in the BIOS.",
        evidence=(
            Evidence(what=f"BAR1 of {gpu.label}", value=f"{size} MiB", source=source),
            Evidence(what=f"memory of {gpu.label}", value=f"{gpu.memory_mib} MiB", source="nvidia-smi -q -d MEMORY"),
        ),
        severity=None if tiny else "info",
        cause="tiny" if tiny else "",
        places=frozenset(place for place in (gpu.id, gpu.pci) if place),
    )


def _bar1(case: Case, gpu: Gpu) -> tuple[int | None, str]:
    """MiB, and where it is from. In MIG mode the driver tells of an instance: the function's BAR counts then."""
    if gpu.bar1_mib is not None and not (gpu.mig and gpu.mig.current):
        return gpu.bar1_mib, "nvidia-smi -q -d MEMORY"
    function = function_of(case, gpu)
    bars = [size for number, size in (function.bars_bytes or {}).items() if number != "0"] if function else []
    return (max(bars) >> 20 if bars else None), f"/sys/bus/pci/devices/{gpu.pci}/resource"
