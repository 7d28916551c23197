"""The services that an NVLink fabric needs: fabric manager and IMEX."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import Service
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.nvlink.fabric import (
    IMEX,
    MANAGER,
    PLACE,
    find_service,
    lacks_umad,
    multi_node_domain,
    unmanaged_reason,
)
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels


@rule("fabric-manager-down")
def fabric_manager_down(case: RuleContext) -> Iterator[Result]:
    yield unmanaged_reason(case) or _judge_manager_down(case)


def _judge_manager_down(case: RuleContext) -> Result:
    service = find_service(case, MANAGER)
    if isinstance(service, Unknown):
        return service
    if service.state == "active":
        return Pass("node")
    if case.settling:
        return Unknown("node", case.settling)
    if service.state == "not_installed" and _is_fabric_set_up(case):
        return Unknown(
            "node",
            Reason(
                "undecided",
                detail="no such service here, and the fabric is set up all the same: it is managed elsewhere",
            ),
        )
    what = "is not installed" if service.state == "not_installed" else f"does not run ({service.state})"
    lacking = lacks_umad(case)
    return Fail(
        subject="node",
        label="node",
        summary=f"{MANAGER} {what}, and this host has NVSwitches"
        + ("; ib_umad is not loaded, which it needs" if lacking else ""),
        impact=f"NVLink between {len(case.topology.gpus)} GPUs is not set up or not kept: CUDA ends with error 802.",
        remedy=("Load ib_umad, also at boot (/etc/modules-load.d). " if lacking else "")
        + f"{_first_state(case, service.state)}`systemctl enable --now {MANAGER}`. Read /var/log/fabricmanager.log.",
        evidence=(
            Evidence(what=MANAGER, value=service.state, source=f"systemctl status {MANAGER}"),
            *_management_evidence(case),
        ),
        situation="" if case.topology.nvswitches else "hidden-switches",
        places=frozenset({PLACE}),
    )


def _describe_umad(case: RuleContext) -> str:
    if any(module.name == "ib_umad" for module in case.software.modules):
        return "loaded"
    return "not loaded" if lacks_umad(case) else "not known"


def _management_evidence(case: RuleContext) -> tuple[Evidence, ...]:
    """What the subnet manager of hidden switches needs: ib_umad and the functions of a ConnectX-7."""
    if case.topology.nvswitches:
        return ()
    owned = join_labels([nic.label for nic in case.topology.nics if nic.limited])
    return (
        Evidence(what="ib_umad", value=_describe_umad(case), source="/proc/modules"),
        Evidence(what="management functions (ConnectX-7)", value=owned or "none recognized", source="lspci -d 15b3:"),
    )


def _first_state(case: RuleContext, state: str) -> str:
    version = case.software.driver.version
    of = f"version {version}, which is the driver's" if version else "the version of the driver"
    return f"Install {MANAGER} in {of}, then start it: " if state == "not_installed" else "Start it: "


def _is_fabric_set_up(case: RuleContext) -> bool:
    """Only a fabric manager completes a registration, or opens NVLink through switches."""
    if any(gpu.fabric and gpu.fabric.state == "completed" for gpu in case.topology.gpus):
        return True
    peers = (words for gpu in case.topology.gpus for words in (gpu.p2p or {}).values())
    return any(words.get("nvlink") == "OK" for words in peers)


@rule("fabric-manager-mismatch")
def fabric_manager_mismatch(case: RuleContext) -> Iterator[Result]:
    yield unmanaged_reason(case) or _judge_manager_mismatch(case)


def _judge_manager_mismatch(case: RuleContext) -> Result:
    service = find_service(case, MANAGER)
    if isinstance(service, Unknown):
        return service
    if service.state == "not_installed":
        return NotApplicable(
            "node", Reason("judged-elsewhere", detail=f"{MANAGER} is not installed: see fabric-manager-down")
        )
    driver = case.software.driver.version
    if not service.version or not driver:
        return Unknown(
            "node",
            Reason("not-shown", detail=f"the version of {'the driver' if service.version else MANAGER} is not known"),
        )
    if service.version == driver:
        return Pass("node")
    running = service.state == "active"
    return Fail(
        subject="node",
        label="node",
        summary=f"fabric manager {service.version}, driver {driver}: they must be equal",
        impact=f"{'At its next start the' if running else 'The'} fabric manager ends, and none of "
        f"{len(case.topology.gpus)} GPUs can be used (CUDA error 802).",
        evidence=(
            Evidence(what="fabric manager", value=service.version, source="nv-fabricmanager --version"),
            Evidence(what="driver", value=driver, source="/proc/driver/nvidia/version"),
            Evidence(what=MANAGER, value=service.state, source=f"systemctl status {MANAGER}"),
        ),
        severity="warning" if running else "critical",
        places=frozenset({PLACE}),
    )


_FINE = frozenset({"READY", "UNAVAILABLE"})
_JOINING = "DEGRADED"
_DIGITS = 9  # of a number of nodes that can be one


@rule("imex-down")
def imex_down(case: RuleContext) -> Iterator[Result]:
    service = imex_service(case)
    yield _judge_imex_down(case, service) if isinstance(service, Service) else service


def imex_service(case: RuleContext) -> Service | Result:
    """The service of the host where IMEX is due; else why it is not."""
    if not any(multi_node_domain(gpu) for gpu in case.topology.gpus):
        if unread := case.probe_failure("gpu"):
            return (
                Unknown("node", unread)
                if case.topology.gpus
                else NotApplicable("node", Reason("no-such-device", detail="no GPU"))
            )
        return NotApplicable("node", Reason("other-kind", detail="its GPUs are in no NVLink domain of several nodes"))
    if case.node.container:
        return Unknown("node", Reason("container-hides", detail="a container does not show the services of its host"))
    service = find_service(case, IMEX)
    if isinstance(service, Unknown):
        return service
    if service.state == "not_installed":
        return NotApplicable(
            "node", Reason("not-configured", detail="IMEX is not installed: no memory is shared with other nodes")
        )
    nodes = case.software.imex.get("nodes_config")
    if nodes is None or not nodes.isdecimal() or len(nodes) > _DIGITS:
        return Unknown(
            "node", Reason("not-shown", detail="whether IMEX is configured is not known: nodes_config.cfg was not read")
        )
    if int(nodes) < 2:
        return NotApplicable(
            "node",
            Reason("nothing-to-compare", detail="IMEX names no other node: a scheduler runs it, or no job needs it"),
        )
    return service


def _judge_imex_down(case: RuleContext, service: Service) -> Result:
    state = case.software.imex.get("node")
    if service.state == "active" and state is None:
        return Unknown("node", Reason("not-shown", detail="IMEX runs, and does not report its state"))
    if service.state == "active" and state in _FINE:
        return Pass("node")
    if case.settling:
        return Unknown("node", case.settling)
    what = f"its daemon is {state}" if service.state == "active" else f"the service is {service.state}"
    return Fail(
        subject="node",
        label="node",
        summary=f"IMEX is configured for {case.software.imex['nodes_config']} nodes, and {what}",
        impact="No memory is shared over NVLink with other nodes: the network replaces 900 GB/s, or jobs end.",
        evidence=(
            Evidence(what=IMEX, value=service.state, source=f"systemctl status {IMEX}"),
            Evidence(what="daemon", value=state or "no answer", source="nvidia-imex-ctl -q"),
        ),
        severity="warning" if service.state == "active" and state == _JOINING else "error",
        cause=what,
        places=frozenset({PLACE}),
    )


_CHANNEL = "nvidia-caps-imex-channels/channel"


@rule("imex-channel-denied")
def imex_channel_denied(case: RuleContext) -> Iterator[Result]:
    service = imex_service(case)
    yield _judge_imex_channel_denied(case) if isinstance(service, Service) else service


def _judge_imex_channel_denied(case: RuleContext) -> Result:
    nodes = case.software.device_nodes
    if nodes is None:
        return Unknown("node", Reason("not-shown", detail="/dev was not read"))
    if any(node.startswith(_CHANNEL) for node in nodes):
        return Pass("node")
    return Fail(
        subject="node",
        label="node",
        summary="IMEX is configured, and no channel device is there",
        impact="Jobs cannot share memory with other nodes over NVLink: CUDA error 800.",
        evidence=(Evidence(what="channels", value="none", source="ls /dev/nvidia-caps-imex-channels"),),
        places=frozenset({PLACE}),
    )
