"""c2c-down."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import C2c, Gpu
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.nvlink.fabric import by_each, places
from agent.rules.nvlink.superchips import superchips
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_SHARE = Threshold("c2c-down.share", 0.97, "bandwidth of all C2C links against what the platform has, 1.0 = all of it")


@rule(
    "c2c-down",
    "critical",
    needs=("nvml|nvidia_smi",),
    references=("NVL-023",),
    absorbs=("c2c-errors",),
    thresholds=(_SHARE,),
)
def c2c_down(case: Case) -> Iterator[Answer]:
    """NVLink-C2C between a Grace CPU and its GPU is off, or lacks links.

    ## What it checks
    Whether C2C is on, the state of each of its links, and their bandwidth together where the platform's is known.

    ## Why it matters
    C2C is the GPU's way to the CPU's memory and to the NICs: 450 GB/s in each direction. Without it everything takes
    the side way of PCIe, at 63 GB/s and less, and the memories are not coherent.

    ## How it is decided
    Off, or every link inactive: critical. Some links inactive, or less than 97 % of the platform's bandwidth: error.

    ## What keeps it silent
    - GPUs without C2C, virtual machines, no driver: not applicable.
    - The driver does not tell: unknown.

    ## How to confirm
    `nvidia-smi c2c -s; nvidia-smi -q | grep C2C`

    ## How to fix
    Power cycle the tray. If it stays, the superchip module is to be replaced.

    ## Source
    nvml.h (nvmlDeviceGetC2cModeInfoV, NVML_FI_DEV_C2C_LINK_GET_STATUS, NVML_FI_DEV_C2C_LINK_GET_MAX_BW).
    """
    yield from by_each(superchips(case), lambda gpu: _judge(case, gpu))


def _judge(case: Case, gpu: Gpu) -> Answer:
    subject, c2c = f"gpu:{gpu.id}", gpu.c2c or C2c()
    if c2c.enabled is False:
        return _fault(case, gpu, "NVLink-C2C is off", "critical")
    dead = [number for number, state in enumerate(c2c.links) if state == "inactive"]
    if dead:
        what = f"C2C links {ranges(dead)} of {len(c2c.links)} inactive"
        return _fault(case, gpu, what, "critical" if len(dead) == len(c2c.links) else "error")
    due = case.profile.c2c_gbyte_s.value if case.profile and case.profile.c2c_gbyte_s else None
    if isinstance(due, int | float) and c2c.max_gbyte_s is not None and c2c.max_gbyte_s < due * case.threshold(_SHARE):
        return _fault(case, gpu, f"C2C carries {c2c.max_gbyte_s:.0f} GB/s, where {due:.0f} are due", "error")
    if c2c.enabled is None or any(state != "active" for state in c2c.links):
        return Unknown(subject, "the driver does not tell the state of C2C")
    return Pass(subject)


def _fault(case: Case, gpu: Gpu, what: str, severity: str) -> Fail:
    states = gpu.c2c.links if gpu.c2c else []
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=what,
        impact="The way to the CPU's memory and to NICs is slower than 450 GB/s in each direction, or takes PCIe.",
        remedy="Power cycle the tray; if it stays, replace the superchip module.",
        evidence=(
            Evidence(what="C2C links", value=", ".join(states) or "none active", source="nvidia-smi c2c -s"),
            Evidence(what="C2C mode", value=str(gpu.c2c and gpu.c2c.enabled), source="nvidia-smi -q"),
        ),
        severity=severity,
        places=places(case, gpu),
    )
