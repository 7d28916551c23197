"""The services that an NVLink fabric needs: fabric manager and IMEX."""

from __future__ import annotations

from agent.model.finding import Evidence
from agent.model.node import Service
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
from agent.rules.rule import NODE, Result, Unknown, rule
from agent.rules.wording import join_labels


@rule("fabric-manager-down")
def fabric_manager_down(context: RuleContext) -> Result:
    if answer := unmanaged_reason(context):
        return answer
    service = find_service(context, MANAGER)
    if isinstance(service, Unknown):
        return service
    if service.state == "active":
        return NODE.passes()
    if context.why_settling:
        return NODE.unknown(context.why_settling)
    if service.state == "not_installed" and _is_fabric_set_up(context):
        return NODE.unknown(
            "undecided", detail="no such service here, and the fabric is set up all the same: it is managed elsewhere"
        )
    what = "is not installed" if service.state == "not_installed" else f"does not run ({service.state})"
    lacking = lacks_umad(context)
    return NODE.fail(
        summary=f"{MANAGER} {what}, and this host has NVSwitches"
        + ("; ib_umad is not loaded, which it needs" if lacking else ""),
        impact=f"NVLink between {len(context.topology.gpus)} GPUs is not set up or not kept: CUDA ends with error 802.",
        remedy=("Load ib_umad, also at boot (/etc/modules-load.d). " if lacking else "")
        + f"{_first_state(context, service.state)}`systemctl enable --now {MANAGER}`. Read /var/log/fabricmanager.log.",
        evidence=(Evidence(MANAGER, service.state, f"systemctl status {MANAGER}"), *_management_evidence(context)),
        situation="" if context.topology.nvswitches else "hidden-switches",
        ids=frozenset({PLACE}),
    )


def _describe_umad(context: RuleContext) -> str:
    if any(module.name == "ib_umad" for module in context.software.modules):
        return "loaded"
    return "not loaded" if lacks_umad(context) else "not known"


def _management_evidence(context: RuleContext) -> tuple[Evidence, ...]:
    """What the subnet manager of hidden switches needs: ib_umad and the functions of a ConnectX-7."""
    if context.topology.nvswitches:
        return ()
    owned = join_labels([nic.label for nic in context.topology.nics if nic.limited])
    return (
        Evidence("ib_umad", _describe_umad(context), "/proc/modules"),
        Evidence("management functions (ConnectX-7)", owned or "none recognized", "lspci -d 15b3:"),
    )


def _first_state(context: RuleContext, state: str) -> str:
    version = context.software.driver.version
    of = f"version {version}, which is the driver's" if version else "the version of the driver"
    return f"Install {MANAGER} in {of}, then start it: " if state == "not_installed" else "Start it: "


def _is_fabric_set_up(context: RuleContext) -> bool:
    """Only a fabric manager completes a registration, or opens NVLink through switches."""
    if any(gpu.fabric and gpu.fabric.state == "completed" for gpu in context.topology.gpus):
        return True
    peers = (words for gpu in context.topology.gpus for words in (gpu.p2p or {}).values())
    return any(words.get("nvlink") == "OK" for words in peers)


@rule("fabric-manager-mismatch")
def fabric_manager_mismatch(context: RuleContext) -> Result:
    if answer := unmanaged_reason(context):
        return answer
    service = find_service(context, MANAGER)
    if isinstance(service, Unknown):
        return service
    if service.state == "not_installed":
        return NODE.not_applicable("judged-elsewhere", detail=f"{MANAGER} is not installed: see fabric-manager-down")
    driver = context.software.driver.version
    if not service.version or not driver:
        return NODE.unknown(
            "not-shown", detail=f"the version of {'the driver' if service.version else MANAGER} is not known"
        )
    if service.version == driver:
        return NODE.passes()
    running = service.state == "active"
    return NODE.fail(
        summary=f"fabric manager {service.version}, driver {driver}: they must be equal",
        impact=f"{'At its next start the' if running else 'The'} fabric manager ends, and none of "
        f"{len(context.topology.gpus)} GPUs can be used (CUDA error 802).",
        evidence=(
            Evidence("fabric manager", service.version, "nv-fabricmanager --version"),
            Evidence("driver", driver, "/proc/driver/nvidia/version"),
            Evidence(MANAGER, service.state, f"systemctl status {MANAGER}"),
        ),
        severity="warning" if running else "critical",
        ids=frozenset({PLACE}),
    )


_FINE = frozenset({"READY", "UNAVAILABLE"})
_JOINING = "DEGRADED"
_DIGITS = 9  # of a number of nodes that can be one


@rule("imex-down")
def imex_down(context: RuleContext) -> Result:
    service = imex_service(context)
    if not isinstance(service, Service):
        return service
    state = context.software.imex.get("node")
    if service.state == "active" and state is None:
        return NODE.unknown("not-shown", detail="IMEX runs, and does not report its state")
    if service.state == "active" and state in _FINE:
        return NODE.passes()
    if context.why_settling:
        return NODE.unknown(context.why_settling)
    what = f"its daemon is {state}" if service.state == "active" else f"the service is {service.state}"
    return NODE.fail(
        summary=f"IMEX is configured for {context.software.imex['nodes_config']} nodes, and {what}",
        impact="No memory is shared over NVLink with other nodes: the network replaces 900 GB/s, or jobs end.",
        evidence=(
            Evidence(IMEX, service.state, f"systemctl status {IMEX}"),
            Evidence("daemon", state or "no answer", "nvidia-imex-ctl -q"),
        ),
        severity="warning" if service.state == "active" and state == _JOINING else "error",
        cause=what,
        ids=frozenset({PLACE}),
    )


def imex_service(context: RuleContext) -> Service | Result:
    """The service of the host where IMEX is due; else why it is not."""
    if not any(multi_node_domain(gpu) for gpu in context.topology.gpus):
        if unread := context.why_probe_failed("gpu"):
            if context.topology.gpus:
                return NODE.unknown(unread)
            return NODE.not_applicable("no-such-device", detail="no GPU")
        return NODE.not_applicable("other-kind", detail="its GPUs are in no NVLink domain of several nodes")
    if context.node.container:
        return NODE.unknown("container-hides", detail="a container does not show the services of its host")
    service = find_service(context, IMEX)
    if isinstance(service, Unknown):
        return service
    if service.state == "not_installed":
        return NODE.not_applicable(
            "not-configured", detail="IMEX is not installed: no memory is shared with other nodes"
        )
    nodes = context.software.imex.get("nodes_config")
    if nodes is None or not nodes.isdecimal() or len(nodes) > _DIGITS:
        return NODE.unknown(
            "not-shown", detail="whether IMEX is configured is not known: nodes_config.cfg was not read"
        )
    if int(nodes) < 2:
        return NODE.not_applicable(
            "nothing-to-compare", detail="IMEX names no other node: a scheduler runs it, or no job needs it"
        )
    return service


_CHANNEL = "nvidia-caps-imex-channels/channel"


@rule("imex-channel-denied")
def imex_channel_denied(context: RuleContext) -> Result:
    service = imex_service(context)
    if not isinstance(service, Service):
        return service
    nodes = context.software.device_nodes
    if nodes is None:
        return NODE.unknown("not-shown", detail="/dev was not read")
    if any(node.startswith(_CHANNEL) for node in nodes):
        return NODE.passes()
    return NODE.fail(
        summary="IMEX is configured, and no channel device is there",
        impact="Jobs cannot share memory with other nodes over NVLink: CUDA error 800.",
        evidence=(Evidence("channels", "none", "ls /dev/nvidia-caps-imex-channels"),),
        ids=frozenset({PLACE}),
    )
