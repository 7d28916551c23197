"""What is saved before a reset or power cycle, what holds the GPUs, and how a GPU is reset: by maker and by machine."""

from __future__ import annotations

from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_nvidia, is_off_bus
from agent.rules.location import find_gpu, find_nic
from agent.rules.rule import Fail

_BMC = "the BMC's event log (`ipmitool sel elist`)"
_LOG = "the kernel log (`dmesg -T`)"
_LOCAL_DISKS = "what is on local disks, where a stop empties them"  # of an instance of a cloud
_TOGETHER = ("Volta", "Ampere")  # GPUs of these that NVSwitches join are reset together
_HOLDING = ("nvidia-fabricmanager", "nvidia-dcgm", "nvidia-imex", "nvidia-persistenced")
_DUMPING = "mlx5"  # drivers whose health reporter keeps a dump
_XIDS = ("gpu-xid", "xid-root-of-many")  # a log alone is of NVIDIA, too
_MONITORING = "exporters and the device plugin of Kubernetes"


def describe_reset(context: RuleContext, rule: str, fault: Fail, form: str | None) -> dict[str, str]:
    """What EVIDENCE, HOLDERS and RESET_GPU stand for in the steps of a finding."""
    gpus = _find_gpus(context, fault, form)
    switches = not context.topology.gpus and bool(context.topology.nvswitches)
    nvidia = rule in _XIDS or switches or any(is_nvidia(context, gpu) for gpu in gpus)
    nic = find_nic(context, fault.subject.partition(":")[2].partition("/")[0])
    lost = nic is not None and is_off_bus(find_function(context, nic))  # it answers no command
    dumps = nic is not None and not lost and not gpus and (nic.driver or "").startswith(_DUMPING)
    return {
        "EVIDENCE": _describe_evidence(gpus, nvidia, dumps, form == "virtual"),
        "HOLDERS": _describe_holders(context, gpus, nvidia),
        "RESET_GPU": _describe_command(context, gpus),
    }


def _find_gpus(context: RuleContext, fault: Fail, form: str | None) -> list[Gpu]:
    """The GPUs that a fault is about; of the whole node, or of what is gone, those that are there."""
    gpus = [gpu for place in sorted(fault.ids) if (gpu := find_gpu(context, place.partition("/")[0]))]
    switches = {switch.id for switch in context.topology.nvswitches}
    others = {place for place in fault.ids if place in context.functions} - switches
    kind = fault.subject.partition(":")[0]
    if gpus or not (kind in ("gpu", "nvswitch") or form == "virtual" or (kind == "node" and not others)):
        return gpus
    return context.topology.gpus


def _describe_evidence(gpus: list[Gpu], nvidia: bool, dumps: bool, guest: bool) -> str:
    makers = {gpu.vendor for gpu in gpus}
    logs = [_LOCAL_DISKS] if guest else [_BMC]
    if nvidia:
        logs.insert(0, "`nvidia-bug-report.sh` (as root; with `--safe-mode` where it hangs)")
    elif dumps:
        logs = ["`devlink health dump show pci/ADDRESS reporter fw_fatal`", _LOG, *logs]
    elif "Huawei" in makers:
        logs = [_LOG, "the driver's `npu_log_collect.sh`", *logs]
    elif "AMD" in makers:
        logs = [_LOG, "`amd-smi metric`", *logs]
    else:
        logs = [_LOG, *logs]
    return f"{', '.join(logs[:-1])} and {logs[-1]}." if len(logs) > 1 else f"{logs[0]}."


def _describe_holders(context: RuleContext, gpus: list[Gpu], nvidia: bool) -> str:
    """Whatever keeps a GPU in use although no job runs, and how what is left is found."""
    if not nvidia:
        return f"{_MONITORING}. `fuser -v /dev/kfd` shows what is left." if _is_amd(gpus) else f"{_MONITORING}."
    return f"{_name_services(context)}. `fuser -v /dev/nvidia*` shows what is left."


def _name_services(context: RuleContext) -> str:
    known = {service.name: service.state for service in context.software.services}
    if not known:
        return f"the fabric manager, DCGM, the persistence daemon, {_MONITORING}"
    active = [name for name in _HOLDING if known.get(name) == "active"]
    return f"services (`systemctl stop {' '.join(active)}`), {_MONITORING}" if active else _MONITORING


def _is_amd(gpus: list[Gpu]) -> bool:
    return any(gpu.vendor == "AMD" for gpu in gpus)


def _describe_command(context: RuleContext, gpus: list[Gpu]) -> str:
    if _is_amd(gpus):
        return "`amd-smi reset` (`amd-smi reset --help` lists the options of the installed version)"
    together = context.topology.nvswitches and any((gpu.architecture or "") in _TOGETHER for gpu in gpus)
    return "all GPUs of the NVSwitches together, `nvidia-smi -r`" if together else "`nvidia-smi -r -i GPU_INDEX`"
