"""imex-channel-denied."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import Service
from agent.rules.case import Case
from agent.rules.nvlink.fabric import PLACE
from agent.rules.nvlink.imex_down import due
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_CHANNEL = "nvidia-caps-imex-channels/channel"


@rule("imex-channel-denied", "warning", needs=("nvml|nvidia_smi", "services"), references=("NVL-020",))
def imex_channel_denied(case: Case) -> Iterator[Answer]:
    """IMEX is configured, and there is no channel device for jobs.

    ## What it checks
    /dev/nvidia-caps-imex-channels, on nodes where IMEX is configured for two nodes or more.

    ## Why it matters
    A job needs a channel to share memory with another node: without any of the up to 2048 of them CUDA ends with
    error 800 (not permitted).

    ## How it is decided
    No channel device is there. Who may open one is not judged: jobs run as users that this tool does not know.

    ## What keeps it silent
    - IMEX of the host is not due (see imex-down): not applicable. It is down: imex-down stands for this one.
    - /dev could not be read: unknown.

    ## How to confirm
    `ls -l /dev/nvidia-caps-imex-channels`

    ## How to fix
    Load the driver with `NVreg_CreateImexChannel0=1`, or let the scheduler make channels for jobs.

    ## Source
    NVIDIA IMEX guide (channels); NCCL documentation (error 800).
    """
    said = due(case)
    yield _judge(case) if isinstance(said, Service) else said


def _judge(case: Case) -> Answer:
    nodes = case.software.device_nodes
    if nodes is None:
        return Unknown("node", "/dev was not read")
    if any(node.startswith(_CHANNEL) for node in nodes):
        return Pass("node")
    return Fail(
        subject="node",
        label="node",
        summary="IMEX is configured, and no channel device is there",
        impact="Jobs cannot share memory with other nodes over NVLink: CUDA error 800.",
        remedy="Load the driver with NVreg_CreateImexChannel0=1, or let the scheduler make channels for jobs.",
        evidence=(Evidence(what="channels", value="none", source="ls /dev/nvidia-caps-imex-channels"),),
        places=frozenset({PLACE}),
    )
