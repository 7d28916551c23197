"""NCCL settings that switch off a transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from agent.model.gpu import Gpu
from agent.rules.applicability import shows_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import is_on_c2c
from agent.rules.nccl.hcas import rdma_rails, settings_evidence, severity_by_scope
from agent.rules.nccl.settings import EffectiveSetting, effective_settings, parse_number, why_files_unread
from agent.rules.rule import NODE, Fail, Result, rule

_PEER_MODULES = {"nvidia_peermem", "nv_peer_mem"}
_NO_DISTANCE = {"LOC", "0"}
_AMPERE, _HOPPER = 8.0, 9.0


class _Switch(msgspec.Struct, frozen=True):
    """One variable that takes a fast way out of use. `bites`: on this node it does."""

    key: str
    off: Callable[[str], bool]
    bites: Callable[[RuleContext], bool]
    severity: str
    loses: str


def _is_on(value: str) -> bool:
    return bool(parse_number(value))


def _is_zero(value: str) -> bool:
    return parse_number(value) == 0


def _has_rails(context: RuleContext) -> bool:
    return bool(rdma_rails(context))


def _has_nvlinks(context: RuleContext) -> bool:
    """GPUs that reach each other by NVLink: on others many boards have no peer-to-peer, and the switch is right."""
    linked = [gpu for gpu in context.topology.gpus if any(link.state == "active" for link in gpu.links)]
    if context.why_bus_unread is None:
        return len(linked) > 1
    in_matrix = any((path.kind or "").startswith("NV") for path in context.topology.paths)
    return bool(linked) or in_matrix  # the far end may not be in the source


def _needs_shared_memory(context: RuleContext) -> bool:
    return len(context.topology.gpus) > 1 and not _has_nvlinks(context)


def _needs_dmabuf(context: RuleContext) -> bool:
    """Whether DMA-BUF is the only way of NICs to GPU memory."""
    modules = {module.name for module in context.software.modules}
    known = context.why_probe_failed("modules") is None
    return _has_rails(context) and known and not modules & _PEER_MODULES and not context.software.peer_memory_clients


def _has_c2c(context: RuleContext) -> bool:
    return _has_rails(context) and any(is_on_c2c(context, gpu) for gpu in context.topology.gpus)


def _reads_fast(context: RuleContext) -> bool:
    """Ampere and later send straight out of GPU memory."""
    return _has_rails(context) and all(_capability(gpu) >= _AMPERE for gpu in context.topology.gpus)


def _capability(gpu: Gpu) -> float:
    try:
        return float(gpu.compute_capability or "")
    except ValueError:
        return 0.0


def _has_nvls(context: RuleContext) -> bool:
    """NVLink SHARP that works: Hopper and later on switches whose fabric is ready, and no cloud's own settings."""
    gpus = context.topology.gpus
    ready = all(gpu.fabric is not None and gpu.fabric.state == "completed" for gpu in gpus)
    plugin = any(setting.key.startswith("NCCL_FASTRAK") for setting in context.software.nccl.settings)
    return len(gpus) > 2 and ready and not plugin and all(_capability(gpu) >= _HOPPER for gpu in gpus)


_TCP = "All traffic between nodes goes over TCP sockets instead of RDMA, which is far slower."
_STAGED = (
    "Traffic between nodes is copied through host memory instead of going straight to GPU memory: every rail is slower."
)
_SWITCHES = (
    _Switch("NCCL_IB_DISABLE", _is_on, _has_rails, "error", _TCP),
    _Switch("NCCL_NET", lambda value: value.lower() == "socket", _has_rails, "error", _TCP),
    _Switch("NCCL_NET_GDR_LEVEL", lambda value: value.upper() in _NO_DISTANCE, _has_rails, "error", _STAGED),
    _Switch("NCCL_DMABUF_ENABLE", _is_zero, _needs_dmabuf, "error", _STAGED),
    _Switch("NCCL_NET_GDR_C2C", _is_zero, _has_c2c, "error", _STAGED),
    _Switch("NCCL_NET_GDR_READ", _is_zero, _reads_fast, "warning", "What is sent is copied through host memory."),
    _Switch(
        "NCCL_NVLS_ENABLE",
        _is_zero,
        _has_nvls,
        "warning",
        "All-reduce inside a node runs in rings instead of the NVSwitches: three quarters of the bandwidth.",
    ),
    _Switch(
        "NCCL_P2P_DISABLE", _is_on, _has_nvlinks, "error", "GPUs do not use their NVLinks, and use PCIe or host memory."
    ),
    _Switch(
        "NCCL_P2P_LEVEL",
        lambda value: value.upper() in _NO_DISTANCE,
        _has_nvlinks,
        "error",
        "GPUs do not use their NVLinks, and use PCIe or host memory.",
    ),
    _Switch(
        "NCCL_SHM_DISABLE",
        _is_on,
        _needs_shared_memory,
        "error",
        "GPUs of one node use the network instead of shared memory.",
    ),
)


@rule("gdr-disabled-by-env", gate=shows_gpus)
def gdr_disabled_by_env(context: RuleContext) -> Result | Iterable[Result]:
    why = why_files_unread(context)
    faults = [_fail_disabled(switch, where) for switch in _SWITCHES if (where := _is_switched_off(context, switch))]
    return faults or (NODE.unknown(why) if why else NODE.passes())


def _is_switched_off(context: RuleContext, switch: _Switch) -> list[EffectiveSetting]:
    return [
        setting
        for setting in effective_settings(context, switch.key)
        if switch.off(setting.value) and switch.bites(context)
    ]


def _fail_disabled(switch: _Switch, where: list[EffectiveSetting]) -> Fail:
    return NODE.fail(
        summary=f"{switch.key}={where[0].value} in {where[0].source} switches off what this node has",
        impact=switch.loses,
        remedy=f"Remove {switch.key} from {where[0].unit}.",
        evidence=settings_evidence(switch.key, where),
        severity=severity_by_scope(switch.severity, where),
        cause=switch.key,
    )
