"""gpu-p2p-blocked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import away, function_of, is_nvidia, model_of, no_gpu
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_CONSUMER = re.compile(r"GeForce|TITAN", re.IGNORECASE)
_BY_REGISTRY = "DR"
_NEAR = ("PIX", "PXB")
_WORDS = {
    "DR": "switched off by a registry key of the driver",
    "CNS": "the driver does not allow it on this chipset",
    "GNS": "the driver does not allow it on this GPU",
    "TNS": "the driver does not allow it over this topology",
    "NS": "not supported",
}


@rule("gpu-p2p-blocked", "error", needs=("nvml|nvidia_smi",), references=("NVL-017",), absorbs=("nvlink-path-missing",))
def gpu_p2p_blocked(case: Case) -> Iterator[Answer]:
    """The driver lets two GPUs not reach each other's memory, although they are joined.

    ## What it checks
    The P2P status (read and write) of every pair of GPUs of one model that NVLink or a PCIe switch joins, and of any
    pair whether a registry key switched P2P off.

    ## Why it matters
    Without P2P a copy between two GPUs goes through the CPU's memory: it crosses PCIe twice, and NCCL gets 10 to 20
    GB/s where 50 (PCIe 5) or 450 (NVLink 4) would be.

    ## How it is decided
    Read or write between them is anything but OK. GeForce and TITAN cards are so by the driver's choice: info.

    ## What keeps it silent
    - Pairs over host bridges or sockets: whether the chipset allows P2P is not the node's fault: not applicable.
    - GPUs of different models, MIG, vGPUs, confidential computing, no driver, one GPU: not applicable. Pairs over PCIe
      in a virtual machine: not applicable.
    - The driver does not tell, or says unknown: unknown.
    - NVLinks that are down: nvlink-inactive stands for this one.

    ## How to confirm
    `nvidia-smi topo -p2p r; nvidia-smi topo -p2p w; grep RegistryDwords /proc/driver/nvidia/params`

    ## How to fix
    DR: take the key (ForceP2P and its kin) out of the options of the module nvidia, and reload it. Else look
    for what the driver dislikes: firmware of GPU and switch, ACS, driver version.

    ## Source
    NVIDIA open-gpu-kernel-modules (p2p_caps.c); NVML nvmlDeviceGetP2PStatus.
    """
    yield from no_gpu(case)
    if case.software.driver.confidential_computing:
        yield NotApplicable("node", "confidential computing: the driver closes P2P between GPUs")
        return
    able = []
    for gpu in case.topology.gpus:
        why = _unable(case, gpu)
        if why:
            yield NotApplicable(f"gpu:{gpu.id}", why)
        else:
            able.append(gpu)
    if len(able) == 1:
        yield NotApplicable(f"gpu:{able[0].id}", "no other GPU")
    kinds = {frozenset((path.a, path.b)): path.kind for path in case.topology.paths}
    blocked: dict[str, list[tuple[Gpu, Gpu]]] = {}
    for a, b in combinations(able, 2):
        answer = _pair(case, a, b, kinds.get(frozenset((a.id, b.id))))
        if isinstance(answer, str):
            blocked.setdefault(answer, []).append((a, b))
        else:
            yield answer
    for word, pairs in sorted(blocked.items()):
        yield from _faults(word, pairs)


def _unable(case: Case, gpu: Gpu) -> str | None:
    if not is_nvidia(case, gpu):
        return "not of NVIDIA: its driver is not asked"
    if absent := away(function_of(case, gpu)):
        return absent
    if gpu.driver_state != "open" and not (gpu.driver_state == "unknown" and gpu.p2p):
        return "the driver does not offer it"
    if gpu.mig and gpu.mig.current:
        return "MIG is on: there is no P2P between GPUs"
    return "a vGPU" if gpu.virtualization in ("vgpu", "host_vgpu", "vsga") else None


def _pair(case: Case, a: Gpu, b: Gpu, kind: str | None) -> Answer | str:
    """The word of a pair that is blocked, or the answer."""
    subject = f"pair:{a.id}+{b.id}"
    if model_of(case, a) != model_of(case, b):
        return NotApplicable(subject, "GPUs of different models")
    said = [(one.p2p or {}).get(other.id, {}).get(way) for one, other in ((a, b), (b, a)) for way in ("read", "write")]
    by_nvlink = (kind or "").startswith("NV")
    if _BY_REGISTRY in said:
        return _BY_REGISTRY
    if case.virtual_machine and not by_nvlink:
        return NotApplicable(subject, "over PCIe in a virtual machine: the hypervisor decides")
    if kind is not None and not by_nvlink and kind not in _NEAR:
        return NotApplicable(subject, f"{kind}: whether the chipset allows P2P is not this node's fault")
    bad = [word for word in said if word in _WORDS]
    if kind is None and bad:
        return Unknown(subject, "how they are joined is not known")
    if bad:
        return bad[0]
    return (
        Pass(subject) if said[0] == "OK" and set(said) <= {"OK", None} else Unknown(subject, "the driver does not tell")
    )


def _faults(word: str, pairs: Sequence[tuple[Gpu, Gpu]]) -> Iterator[Fail]:
    """All pairs as one, pairs of one GPU as one, others each alone."""
    shared = [gpu for gpu in pairs[0] if len(pairs) > 1 and all(gpu.id in (a.id, b.id) for a, b in pairs)]
    if shared:
        yield _fault(word, pairs, f"gpu:{shared[0].id}", shared[0].label, {shared[0].id, shared[0].pci or ""})
    elif len(pairs) > 1:
        ends = {gpu.id for pair in pairs for gpu in pair}
        yield _fault(word, pairs, "node", "node", ends)
    else:
        a, b = pairs[0]
        yield _fault(word, pairs, f"pair:{a.id}+{b.id}", f"{a.label} - {b.label}", {a.id, b.id})


def _fault(word: str, pairs: Sequence[tuple[Gpu, Gpu]], subject: str, label: str, ends: set[str]) -> Fail:
    labels = [f"{a.label} - {b.label}" for a, b in pairs]
    consumer = all(_CONSUMER.search(gpu.name or "") for pair in pairs for gpu in pair)
    return Fail(
        subject=subject,
        label=label,
        summary=f"P2P blocked between {named(labels)}: {_WORDS[word]} ({word})",
        impact="Copies between them go through the CPU's memory: 10 to 20 GB/s where PCIe 5 has 50, NVLink 4 has 450.",
        remedy="Take the key (RegistryDwords) out of the options of the module nvidia in /etc/modprobe.d, and reboot."
        if word == _BY_REGISTRY
        else "Compare the versions of driver, GPU and switch firmware with those of a good node; look at ACS.",
        evidence=tuple(Evidence(what=text, value=word, source="nvidia-smi topo -p2p r") for text in labels[:8]),
        severity="info" if consumer else "error",
        cause=word,
        places=frozenset(ends),
    )
