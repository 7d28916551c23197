"""Drivers and settings by which a NIC reaches GPU memory: peer memory, DMA-BUF, BAR1, Data Direct."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.node import Event
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import (
    MELLANOX,
    about_gpu,
    find_device_id,
    find_function,
    is_consumer,
    is_nvidia,
    is_on_c2c,
    is_virtual_gpu,
    why_unreachable,
)
from agent.rules.gpudirect.pairs import CLOUD_DRIVERS, NEAR, data_direct, peer_memory
from agent.rules.nccl.settings import EffectiveSetting, effective_settings, parse_number
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.pages import read_limit
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import join_labels

_WITH_LINK = ("ACTIVE", "ARMED", "INIT")  # the latter wait for the subnet manager, and are used once it is there
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")
_DMABUF_DRIVERS = ("mlx5", "irdma", "ice", "bnxt")  # whose kernel modules can register a DMA-BUF
NO_RAIL = Reason("no-such-device", detail="no rail")
_TURING = 7.5
_KERNEL = r"(\d{1,3})\.(\d{1,3})"
_CUDA = r"(\d{1,3})\.(\d{1,3})"
_NEW_ENOUGH = ("Turing", "Ampere", "Ada", "Hopper", "Blackwell", "Rubin")
_GENERATION = "Turing or newer"
_KERNEL_NEED = "kernel 5.12 or later"
_OPEN_NEED = "open kernel modules of the NVIDIA driver"
_CUDA_NEED = "CUDA 11.7 or later in the driver"
_INSTALLED = {  # what meets a need of DMA-BUF
    _KERNEL_NEED: "a kernel of 5.12 or later",
    _OPEN_NEED: "the open kernel modules of the driver (`nvidia-open`) in place of the proprietary ones",
    _CUDA_NEED: "a driver of 515 or later",
}
_TOO_OLD = ("Kepler", "Maxwell", "Pascal", "Volta")


@rule("gdr-no-path")
def gdr_no_path(context: RuleContext) -> Result:
    gpus = capable_gpus(context)
    silent = why_not_applicable(context, gpus)
    if silent is NO_RAIL and context.why_no_rail_known:
        return NODE.unknown(context.why_no_rail_known)
    if silent:
        return NODE.not_applicable(silent)
    loaded = peer_memory(context)
    why = context.why_probe_failed("modules")
    if loaded:
        return NODE.passes()
    if why:
        return NODE.unknown(why)
    return _check_dmabuf(context, gpus)


def capable_gpus(context: RuleContext) -> list[Gpu]:
    """NVIDIA GPUs of data centres that the driver offers, or may."""
    return [gpu for gpu in context.topology.gpus if _could_use(context, gpu)]


def _could_use(context: RuleContext, gpu: Gpu) -> bool:
    """An NVIDIA GPU that the driver offers, or may: those of the GeForce line cannot do GPUDirect RDMA."""
    offered = gpu.driver_state in ("open", "unknown") and why_unreachable(find_function(context, gpu)) is None
    return is_nvidia(context, gpu) and offered and not is_consumer(context, gpu)


def has_name(context: RuleContext, gpu: Gpu) -> bool:
    """Whether any output states what kind of card it is."""
    function = find_function(context, gpu)
    return bool(gpu.name or (function and function.name))


def why_not_applicable(context: RuleContext, gpus: list[Gpu]) -> Reason | None:
    """Why the kernel's ways to GPU memory do not matter here; None where they do."""
    if not gpus:
        return Reason("no-such-device", detail="no NVIDIA data-centre GPU in use")
    if context.virtual_machine:
        return Reason("guest", detail="virtual machine: the provider's stack decides")
    rails = [nic for nic in context.rails if not (nic.software or nic.limited)]
    if not rails:
        return NO_RAIL
    if all((nic.driver or "").startswith(CLOUD_DRIVERS) for nic in rails):
        return Reason("other-kind", detail="rails of a cloud with a GPUDirect of its own")
    if not any(port.state in _WITH_LINK for nic in rails for port in nic.ports):
        return Reason("not-in-use", detail="no rail has a link")
    return None


def is_dmabuf_ready(context: RuleContext) -> bool | None:
    """Whether DMA-BUF has all that it needs; None where that is not known."""
    return _all_true(list(check_dmabuf(context, capable_gpus(context)).values()))


