"""The NVIDIA driver of the node: loaded, of one version with its library, and able to work."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_nvidia, report_no_gpu, why_unreachable
from agent.rules.rule import NODE, Fail, Result, rule

_FABRIC = "nvlink-fabric"  # the place of findings about the fabric manager
_MISMATCH = r"(?i)version mismatch"  # NVML's error 18, and nvidia-smi's sentence
_NONE_FOUND = r"No devices were found"  # nvidia-smi's sentence where the driver could open no GPU
_BUILT = {True: "there", False: "missing", None: ""}


class _Trouble(msgspec.Struct, frozen=True):
    """Why the driver cannot be used."""

    cause: str
    summary: str


_SENTENCES = (  # of nvidia-smi
    (_MISMATCH, _Trouble("mismatch", "the loaded driver and its library are of different versions")),
    (_NONE_FOUND, _Trouble("no-gpu", "nvidia-smi finds no GPU")),
    (
        r"couldn't communicate with the NVIDIA driver",
        _Trouble("not-loaded", "nvidia-smi cannot reach the NVIDIA driver: it is not loaded, or does not work"),
    ),
    (
        r"Failed to initialize NVML: Unknown Error",
        _Trouble("access", "NVML fails with Unknown Error: the usual cause is a container that lost its GPUs"),
    ),
    (r"(?i)Failed to initialize NVML: Driver Not Loaded", _Trouble("not-loaded", "the NVIDIA driver is not loaded")),
)


@rule("gpu-driver-unusable")
def gpu_driver_unusable(context: RuleContext) -> Iterator[Result]:
    if not context.topology.gpus:
        stated = _judge_sentence(context, [])
        yield from (stated,) if stated else report_no_gpu(context)
        return
    yield from report_no_gpu(context)
    gpus = [gpu for gpu in context.topology.gpus if is_nvidia(context, gpu) and _is_for_this_host(context, gpu)]
    yield (
        _judge_driver(context, gpus)
        if gpus
        else NODE.not_applicable("no-such-device", detail="no NVIDIA GPU for jobs of this host")
    )


def _judge_sentence(context: RuleContext, gpus: list[Gpu]) -> Fail | None:
    """By the sentence of a saved nvidia-smi, where the source does not show the bus, or no loaded modules and drivers:
    no one runs it without a GPU."""
    limited = context.node.container or context.node.job_limit
    if limited or not (context.recorded and context.why_probe_failed("modules" if gpus else "pci")):
        return None
    if any(function.driver is not None for gpu in gpus if (function := find_function(context, gpu))):
        return None
    stated = context.why_probe_failed("gpu") or ""
    trouble = next((trouble for pattern, trouble in _SENTENCES if re.search(pattern, stated)), None)
    if trouble is None:
        return None
    fault = _fail_driver(context, gpus, trouble)
    return replace(
        fault,
        impact="No GPU can be used where this was run: on the host, or in one container: the source does not show it.",
        confidence="medium",
    )


def _is_for_this_host(context: RuleContext, gpu: Gpu) -> bool:
    function = find_function(context, gpu)
    if why_unreachable(function):
        return False
    return gpu.driver_state != "vfio" and not (
        function and (function.physical_function or _is_handed_over(function.driver))
    )


def _is_handed_over(driver: str | None) -> bool:
    return driver is not None and ("vfio" in driver or driver == "pci-pf-stub")


def _judge_driver(context: RuleContext, gpus: list[Gpu]) -> Result:
    unread = context.why_probe_failed("gpu")
    if unread is None or any(gpu.driver_state == "open" for gpu in gpus):
        return NODE.passes()
    if re.search(_MISMATCH, unread):
        return _fail_driver(context, gpus, _Trouble("mismatch", _describe_mismatch(context)))
    if re.search(_NONE_FOUND, unread) and not (context.node.container or context.node.job_limit):
        return _fail_driver(context, gpus, _Trouble("no-gpu", "the driver is loaded but opens none of its GPUs"))
    if stated := _judge_sentence(context, gpus):
        return stated
    if context.why_probe_failed("modules") is not None or any(row.name == "nvidia" for row in context.software.modules):
        return NODE.unknown(unread)
    driver = context.software.driver
    if driver.built:
        return _fail_driver(context, gpus, _Trouble("not-loaded", "the NVIDIA driver is installed but not loaded"))
    if driver.built is False:
        kernel = context.node.kernel or "that runs"
        what = f"the NVIDIA driver is installed, but has no module for kernel {kernel}"
        return _fail_driver(context, gpus, _Trouble("not-built", what))
    return NODE.not_applicable(
        "judged-elsewhere",
        detail="no NVIDIA driver is loaded, and none is known to be installed: see pci-driver-missing",
    )


def _describe_mismatch(context: RuleContext) -> str:
    driver = context.software.driver
    if driver.version and driver.library and driver.version != driver.library:
        return f"the loaded driver is {driver.version}, its library {driver.library}: they must be equal"
    return "the loaded driver and its library are of different versions"


def _quote_failures(context: RuleContext) -> Iterator[Evidence]:
    """What each tool and library that could not work with the driver states."""
    runs = [context.probes[name] for name in context.providers["gpu"] if name in context.probes]
    for run in [run for run in runs if run.status not in ("absent", "skipped")] or runs[:1]:
        yield Evidence("the driver's library", run.reason or run.status, run.name.replace("_", "-"))


def _fail_driver(context: RuleContext, gpus: list[Gpu], trouble: _Trouble) -> Fail:
    driver, kernel = context.software.driver, context.node.kernel or "$(uname -r)"
    ids = {subject for gpu in gpus for subject in (gpu.id, gpu.pci) if subject}
    versions = (
        ("loaded module", driver.version, "/proc/driver/nvidia/version"),
        ("library on disk", driver.library, "ls -l /usr/lib*/*/libnvidia-ml.so.1"),
        ("installed package (DKMS)", ", ".join(driver.packages), "ls /var/lib/dkms/nvidia*"),
        ("module for this kernel", _BUILT[driver.built], f"/lib/modules/{kernel}"),
    )
    events = [event for event in context.events if (event.kind, event.code) == ("driver", "api-mismatch")]
    return NODE.fail(
        summary=trouble.summary,
        impact=f"None of {len(gpus)} GPUs can be used: CUDA and nvidia-smi fail at once.",
        evidence=(
            *(Evidence(what, value, source) for what, value, source in versions if value),
            *_quote_failures(context),
            *(Evidence("kernel log", event.text, event.source) for event in events[-2:]),
        ),
        cause=trouble.cause,
        ids=frozenset({*ids, _FABRIC}),
    )
