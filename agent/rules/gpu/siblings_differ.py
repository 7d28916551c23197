"""gpu-siblings-differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.counting import majority, named
from agent.rules.devices import away, function_of, model_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_SOURCES = {
    "VBIOS": "nvidia-smi -q | grep VBIOS",
    "BAR1": "nvidia-smi -q -d MEMORY",
    "subsystem": "lspci -nnv -s ADDRESS",
}


@rule("gpu-siblings-differ", "info", needs=("pci|lspci|nvml|nvidia_smi",), references=("PCIE-030",))
def gpu_siblings_differ(case: Case) -> Iterator[Answer]:
    """GPUs of one product differ in VBIOS, BAR1 or board.

    ## What it checks
    GPUs of one device id on this node: VBIOS version, size of BAR1, subsystem id.

    ## Why it matters
    1 exchanged GPU with an older VBIOS or another board behaves differently under power and clock limits, and is a good
    suspect where one rank is slow.

    ## How it is decided
    Each value is compared among the GPUs of one product. The odd ones out are named in one finding for each product and
    kind of value. It is information: repaired nodes often are so.

    ## What keeps it silent
    - One GPU of a product alone; virtual GPUs; BAR1 of GPUs in MIG mode; GPUs that sleep or are gone.
    - A value that is known of fewer than two GPUs: unknown.

    ## How to confirm
    `nvidia-smi --query-gpu=index,vbios_version,pci.sub_device_id --format=csv`

    ## How to fix
    Bring the GPUs to one firmware bundle; note the exchanged board.

    ## Source
    NVML `nvmlDeviceGetVbiosVersion`, `nvmlDeviceGetBAR1MemoryInfo`.
    """
    families: dict[str, list[Gpu]] = defaultdict(list)
    for gpu in sorted(case.topology.gpus, key=lambda each: each.id):
        virtual = "vgpu" in (gpu.virtualization or "").lower()
        if away(function_of(case, gpu)) or virtual or not model_of(case, gpu):
            yield NotApplicable(f"gpu:{gpu.id}", "a virtual GPU, not awake, or of an unknown product")
        else:
            families[model_of(case, gpu)].append(gpu)
    for model in sorted(families):
        if len(families[model]) < 2:
            yield NotApplicable(f"gpu:{families[model][0].id}", "the only GPU of its product")
        else:
            yield from _compared(case, families[model])


def _compared(case: Case, family: list[Gpu]) -> Iterator[Answer]:
    failed = unread = False
    for what in _SOURCES:
        known = {gpu.id: value for gpu in family if (value := _value(case, gpu, what)) is not None}
        unread = unread or len(known) < 2
        if len(set(known.values())) > 1:
            failed = True
            yield _fault(family, what, known)
    for gpu in family if not failed else ():
        subject = f"gpu:{gpu.id}"
        yield Unknown(subject, "VBIOS, BAR1 or subsystem is not known of two GPUs") if unread else Pass(subject)


def _value(case: Case, gpu: Gpu, what: str) -> str | None:
    if what == "VBIOS":
        return gpu.vbios
    if what == "BAR1":
        sliced = gpu.mig is not None and bool(gpu.mig.current)
        return None if sliced or gpu.bar1_mib is None else f"{gpu.bar1_mib} MiB"
    function = function_of(case, gpu)
    if function is None or function.subsystem_device is None:
        return None
    return f"{function.subsystem_vendor}:{function.subsystem_device}"


def _fault(family: list[Gpu], what: str, known: dict[str, str]) -> Fail:
    usual = majority(known.values())
    odd = [gpu for gpu in family if gpu.id in known and known[gpu.id] != usual]
    alone = len(odd) == 1  # without a majority two are odd at least
    return Fail(
        subject=f"gpu:{odd[0].id}" if alone else "node",
        label=odd[0].label if alone else "node",
        summary=f"{what} differs among {len(family)} GPUs of one product: "
        + "; ".join(
            f"{value} on {named([gpu.label for gpu in family if known.get(gpu.id) == value])}"
            for value in sorted(set(known.values()))
        ),
        impact=f"{len(odd)} of {len(family)} GPUs may behave differently: a suspect where one rank is slow.",
        remedy="Bring the GPUs to one firmware bundle; note the exchanged board.",
        evidence=tuple(
            Evidence(what=f"{what} of {gpu.label}", value=known[gpu.id], source=_SOURCES[what])
            for gpu in family
            if gpu.id in known
        ),
        cause=what,
        places=frozenset(gpu.id for gpu in odd),
    )