def check_dmabuf(context: RuleContext, gpus: list[Gpu]) -> dict[str, bool | None]:
    """What DMA-BUF needs, and whether it is so; None: not known."""
    return {
        _KERNEL_NEED: _is_at_least(_KERNEL, context.node.kernel, (5, 12)),
        _OPEN_NEED: context.software.driver.open,
        _CUDA_NEED: _is_at_least(_CUDA, context.software.driver.cuda, (11, 7)),
        _GENERATION: _all_true([_is_new_enough(gpu) for gpu in gpus]),
        "a NIC driver that registers DMA-BUFs": _all_true([_registers(nic.driver) for nic in context.rails]),
    }


def _install_missing(needs: dict[str, bool | None]) -> str:
    """What to install for DMA-BUF; "" where the GPUs are too old for it, and for the open kernel modules."""
    lacking = [what for need, what in _INSTALLED.items() if needs[need] is False]
    if needs[_GENERATION] is False or not lacking:
        return ""
    return f"install {' and '.join(lacking)}, and reboot."


def _check_dmabuf(context: RuleContext, gpus: list[Gpu]) -> Result:
    needs = check_dmabuf(context, gpus)
    lacking = [need for need, met in needs.items() if met is False]
    unread = [need for need, met in needs.items() if met is None]
    if lacking and not any(has_name(context, gpu) for gpu in gpus):
        return NODE.unknown(
            "not-shown", detail="whether these GPUs are data-centre GPUs is not known: they have no name"
        )
    if not lacking:
        if unread:
            return NODE.unknown(
                "not-shown", detail=f"no peer-memory client; for DMA-BUF not known: {', '.join(unread)}"
            )
        return NODE.passes()
    used = _is_near_enough(context)
    return NODE.fail(
        summary="GPUDirect RDMA unavailable: no peer-memory client is loaded, and DMA-BUF is missing: "
        + ", ".join(lacking),
        impact="Traffic between nodes is copied through host memory: every rail is slower."
        if used
        else "None for NCCL, which does not use it at this distance; libraries that do copy through host memory.",
        evidence=(
            Evidence("peer-memory clients", "none of " + ", ".join(_PEER_MODULES), "/proc/modules"),
            Evidence("kernel", context.node.kernel or "not known", "uname -r"),
            Evidence(
                "NVIDIA driver",
                f"{context.software.driver.version or 'version not known'}, "
                f"{_flavour(context.software.driver.open)}, CUDA {context.software.driver.cuda or 'not known'}",
                "/proc/driver/nvidia/version",
            ),
        ),
        severity=None if used else "info",
        remedy=_install_missing(needs),
        situation="" if needs[_GENERATION] is not False else "too-old",
    )


def _is_near_enough(context: RuleContext) -> bool:
    """Whether NCCL would use GPUDirect RDMA at all: up to PXB, or over C2C; True where the ways are not known."""
    rails = {nic.id for nic in context.rails}
    ways = [p for gpu in context.topology.gpus for p in context.paths_of.get(gpu.id, ()) if rails & {p.a, p.b}]
    coherent = any(is_on_c2c(context, gpu) for gpu in context.topology.gpus)
    return coherent or not ways or any(p.pcie_kind in (*NEAR, None) or p.kind == "C2C" for p in ways)


def _is_at_least(pattern: str, text: str | None, least: tuple[int, int]) -> bool | None:
    match = re.match(pattern, text) if text else None
    return (int(match[1]), int(match[2])) >= least if match else None


