"""fabric-incomplete."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Fabric, Gpu
from agent.rules.case import Case
from agent.rules.nvlink.fabric import PLACE, by_each, places, registered
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule


@rule(
    "fabric-incomplete",
    "critical",
    needs=("nvml|nvidia_smi",),
    references=("NVL-012",),
    absorbs=("nvlink-path-missing", "fabric-unhealthy", "fabric-clique-mixed", "nvls-unavailable"),
)
def fabric_incomplete(case: Case) -> Iterator[Answer]:
    """A GPU has not completed its registration with the NVLink fabric.

    ## What it checks
    The fabric state of every GPU that has one (Hopper and later, on NVSwitches), and with which status it completed.

    ## Why it matters
    A GPU that is not registered cannot be used: CUDA ends with error 802 or waits. A job of 8 GPUs does not start.

    ## How it is decided
    Not started or in progress 15 minutes after boot and later: error. Completed with another status than success:
    critical.

    ## What keeps it silent
    - "Not supported": cards, GPUs before Hopper, guests without a fabric: not applicable. So is MIG.
    - The host started less than 15 minutes ago, or nobody says how long ago, and registration goes on: unknown.
    - The driver does not tell: unknown.

    ## How to confirm
    `nvidia-smi -q | grep -A4 Fabric`; `tail /var/log/fabricmanager.log`

    ## How to fix
    Restart the fabric manager with all jobs gone, then reset the GPUs. On a rack (GB200, GB300) look at the partitions
    and the state of the switch trays.

    ## Source
    nvml.h (nvmlGpuFabricState, nvmlGpuFabricInfo: status is valid when completed); leptonai/gpud.
    """
    yield from by_each(registered(case), lambda each: _judge(case, *each))


def _judge(case: Case, gpu: Gpu, fabric: Fabric) -> Answer:
    subject = f"gpu:{gpu.id}"
    if fabric.state == "completed":
        if fabric.status is None:
            return Unknown(subject, "completed, and the driver does not say how")
        if fabric.status == "success":
            return Pass(subject)
        return _fault(case, gpu, f"completed with the error {fabric.status}", "critical")
    if case.settling:
        return Unknown(subject, case.settling)
    if case.node.uptime_seconds is None:
        return Unknown(subject, "registration goes on, and how long the host runs is not known")
    return _fault(case, gpu, (fabric.state or "").replace("_", " "), "error")


def _fault(case: Case, gpu: Gpu, what: str, severity: str) -> Fail:
    index = f" -i {gpu.index}" if gpu.index is not None else ""
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"registration with the NVLink fabric: {what}",
        impact="CUDA on it ends with error 802 or waits; jobs that ask for all GPUs do not start.",
        remedy="Read the fabric manager's log; restart it with all jobs gone, then reset the GPUs.",
        evidence=(Evidence(what=f"fabric state of {gpu.label}", value=what, source=f"nvidia-smi -q{index}"),),
        severity=severity,
        cause=what,
        places=places(case, gpu) | {PLACE},
    )
