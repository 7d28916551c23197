"""gpu-module-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.profile.expected import NO_PROFILE, evidence_of, number_of, severity_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gpu-module-missing", "warning", needs=("nvml|nvidia_smi",), references=("NVL-028",))
def gpu_module_missing(case: Case) -> Iterator[Answer]:
    """A socket of the GPU baseboard has no GPU that the driver offers.

    ## What it checks
    The module numbers that GPUs tell (NVML), against the sockets of the board by its profile.

    ## Why it matters
    It names the socket of the GPU that is missing, 1 of 8, where addresses and indices have moved up.

    ## How it is decided
    The modules told are not all of 1 to the number of sockets.

    ## What keeps it silent
    - No profile with sockets; no GPU that tells a module (0 is none): not applicable. Virtual machines, containers with
      some of the GPUs: not applicable.
    - Some GPUs tell a module and some do not: unknown.
    - device-count-low, gpu-missing or pcie-device-gone found the GPU: this one is folded into it.

    ## How to confirm
    `nvidia-smi -q | grep -i 'module id'`

    ## How to fix
    Look at the GPU in that socket: power, seating, the BMC's log.

    ## Source
    NVML `nvmlDeviceGetModuleId`; baseboards with eight SXM sockets.
    """
    profile = case.profile
    due = number_of(profile.module_ids) if profile else None
    if profile is None or profile.module_ids is None or due is None:
        yield NotApplicable("node", "the profile has no sockets" if profile else NO_PROFILE)
        return
    modules = [gpu.module_id for gpu in case.topology.gpus if gpu.driver_state == "open"]
    told = {module for module in modules if module}
    if case.virtual_machine or case.node.container or not told:
        yield NotApplicable("node", "no GPU tells a module, or not all GPUs are given to us")
        return
    if len(told) < len(modules):
        yield Unknown("node", "some GPUs tell the number of their socket, and some do not")
        return
    missing = set(range(1, due + 1)) - told
    if not missing:
        yield Pass("node")
        return
    yield Fail(
        subject="node",
        label="node",
        summary=f"no GPU in socket {ranges(missing)} of the baseboard",
        impact=f"{len(missing)} of {due} GPUs are not there.",
        remedy="Look at the GPU in that socket: power, seating, the BMC's log.",
        evidence=(
            Evidence(what="modules told", value=ranges(told), source="nvidia-smi -q"),
            evidence_of(profile, "sockets", profile.module_ids),
        ),
        severity=severity_of(case, profile.module_ids, "warning"),
        cause=f"socket {ranges(missing)}",
        places=frozenset({"count of GPUs", *(g.id for g in case.topology.gpus if g.driver_state != "open")}),
    )
