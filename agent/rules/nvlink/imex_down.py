"""imex-down."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import Service
from agent.rules.case import Case
from agent.rules.nvlink.fabric import IMEX, PLACE, cluster, service
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_FINE = frozenset({"READY", "UNAVAILABLE"})
_JOINING = "DEGRADED"
_DIGITS = 9  # of a number of nodes that can be one


@rule(
    "imex-down",
    "error",
    needs=("nvml|nvidia_smi", "services"),
    references=("NVL-019",),
    absorbs=("imex-channel-denied",),
)
def imex_down(case: Case) -> Iterator[Answer]:
    """IMEX is configured on this node of an NVLink rack and does not run.

    ## What it checks
    The service nvidia-imex and the state of its daemon, on nodes whose GPUs are in an NVLink domain of several nodes.

    ## Why it matters
    Without it no memory is shared over NVLink between the up to 18 trays of a rack: NCCL falls back from 900 GB/s of
    NVLink to the network, or jobs that ask for it end with an error.

    ## How it is decided
    Its configuration names two nodes or more: then the service must run, and its daemon be ready. Degraded, as while
    other nodes join, is a warning.

    ## What keeps it silent
    - The GPUs are in no cluster of several nodes; IMEX is not installed, or names no other node: not applicable. A
      scheduler (Kubernetes) runs it in containers for each job, and the service of the host stays off.
    - The host started less than 15 minutes ago, a container, a state that could not be read: unknown.

    ## How to confirm
    `systemctl status nvidia-imex; nvidia-imex-ctl -N`

    ## How to fix
    `systemctl enable --now nvidia-imex` on every node of the domain, with the same nodes_config.cfg and one version.

    ## Source
    NVIDIA IMEX guide; NCCL documentation (multi-node NVLink); DCGM (states that are healthy).
    """
    said = due(case)
    yield _judge(case, said) if isinstance(said, Service) else said


def due(case: Case) -> Service | Answer:
    """The service of the host where IMEX is due; else why it is not."""
    if not any(cluster(gpu) for gpu in case.topology.gpus):
        if unread := case.probe_failure("nvml|nvidia_smi"):
            return Unknown("node", unread) if case.topology.gpus else NotApplicable("node", "no GPU")
        return NotApplicable("node", "its GPUs are in no NVLink domain of several nodes")
    if case.node.container:
        return Unknown("node", "a container does not show the services of its host")
    said = service(case, IMEX)
    if isinstance(said, Unknown):
        return said
    if said.state == "not_installed":
        return NotApplicable("node", "IMEX is not installed: no memory is shared with other nodes")
    nodes = case.software.imex.get("nodes_config")
    if nodes is None or not nodes.isdecimal() or len(nodes) > _DIGITS:
        return Unknown("node", "whether IMEX is configured is not known: nodes_config.cfg was not read")
    if int(nodes) < 2:
        return NotApplicable("node", "IMEX names no other node: a scheduler runs it, or nobody needs it")
    return said


def _judge(case: Case, said: Service) -> Answer:
    state = case.software.imex.get("node")
    if said.state == "active" and state is None:
        return Unknown("node", "IMEX runs, and does not tell its state")
    if said.state == "active" and state in _FINE:
        return Pass("node")
    if case.settling:
        return Unknown("node", case.settling)
    what = f"its daemon is {state}" if said.state == "active" else f"the service is {said.state}"
    return Fail(
        subject="node",
        label="node",
        summary=f"IMEX is configured for {case.software.imex['nodes_config']} nodes, and {what}",
        impact="No memory is shared over NVLink with other nodes: 900 GB/s fall to the network, or jobs end.",
        remedy="systemctl enable --now nvidia-imex on all nodes of the domain; one configuration and one version.",
        evidence=(
            Evidence(what=IMEX, value=said.state, source=f"systemctl status {IMEX}"),
            Evidence(what="daemon", value=state or "no answer", source="nvidia-imex-ctl -q"),
        ),
        severity="warning" if said.state == "active" and state == _JOINING else "error",
        cause=what,
        places=frozenset({PLACE}),
    )
