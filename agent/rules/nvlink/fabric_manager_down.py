"""fabric-manager-down."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.nvlink.fabric import MANAGER, PLACE, service, unmanaged
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule


@rule(
    "fabric-manager-down",
    "critical",
    needs=("pci|lspci", "services"),
    references=("NVL-009",),
    absorbs=("nvlink-inactive", "nvlink-path-missing", "fabric-incomplete", "nvls-unavailable"),
)
def fabric_manager_down(case: Case) -> Iterator[Answer]:
    """The fabric manager of an NVSwitch machine does not run.

    ## What it checks
    The service nvidia-fabricmanager, where this host has NVSwitches to manage.

    ## Why it matters
    Without it NVLink between GPUs is not set up: CUDA ends with error 802 (system not yet initialized), and none of
    the 8 GPUs of a board can be used. When it stops, running CUDA jobs are aborted.

    ## How it is decided
    One is due where NVSwitches are PCI functions of the host, and on whole boards of B200 and B300, whose switches are
    hidden. The service is installed and does not run, or is not installed at all.

    ## What keeps it silent
    - No NVSwitch (PCIe cards, four GPUs wired to each other), trays of GB200 and GB300, whose fabric is managed on the
      switch trays, and guests that see no NVSwitch: not applicable. So are switches that wait for a virtual machine.
    - No GPU has an NVIDIA driver: not applicable.
    - The host started less than 15 minutes ago, a container, services that could not be read: unknown.
    - Not installed, and the GPUs are registered with a fabric or reach each other by NVLink all the same: unknown; it
      runs where this host does not show it.

    ## How to confirm
    `systemctl status nvidia-fabricmanager`; `tail /var/log/fabricmanager.log`

    ## How to fix
    `systemctl enable --now nvidia-fabricmanager`; install the version of the driver where it is missing.

    ## Source
    NVIDIA Fabric Manager user guide (error 802, ABORT_CUDA_JOBS_ON_FM_EXIT).
    """
    yield unmanaged(case) or _judge(case)


def _judge(case: Case) -> Answer:
    said = service(case, MANAGER)
    if isinstance(said, Unknown):
        return said
    if said.state == "active":
        return Pass("node")
    if case.settling:
        return Unknown("node", case.settling)
    if said.state == "not_installed" and _set_up(case):
        return Unknown("node", "no such service here, and the fabric is set up all the same: it is managed elsewhere")
    what = "is not installed" if said.state == "not_installed" else f"does not run ({said.state})"
    return Fail(
        subject="node",
        label="node",
        summary=f"{MANAGER} {what}, and this host has NVSwitches",
        impact=f"NVLink between {len(case.topology.gpus)} GPUs is not set up or not kept: CUDA ends with error 802.",
        remedy=f"{_first(case, said.state)}systemctl enable --now {MANAGER}; read /var/log/fabricmanager.log.",
        evidence=(Evidence(what=MANAGER, value=said.state, source=f"systemctl status {MANAGER}"),),
        places=frozenset({PLACE}),
    )


def _first(case: Case, state: str) -> str:
    version = case.software.driver.version
    of = f"version {version}, which is the driver's" if version else "the version of the driver"
    return f"Install {MANAGER} in {of}, then: " if state == "not_installed" else ""


def _set_up(case: Case) -> bool:
    """Only a fabric manager completes a registration, or opens NVLink through switches."""
    if any(gpu.fabric and gpu.fabric.state == "completed" for gpu in case.topology.gpus):
        return True
    peers = (words for gpu in case.topology.gpus for words in (gpu.p2p or {}).values())
    return any(words.get("nvlink") == "OK" for words in peers)
