"""fabric-manager-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nvlink.fabric import MANAGER, PLACE, service, unmanaged
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule(
    "fabric-manager-mismatch",
    "critical",
    needs=("services", "nvml|nvidia_smi|modules"),
    references=("NVL-010",),
    absorbs=("fabric-manager-down", "fabric-incomplete"),
)
def fabric_manager_mismatch(case: Case) -> Iterator[Answer]:
    """Fabric manager and GPU driver are of different versions.

    ## What it checks
    The version of the installed fabric manager against that of the loaded driver, on hosts that have NVSwitches.

    ## Why it matters
    The fabric manager refuses a driver of another version, to the last of its 3 numbers: it ends at once, and no GPU
    of the board can be used (CUDA error 802). An update that left one package behind shows at the next start.

    ## How it is decided
    The versions must be equal. One that still runs is a warning: it will not start again.

    ## What keeps it silent
    - No fabric manager is due here (see fabric-manager-down), or none is installed: not applicable.
    - Either version is not known: unknown.
    - Open or proprietary driver makes no difference.

    ## How to confirm
    `nv-fabricmanager --version; cat /proc/driver/nvidia/version`

    ## How to fix
    Install the fabric manager of the driver's version and hold both packages at one version; or reboot, where the
    driver was updated and the old one is still loaded.

    ## Source
    NVIDIA Fabric Manager user guide (the versions must match exactly).
    """
    yield unmanaged(case) or _judge(case)


def _judge(case: Case) -> Answer:
    said = service(case, MANAGER)
    if isinstance(said, Unknown):
        return said
    if said.state == "not_installed":
        return NotApplicable("node", f"{MANAGER} is not installed: see fabric-manager-down")
    driver = case.software.driver.version
    if not said.version or not driver:
        return Unknown("node", f"the version of {'the driver' if said.version else MANAGER} is not known")
    if said.version == driver:
        return Pass("node")
    running = said.state == "active"
    return Fail(
        subject="node",
        label="node",
        summary=f"fabric manager {said.version}, driver {driver}: they must be equal",
        impact=f"{'At its next start the' if running else 'The'} fabric manager ends, and none of "
        f"{len(case.topology.gpus)} GPUs can be used (CUDA error 802).",
        remedy="Install the fabric manager of the driver's version, or reboot into the driver that is installed.",
        evidence=(
            Evidence(what="fabric manager", value=said.version, source="nv-fabricmanager --version"),
            Evidence(what="driver", value=driver, source="/proc/driver/nvidia/version"),
            Evidence(what=MANAGER, value=said.state, source=f"systemctl status {MANAGER}"),
        ),
        severity="warning" if running else "critical",
        places=frozenset({PLACE}),
    )
