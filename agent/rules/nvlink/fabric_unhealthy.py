"""fabric-unhealthy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.model.finding import SEVERITIES, Evidence
from agent.model.gpu import Fabric, Gpu
from agent.rules.case import Case
from agent.rules.nvlink.fabric import by_each, places, registered
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_FINE = {
    "degraded_bandwidth": "false",
    "route_recovery": "false",
    "route_unhealthy": "false",
    "access_timeout_recovery": "false",
    "incorrect_configuration": "none",
    "partition_assigned": "true",
    "fabric_manager": "connected",
    "summary": "healthy",
}
_WRONG = {  # where NVML's own word does not say it
    "incorrect_sysguid": "its system GUID does not belong here",
    "incorrect_chassis_sn": "its chassis serial number does not belong here",
    "no_partition": "it is in no partition",
    "insufficient_nvlinks": "too few of its NVLinks are up",
    "incompatible_gpu_fw": "its firmware does not fit the fabric",
    "invalid_location": "its place in the rack is not valid",
    "gpu_state_invalid": "its state is not valid",
}
_SEVERITY = {
    "degraded_bandwidth": "error",
    "route_recovery": "warning",
    "route_unhealthy": "critical",
    "access_timeout_recovery": "warning",
    "incorrect_configuration": "critical",
    "partition_assigned": "error",
    "fabric_manager": "error",
}
_SUMMARIES = {"unhealthy": "error", "limited_capacity": "warning"}


@rule("fabric-unhealthy", "critical", needs=("nvml|nvidia_smi",), references=("NVL-013",))
def fabric_unhealthy(case: Case) -> Iterator[Answer]:
    """The driver calls a GPU's place in the NVLink fabric unhealthy.

    ## What it checks
    Every field of the fabric health that the driver tells, and its summary, of GPUs that completed registration.

    ## Why it matters
    An unhealthy route cuts a GPU off from its peers: it falls from 450 GB/s and more of NVLink to the 63 GB/s of its
    PCIe link, or its jobs end with an error. Degraded bandwidth slows every collective that it takes part in.

    ## How it is decided
    Route unhealthy, incorrect configuration: critical. Degraded bandwidth, no partition assigned, fabric manager
    disconnected, summary unhealthy: error. A recovery under way, limited capacity: warning. What several fields say of
    one GPU is one finding, as grave as its gravest.

    ## What keeps it silent
    - Registration is not completed: fabric-incomplete speaks of it. MIG, no fabric: not applicable.
    - A field that is not supported says nothing. All of them not supported, as on HGX boards: not applicable.
    - A word that a newer driver made up: unknown.

    ## How to confirm
    `nvidia-smi -q | grep -A12 Fabric`

    ## How to fix
    Read the logs of fabric manager and switches. Incorrect configuration says what does not fit: chassis, firmware,
    location, partition. Reset the GPU, then power cycle the tray.

    ## Source
    nvml.h (NVML_GPU_FABRIC_HEALTH_MASK_*, nvmlGpuFabricInfo_v3).
    """
    yield from by_each(registered(case), lambda each: _judge(case, *each))


def _judge(case: Case, gpu: Gpu, fabric: Fabric) -> Answer:
    subject = f"gpu:{gpu.id}"
    if fabric.state != "completed":
        return NotApplicable(subject, "registration is not completed: see fabric-incomplete")
    said = {name: word for name, word in fabric.health.items() if word != "not_supported" and name in _FINE}
    if not said:
        return NotApplicable(subject, "the driver tells no fabric health here")
    bad = {name: word for name, word in said.items() if word != _FINE[name] and not word.startswith("unknown")}
    if bad:
        return _fault(case, gpu, bad)
    strange = [f"{name} {word}" for name, word in said.items() if word.startswith("unknown")]
    return Unknown(subject, f"a newer driver's word: {', '.join(strange)}") if strange else Pass(subject)


def _fault(case: Case, gpu: Gpu, bad: Mapping[str, str]) -> Fail:
    index = f" -i {gpu.index}" if gpu.index is not None else ""
    details = {name: word for name, word in bad.items() if name != "summary"} or bad
    grave = [_SEVERITY.get(name) or _SUMMARIES.get(word, "warning") for name, word in bad.items()]
    said = ", ".join(_words(name, word) for name, word in sorted(details.items()))
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"NVLink fabric: {said}",
        impact="Traffic with its peers is slower than its NVLinks, takes PCIe, or ends with an error; "
        "collectives of all GPUs wait for it.",
        remedy="Read the logs of fabric manager and switches; reset the GPU; power cycle where it stays.",
        evidence=tuple(
            Evidence(what=name.replace("_", " "), value=word, source=f"nvidia-smi -q{index}")
            for name, word in sorted(bad.items())
        ),
        severity=max(grave, key=SEVERITIES.index),
        cause=",".join(sorted(details)),
        places=places(case, gpu),
    )


def _words(name: str, word: str) -> str:
    if (name, word) == ("partition_assigned", "false"):
        return "no partition is assigned"
    if name == "incorrect_configuration":
        return f"wrongly set up: {_WRONG.get(word, word.replace('_', ' '))}"
    plain = name.replace("_", " ")
    return plain if word == "true" else f"{plain} {word.replace('_', ' ')}"
