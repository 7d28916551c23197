"""gdr-ibgda-regkey."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nccl.hcas import NODE
from agent.rules.nccl.settings import effective, number
from agent.rules.nccl.users import evidence, mapped, unused
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_NEW_DRIVER = 570  # from here on NVSHMEM was seen to work without
_KEY = "NVSHMEM_IB_ENABLE_IBGDA"


@rule("gdr-ibgda-regkey", "info", needs=("nccl", "modules|lsmod"), references=("gdr-ibgda-regkey",))
def gdr_ibgda_regkey(case: Case) -> Iterator[Answer]:
    """Jobs let GPUs drive the NIC (IBGDA), and the driver is not set up for it.

    ## What it checks
    Running jobs that have NVSHMEM mapped and set `NVSHMEM_IB_ENABLE_IBGDA`; and the parameters of the NVIDIA driver.

    ## Why it matters
    IBGDA maps the NIC's doorbells into the GPU. Without `PeerMappingOverride=1` that fails, and NVSHMEM (DeepEP) ends
    or takes its proxy on the CPU, which sends a tenth of the small messages.

    ## How it is decided
    A job asks for it, the driver is older than 570, and its `RegistryDwords` lack `PeerMappingOverride=1`.

    ## What keeps it silent
    - No job with NVSHMEM asks for IBGDA; a driver of 570 or later: not applicable.
    - `NVSHMEM_IBGDA_NIC_HANDLER=cpu`, with which the CPU rings the doorbell: passes.
    - The driver's parameters, or jobs, could not be seen: unknown.

    ## How to confirm
    `grep -E 'RegistryDwords|EnableStreamMemOPs' /proc/driver/nvidia/params`

    ## How to fix
    `options nvidia NVreg_EnableStreamMemOPs=1 NVreg_RegistryDwords="PeerMappingOverride=1;"` in `/etc/modprobe.d/`,
    then load the driver anew.

    ## Source
    NVSHMEM installation guide (IBGDA transport); DeepEP, NVSHMEM guide.
    """
    users = mapped(case, "libnvshmem")
    asked = [
        each for each in effective(case, _KEY) if number(each.value) or each.value.lower() in ("true", "yes", "on")
    ]
    by_cpu = [each for each in effective(case, "NVSHMEM_IBGDA_NIC_HANDLER") if each.value.lower() == "cpu"]
    parameters, version = case.software.driver.parameters, case.software.driver.version or ""
    if not case.topology.gpus or not users or not asked:
        yield from unused(case, "NVSHMEM's IBGDA")
    elif (number(version) or 0) >= _NEW_DRIVER:
        yield NotApplicable("node", f"driver {version}, with which it works without")
    elif "RegistryDwords" not in parameters:
        yield Unknown("node", "the driver's parameters were not read")
    elif by_cpu or "PeerMappingOverride=1" in parameters["RegistryDwords"].replace(" ", ""):
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="jobs use NVSHMEM's IBGDA, and the driver runs without PeerMappingOverride=1",
            impact="GPUs cannot drive the NIC: NVSHMEM ends, or sends 10 % of the small messages by its proxy.",
            remedy='Set NVreg_RegistryDwords="PeerMappingOverride=1;" for the nvidia module and load it anew.',
            evidence=(
                *evidence(users),
                *(each.evidence(_KEY) for each in asked[:4]),
                Evidence(
                    what="RegistryDwords",
                    value=parameters["RegistryDwords"] or "empty",
                    source="/proc/driver/nvidia/params",
                ),
            ),
            places=NODE,
        )