def _all_true(answers: list[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _is_new_enough(gpu: Gpu) -> bool | None:
    try:
        return float(gpu.compute_capability or "") >= _TURING
    except ValueError:
        named = gpu.architecture or ""  # "Ada Lovelace": the first word decides, and a new word is no old GPU
        return True if named.startswith(_NEW_ENOUGH) else False if named.startswith(_TOO_OLD) else None


def _registers(driver: str | None) -> bool | None:
    return True if (driver or "").startswith(_DMABUF_DRIVERS) else None  # of others it is not known that they cannot


def _flavour(is_open: bool | None) -> str:
    return "kernel modules not known" if is_open is None else "open" if is_open else "proprietary kernel modules"


@rule("gdr-peermem-broken")
def gdr_peermem_broken(context: RuleContext) -> Result:
    refused = [event for event in context.events if event.kind == "peermem"]
    loaded = peer_memory(context)
    if not refused:
        why = context.why_probe_failed("kernel_log")
        if why and context.topology.gpus:
            return NODE.unknown(why)
        return NODE.not_applicable("no-such-device", detail="no such message")
    if loaded:
        return NODE.passes()
    why = context.why_probe_failed("modules")
    if why and not (context.recorded and why.code in ("evidence-absent", "evidence-failed")):  # of `lsmod | grep`
        return NODE.unknown(why)
    return _fail_refused(context, refused[-1], has_modules=why is None)


def _fail_refused(context: RuleContext, line: Event, has_modules: bool) -> Fail:
    """The kernel refused the module; where the list of modules is not in the source, it may be loaded by now."""
    stack, ready = context.software.rdma_stack, has_modules and is_dmabuf_ready(context)
    kind = f"{stack.kind} {stack.version or ''}".strip()
    slower = "traffic between nodes is copied through host memory and is slower."
    return NODE.fail(
        summary="nvidia_peermem could not register with the RDMA stack: it was built for another one"
        if line.code == "register"
        else f"{line.detail.get('module', 'nvidia_peermem')} was refused by the kernel: it was built for another RDMA "
        "stack",
        impact="None: DMA-BUF has all that it needs."
        if ready
        else slower.capitalize()
        if has_modules
        else f"Unless it was loaded later, or NICs reach GPU memory by DMA-BUF: {slower}",
        evidence=(
            Evidence("kernel log", line.text, line.source),
            *([Evidence("RDMA stack", kind, "/sys/module/ib_core")] if has_modules else ()),
        ),
        severity="info" if ready else "error" if has_modules else "warning",
        confidence="high" if has_modules else "medium",
        remedy="" if ready else _install_missing(check_dmabuf(context, capable_gpus(context))),
        cause=line.code or "symbol",
        situation="by-dmabuf" if ready else "",
    )


@rule("gdr-dmabuf-prereq")
def gdr_dmabuf_prereq(context: RuleContext) -> Result:
    gpus = capable_gpus(context)
    silent = why_not_applicable(context, gpus)
    clients = peer_memory(context)
    if silent or not clients:
        return NODE.not_applicable(
            silent or Reason("judged-elsewhere", detail="no peer-memory client: see gdr-no-path")
        )
    needs = check_dmabuf(context, gpus)
    if needs[_GENERATION] is False:
        why = Reason("other-kind", detail="GPUs before Turing: a peer-memory client is their only path")
        return NODE.not_applicable(why)
    lacking = [need for need, met in needs.items() if met is False]
    unread = [need for need, met in needs.items() if met is None]
    if lacking:
        return NODE.fail(
            summary=f"only {join_labels(clients)} {'lets' if len(clients) == 1 else 'let'} NICs reach GPU memory; "
            f"DMA-BUF is missing: {', '.join(lacking)}",
            impact="None today; without the client, traffic between nodes is copied through host memory.",
            remedy=_install_missing(needs),
            evidence=(
                Evidence("peer-memory client", ", ".join(clients), "/proc/modules"),
                Evidence("kernel", context.node.kernel or "not known", "uname -r"),
            ),
        )
    if unread:
        return NODE.unknown("not-shown", detail=f"for DMA-BUF not known: {', '.join(unread)}")
    return NODE.passes()


_FIRST_WITH_OWN = 470  # the driver that brings nvidia-peermem


@rule("gdr-legacy-nv-peer-mem")
def gdr_legacy_nv_peer_mem(context: RuleContext) -> Iterator[Result]:
    modules = {module.name for module in context.software.modules}
    version = (context.software.driver.version or "").partition(".")[0]
    if context.why_probe_failed("modules"):
        return
    if "nv_peer_mem" not in modules:
        yield (NODE.passes() if context.topology.gpus else NODE.not_applicable("no-such-device", detail="no GPU"))
    elif "nvidia_peermem" not in modules and not version.isdecimal():
        yield NODE.unknown("not-known", fact="the driver's version")
    elif "nvidia_peermem" not in modules and int(version) < _FIRST_WITH_OWN:
        yield NODE.not_applicable("other-kind", detail=f"driver {version} has no peer-memory module of its own")
    else:
        both = "nvidia_peermem" in modules
        yield NODE.fail(
            summary="nv_peer_mem is loaded" + (" beside nvidia_peermem" if both else ", which nvidia-peermem replaced"),
            impact="One of the two clients is used, and it is not known which."
            if both
            else "None today; it gets no new versions.",
            evidence=(Evidence("loaded module", "nv_peer_mem", "/proc/modules"),),
        )


_SMALL = read_limit("gdr-bar1-small.mib")
_LARGE_MIB = 8192
_SMALL_BY_DESIGN = frozenset({"0x1eb8"})  # T4: its BAR1 cannot be resized


@rule("gdr-bar1-small")
def gdr_bar1_small(context: RuleContext) -> Iterator[Result]:
    if not context.rails:
        why = None if context.virtual_machine else context.why_no_rail_known
        yield NODE.unknown(why) if why else NODE.not_applicable("no-such-device", detail="no rail")
        return
    answers = (_judge_bar1_small(context, gpu) for gpu in context.topology.gpus)
    yield from aggregate_node_wide(answers, "BAR1 is smaller than the memory on every GPU")


def _judge_bar1_small(context: RuleContext, gpu: Gpu) -> Result:
    about = about_gpu(gpu)
    if not is_nvidia(context, gpu) or is_consumer(context, gpu):
        return about.not_applicable("no-such-device", detail="no NVIDIA data-centre GPU")
    absent = why_unreachable(find_function(context, gpu))
    if absent:
        return about.not_applicable(absent)
    if is_virtual_gpu(gpu):
        return about.not_applicable("guest", detail="a virtual GPU: the hypervisor sets its window")
    size, source = _bar1_size(context, gpu)
    if size is None:
        if gpu.mig and gpu.mig.current:
            return about.not_applicable("other-kind", detail="in MIG mode, and its function shows no BAR")
        return about.unknown("not-known", fact="the size of BAR1")
    if gpu.memory_mib is None:
        return about.unknown("not-known", fact="the size of its memory")
    if gpu.memory_mib <= _LARGE_MIB or size >= gpu.memory_mib:
        return about.passes()
    by_design = find_device_id(context, gpu) in _SMALL_BY_DESIGN
    tiny = size <= context.threshold(_SMALL) and not by_design
    return about.fail(
        summary=f"BAR1 is {size} MiB; the GPU has {gpu.memory_mib} MiB of memory",
        impact=f"NICs reach {100 * size / gpu.memory_mib:.1f}% of its memory at once: more fails to register.",
        evidence=(
            Evidence(f"BAR1 of {gpu.label}", f"{size} MiB", source),
            Evidence(f"memory of {gpu.label}", f"{gpu.memory_mib} MiB", "nvidia-smi -q -d MEMORY"),
        ),
        severity=None if tiny else "info",
        cause="tiny" if tiny else "",
        situation="by-design" if by_design else "",
    )


def _bar1_size(context: RuleContext, gpu: Gpu) -> tuple[int | None, str]:
    """MiB, and where it is from. In MIG mode the driver shows that of an instance: the function's BAR counts then."""
    if gpu.bar1_mib is not None and not (gpu.mig and gpu.mig.current):
        return gpu.bar1_mib, "nvidia-smi -q -d MEMORY"
    function = find_function(context, gpu)
    bars = [size for number, size in (function.bars_bytes or {}).items() if number != "0"] if function else []
    return (max(bars) >> 20 if bars else None), f"/sys/bus/pci/devices/{gpu.pci}/resource"


_CX8 = "0x1023"


@rule("gdr-datadirect-missing")
def gdr_datadirect_missing(context: RuleContext) -> Result:
    rails = [nic for nic in context.rails if find_device_id(context, nic) == _CX8]
    if context.virtual_machine or not rails or not any(is_on_c2c(context, gpu) for gpu in context.topology.gpus):
        return NODE.not_applicable("no-such-device", detail="no ConnectX-8 rail beside a GPU on C2C")
    functions = data_direct(context)
    dark = [f.id for f in functions if f.driver is not None and not f.driver.startswith("mlx5")]
    off = [
        setting for setting in effective_settings(context, "NCCL_IB_DATA_DIRECT") if parse_number(setting.value) == 0
    ]
    if functions and not dark and not off:
        return NODE.passes()
    if not functions and context.why_bus_unread:
        return NODE.unknown(context.why_bus_unread)
    return _fail_datadirect(len(rails), [f.id for f in functions], dark, off)


def _fail_datadirect(
    rails: int, functions: Sequence[str], dark: Sequence[str], off: Sequence[EffectiveSetting]
) -> Fail:
    what = (
        "no data-direct function is there"
        if not functions
        else f"{join_labels(dark)} have no mlx5 driver"
        if dark
        else f"NCCL_IB_DATA_DIRECT=0 ({off[0].source})"
    )
    return NODE.fail(
        summary=f"{rails} ConnectX-8 rails, and {what}",
        impact="The direct path of each rail is not used: traffic goes over C2C and the CPU.",
        remedy=f"Remove NCCL_IB_DATA_DIRECT from {off[0].unit}."
        if functions and not dark
        else "Install NIC firmware, DOCA-OFED and a kernel that have data direct.",
        evidence=(
            Evidence("data-direct functions", join_labels(functions) or "none", f"lspci -d {MELLANOX[2:]}:2100 -k"),
            *(setting.evidence("NCCL_IB_DATA_DIRECT") for setting in off),
        ),
        cause="missing" if not functions else "driver" if dark else "setting",
        situation="setting" if functions and not dark else "",
    )
