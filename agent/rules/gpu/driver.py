"""The NVIDIA driver of the node: loaded, of one version with its library, and able to work."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_nvidia, report_no_gpu, unreachable_reason
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule

_FABRIC = "nvlink-fabric"  # the place of findings about the fabric manager
_MISMATCH = re.compile(r"version mismatch", re.IGNORECASE)  # NVML's error 18, and nvidia-smi's sentence
_NONE_FOUND = re.compile(r"No devices were found")  # nvidia-smi's sentence where the driver could open no GPU
_BUILT = {True: "there", False: "missing", None: ""}


class _Trouble(msgspec.Struct, frozen=True):
    """Why the driver cannot be used."""

    cause: str
    summary: str


_SENTENCES = (  # of nvidia-smi
    (_MISMATCH, _Trouble("mismatch", "the loaded driver and its library are of different versions")),
    (_NONE_FOUND, _Trouble("no-gpu", "nvidia-smi finds no GPU")),
    (
        re.compile(r"couldn't communicate with the NVIDIA driver"),
        _Trouble("not-loaded", "nvidia-smi cannot reach the NVIDIA driver: it is not loaded, or does not work"),
    ),
    (
        re.compile(r"Failed to initialize NVML: Unknown Error"),
        _Trouble("access", "NVML fails with Unknown Error: the usual cause is a container that lost its GPUs"),
    ),
    (
        re.compile(r"Failed to initialize NVML: Driver Not Loaded", re.IGNORECASE),
        _Trouble("not-loaded", "the NVIDIA driver is not loaded"),
    ),
)


@rule("gpu-driver-unusable")
def gpu_driver_unusable(case: RuleContext) -> Iterator[Result]:
    if not case.topology.gpus:
        stated = _judge_sentence(case)
        yield from (stated,) if stated else report_no_gpu(case)
        return
    yield from report_no_gpu(case)
    gpus = [gpu for gpu in case.topology.gpus if is_nvidia(case, gpu) and _is_for_this_host(case, gpu)]
    yield (
        _judge_driver(case, gpus)
        if gpus
        else NotApplicable("node", Reason("no-such-device", detail="no NVIDIA GPU for jobs of this host"))
    )


def _judge_sentence(case: RuleContext) -> Fail | None:
    """By the sentence of a saved nvidia-smi, where the source does not show the bus: nobody runs it without a GPU."""
    stated = case.probe_failure("gpu") or ""
    trouble = next((trouble for pattern, trouble in _SENTENCES if pattern.search(stated)), None)
    limited = case.node.container or case.node.job_limit
    if trouble is None or limited or not (case.recorded and case.probe_failure("pci")):
        return None
    fault = _fail_driver(case, [], trouble)
    return replace(
        fault,
        impact="No GPU can be used where this was run: on the host, or in one container: the source does not show it.",
        confidence="medium",
    )


def _is_for_this_host(case: RuleContext, gpu: Gpu) -> bool:
    function = find_function(case, gpu)
    if unreachable_reason(function):
        return False
    return gpu.driver_state != "vfio" and not (
        function and (function.physical_function or _is_handed_over(function.driver))
    )


def _is_handed_over(driver: str | None) -> bool:
    return driver is not None and ("vfio" in driver or driver == "pci-pf-stub")


def _judge_driver(case: RuleContext, gpus: list[Gpu]) -> Result:
    unread = case.probe_failure("gpu")
    if unread is None or any(gpu.driver_state == "open" for gpu in gpus):
        return Pass("node")
    if _MISMATCH.search(unread):
        return _fail_driver(case, gpus, _Trouble("mismatch", _describe_mismatch(case)))
    if _NONE_FOUND.search(unread) and not (case.node.container or case.node.job_limit):
        return _fail_driver(case, gpus, _Trouble("no-gpu", "the driver is loaded but opens none of its GPUs"))
    if case.probe_failure("modules") is not None or any(row.name == "nvidia" for row in case.software.modules):
        return Unknown("node", unread)
    driver = case.software.driver
    if driver.built:
        return _fail_driver(case, gpus, _Trouble("not-loaded", "the NVIDIA driver is installed but not loaded"))
    if driver.built is False:
        kernel = case.node.kernel or "that runs"
        what = f"the NVIDIA driver is installed, but has no module for kernel {kernel}"
        return _fail_driver(case, gpus, _Trouble("not-built", what))
    return NotApplicable(
        "node",
        Reason(
            "judged-elsewhere",
            detail="no NVIDIA driver is loaded, and none is known to be installed: see pci-driver-missing",
        ),
    )


def _describe_mismatch(case: RuleContext) -> str:
    driver = case.software.driver
    if driver.version and driver.library and driver.version != driver.library:
        return f"the loaded driver is {driver.version}, its library {driver.library}: they must be equal"
    return "the loaded driver and its library are of different versions"


def _fail_driver(case: RuleContext, gpus: list[Gpu], trouble: _Trouble) -> Fail:
    driver, kernel = case.software.driver, case.node.kernel or "$(uname -r)"
    ids = {subject for gpu in gpus for subject in (gpu.id, gpu.pci) if subject}
    versions = (
        ("loaded module", driver.version, "/proc/driver/nvidia/version"),
        ("library on disk", driver.library, "ls -l /usr/lib*/*/libnvidia-ml.so.1"),
        ("installed package (DKMS)", ", ".join(driver.packages), "ls /var/lib/dkms/nvidia*"),
        ("module for this kernel", _BUILT[driver.built], f"/lib/modules/{kernel}"),
    )
    events = [event for event in case.events if (event.kind, event.code) == ("driver", "api-mismatch")]
    return Fail(
        subject="node",
        label="node",
        summary=trouble.summary,
        impact=f"None of {len(gpus)} GPUs can be used: CUDA and nvidia-smi fail at once.",
        evidence=(
            *(Evidence(what=what, value=value, source=source) for what, value, source in versions if value),
            Evidence(what="the driver's library", value=case.probe_failure("gpu") or "", source="nvidia-smi"),
            *(Evidence(what="kernel log", value=event.text, source=event.source) for event in events[-2:]),
        ),
        cause=trouble.cause,
        places=frozenset({*ids, _FABRIC}),
    )
