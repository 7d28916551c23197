"""Whether NICs reach the memory of AMD GPUs, as RCCL decides it."""

from __future__ import annotations

from agent.model.finding import Evidence
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.gpudirect.peer_memory import NO_RAIL, why_not_applicable
from agent.rules.nccl.settings import effective_settings
from agent.rules.rule import NODE, Fail, Result, rule

_NOT_OFFERED = ("vfio", "no_driver", "not_open", "error")
_CLIENT = "amdkfd"
_OPTIONS = ("CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY")
_SWITCH = "NCCL_DMABUF_ENABLE"


def has_peer_memory(context: RuleContext) -> bool:
    """Whether the compute driver is a client of the peer memory that OFED adds to the kernel."""
    return _CLIENT in context.software.peer_memory_clients or "peer_memory" in context.software.kernel_settings


def has_dmabuf(context: RuleContext) -> bool | None:
    """Whether the kernel was built with what DMA-BUF between devices needs; None where that is not known."""
    values = [context.software.kernel_settings.get(option) for option in _OPTIONS]
    return None if None in values else all(value == "y" for value in values)


def find_way(context: RuleContext) -> str:
    """By which way NICs reach GPU memory; where neither is there, amd-gdr-not-ready blocks the pair."""
    if has_dmabuf(context) and _is_switched_on(context):
        return "dma-buf"
    return "peermem" if has_peer_memory(context) else "unknown"


def _is_switched_on(context: RuleContext) -> bool:
    return any(setting.value.strip() == "1" for setting in effective_settings(context, _SWITCH))


@rule("amd-gdr-not-ready")
def amd_gdr_not_ready(context: RuleContext) -> Result:
    gpus = [gpu for gpu in context.topology.gpus if gpu.vendor == "AMD" and gpu.driver_state not in _NOT_OFFERED]
    silent = why_not_applicable(context, gpus)
    ready = has_dmabuf(context)
    if silent is NO_RAIL and context.why_no_rail_known:
        return NODE.unknown(context.why_no_rail_known)
    if silent:
        return NODE.not_applicable(
            silent if gpus else Reason("no-such-device", detail="no GPU of AMD that the driver offers")
        )
    if find_way(context) != "unknown":
        return NODE.passes()
    if ready is None:
        return NODE.unknown(
            "not-shown", detail="no peer-memory client; how the kernel was built could not be read (/boot/config-*)"
        )
    return _fail_not_ready(context, ready)


def _fail_not_ready(context: RuleContext, ready: bool) -> Fail:
    settings = context.software.kernel_settings
    missing = [option for option in _OPTIONS if settings[option] != "y"]
    return NODE.fail(
        summary=f"GPUDirect RDMA is off: no peer-memory client, and {_SWITCH} is not 1"
        if ready
        else f"GPUDirect RDMA unavailable: no peer-memory client, and the kernel is built without {', '.join(missing)}",
        impact="RCCL copies traffic between nodes through host memory: every rail is slower.",
        remedy=f"Set {_SWITCH}=1 for the jobs; RCCL does not use DMA-BUF without it, up to ROCm 6."
        if ready
        else "Install the OFED whose kernel modules have peer memory, or a kernel with both options.",
        evidence=(
            Evidence("peer-memory client amdkfd", "not registered", "/sys/kernel/mm/memory_peers"),
            *(Evidence(option, settings[option], "/boot/config-$(uname -r)") for option in _OPTIONS),
        ),
        severity="warning" if ready else None,
        confidence="medium" if ready else "high",
        cause="setting" if ready else "kernel",
    )
