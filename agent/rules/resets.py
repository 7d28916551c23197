"""What is saved before a reset or power cycle, what holds the GPUs, and how a GPU is reset: by maker and by machine."""

from __future__ import annotations

from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.devices import is_nvidia
from agent.rules.location import find_gpu, find_nic
from agent.rules.rule import Fail

_BMC = "the BMC's event log (`ipmitool sel elist`)"
_LOG = "the kernel log (`dmesg -T`)"
_TOGETHER = ("Volta", "Ampere")  # GPUs of these that NVSwitches join are reset together
_HOLDING = ("nvidia-fabricmanager", "nvidia-dcgm", "nvidia-imex", "nvidia-persistenced")
_MONITORING = "exporters and the device plugin of Kubernetes"


def describe_reset(context: RuleContext, fault: Fail, form: str | None) -> dict[str, str]:
    """What EVIDENCE, HOLDERS and RESET_GPU stand for in the steps of a finding."""
    gpus = [gpu for place in sorted(fault.places) if (gpu := find_gpu(context, place.partition("/")[0]))]
    nics = [place for place in fault.places if find_nic(context, place.partition("/")[0])]
    of_gpus = gpus or ([] if nics else context.topology.gpus)
    return {
        "EVIDENCE": _describe_evidence(context, of_gpus, bool(nics), form == "virtual"),
        "HOLDERS": _describe_holders(context, of_gpus),
        "RESET_GPU": _describe_command(context, of_gpus),
    }


def _describe_evidence(context: RuleContext, gpus: list[Gpu], of_nic: bool, guest: bool) -> str:
    makers = {gpu.vendor for gpu in gpus}
    logs = [] if guest else [_BMC]
    if any(is_nvidia(context, gpu) for gpu in gpus):
        logs.insert(0, "`nvidia-bug-report.sh` (as root)")
    elif of_nic:
        logs = ["`devlink health dump show pci/ADDRESS reporter fw_fatal`", _LOG, *logs]
    elif "Huawei" in makers:
        logs = [_LOG, "the driver's `npu_log_collect.sh`", *logs]
    elif "AMD" in makers:
        logs = [_LOG, "`amd-smi metric`", *logs]
    else:
        logs = [_LOG, *logs]
    return f"{', '.join(logs[:-1])} and {logs[-1]}." if len(logs) > 1 else f"{logs[0]}."


def _describe_holders(context: RuleContext, gpus: list[Gpu]) -> str:
    """Whatever keeps a GPU in use although no job runs."""
    if not any(is_nvidia(context, gpu) for gpu in gpus):
        return _MONITORING
    known = {service.name: service.state for service in context.software.services}
    if not known:
        return f"the fabric manager, DCGM, the persistence daemon, {_MONITORING}"
    active = [name for name in _HOLDING if known.get(name) == "active"]
    return f"services (`systemctl stop {' '.join(active)}`), {_MONITORING}" if active else _MONITORING


def _describe_command(context: RuleContext, gpus: list[Gpu]) -> str:
    if any(gpu.vendor == "AMD" for gpu in gpus):
        return "the options of the installed version: `amd-smi reset --help`"
    together = context.topology.nvswitches and any((gpu.architecture or "") in _TOGETHER for gpu in gpus)
    return "all GPUs of the NVSwitches together, `nvidia-smi -r`" if together else "`nvidia-smi -r -i GPU_INDEX`"
