"""Whether NICs reach the memory of AMD GPUs, as RCCL decides it."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.gpudirect.peer_memory import NO_RAIL, not_applicable_reason
from agent.rules.nccl.settings import effective_settings
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule

_NOT_OFFERED = ("vfio", "no_driver", "not_open", "error")
_CLIENT = "amdkfd"
_OPTIONS = ("CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY")
_SWITCH = "NCCL_DMABUF_ENABLE"


def has_peer_memory(case: RuleContext) -> bool:
    """Whether the compute driver is a client of the peer memory that OFED adds to the kernel."""
    return _CLIENT in case.software.peer_memory_clients or "peer_memory" in case.software.kernel_settings


def has_dmabuf(case: RuleContext) -> bool | None:
    """Whether the kernel was built with what DMA-BUF between devices needs; None where that is not known."""
    values = [case.software.kernel_settings.get(option) for option in _OPTIONS]
    return None if None in values else all(value == "y" for value in values)


def find_way(case: RuleContext) -> str:
    """By which way NICs reach GPU memory; where neither is there, amd-gdr-not-ready blocks the pair."""
    if has_dmabuf(case) and _is_switched_on(case):
        return "dma-buf"
    return "peermem" if has_peer_memory(case) else "unknown"


def _is_switched_on(case: RuleContext) -> bool:
    return any(setting.value.strip() == "1" for setting in effective_settings(case, _SWITCH))


@rule("amd-gdr-not-ready")
def amd_gdr_not_ready(case: RuleContext) -> Iterator[Result]:
    gpus = [gpu for gpu in case.topology.gpus if gpu.vendor == "AMD" and gpu.driver_state not in _NOT_OFFERED]
    silent = not_applicable_reason(case, gpus)
    ready = has_dmabuf(case)
    if silent is NO_RAIL and case.no_rail_known:
        yield Unknown("node", case.no_rail_known)
    elif silent:
        yield NotApplicable(
            "node", silent if gpus else Reason("no-such-device", detail="no GPU of AMD that the driver offers")
        )
    elif find_way(case) != "unknown":
        yield Pass("node")
    elif ready is None:
        yield Unknown(
            "node",
            Reason(
                "not-shown", detail="no peer-memory client; how the kernel was built could not be read (/boot/config-*)"
            ),
        )
    else:
        yield _fail_not_ready(case, ready)


def _fail_not_ready(case: RuleContext, ready: bool) -> Fail:
    settings = case.software.kernel_settings
    missing = [option for option in _OPTIONS if settings[option] != "y"]
    return Fail(
        subject="node",
        label="node",
        summary=f"GPUDirect RDMA is off: no peer-memory client, and {_SWITCH} is not 1"
        if ready
        else f"GPUDirect RDMA unavailable: no peer-memory client, and the kernel is built without {', '.join(missing)}",
        impact="RCCL copies traffic between nodes through host memory: every rail is slower.",
        remedy=f"Set {_SWITCH}=1 for the jobs; RCCL does not use DMA-BUF without it, up to ROCm 6."
        if ready
        else "Install the OFED whose kernel modules have peer memory, or a kernel with both options.",
        evidence=(
            Evidence(what="peer-memory client amdkfd", value="not registered", source="/sys/kernel/mm/memory_peers"),
            *(Evidence(what=option, value=settings[option], source="/boot/config-$(uname -r)") for option in _OPTIONS),
        ),
        severity="warning" if ready else None,
        confidence="medium" if ready else "high",
        cause="setting" if ready else "kernel",
        places=frozenset({"node"}),
    )
