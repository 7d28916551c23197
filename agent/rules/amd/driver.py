"""AMD GPUs that their driver does not offer."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.amd.gpus import KFD
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_off_bus, kernel_log_evidence, unreachable_reason
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule


@rule("amd-kfd-missing")
def amd_kfd_missing(case: RuleContext) -> Iterator[Result]:
    for gpu in case.topology.gpus:
        yield _judge_missing(case, gpu)


def _judge_missing(case: RuleContext, gpu: Gpu) -> Result:
    subject, function = f"gpu:{gpu.id}", find_function(case, gpu)
    absent = unreachable_reason(function)
    if gpu.vendor != "AMD":
        return NotApplicable(subject, "not of AMD")
    if absent and not is_off_bus(function):
        return NotApplicable(subject, absent)
    if gpu.driver_state == "open":
        return Pass(subject)
    if gpu.driver_state in ("vfio", "no_driver"):
        return NotApplicable(subject, "amdgpu is not bound to it")
    if gpu.driver_state != "not_open":
        return Unknown(subject, gpu.driver_error or case.probe_failure("gpu") or "the driver's list does not show")
    if case.virtual_machine or function is None or function.driver is None:
        return Unknown(subject, "not in the driver's graph; whether it should be is not known")
    return _fail_missing(case, gpu)


def _fail_missing(case: RuleContext, gpu: Gpu) -> Fail:
    all_of = [each for each in case.topology.gpus if each.vendor == "AMD"]
    usable = sum(each.driver_state == "open" for each in all_of)
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary="on the PCI bus with amdgpu bound, but the compute driver does not offer it",
        impact=f"{usable} of {len(all_of)} GPUs can be used; jobs that ask for all do not start.",
        remedy="Read the kernel log for this address; reset the GPUs, reload the driver or power cycle; or replace it.",
        evidence=(
            Evidence(what="on the PCI bus", value=gpu.id, source="lspci -d 1002: -nnk"),
            Evidence(what="in the driver's graph", value=f"{usable} GPUs, not this one", source=f"{KFD}/*/properties"),
            *kernel_log_evidence(case, gpu.id),
        ),
        places=frozenset({gpu.id}),
    )
