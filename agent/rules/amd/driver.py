"""AMD GPUs that their driver does not offer, and a setting of the kernel that RCCL warns of."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.amd.gpus import KFD, NOT_OFFERED
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_off_bus, kernel_log_evidence, report_no_gpu, unreachable_reason
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule


@rule("amd-kfd-missing")
def amd_kfd_missing(case: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(case)
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


@rule("amd-numa-balancing")
def amd_numa_balancing(case: RuleContext) -> Iterator[Result]:
    value = case.software.kernel_settings.get("numa_balancing")
    if not any(gpu.vendor == "AMD" and gpu.driver_state not in NOT_OFFERED for gpu in case.topology.gpus):
        yield NotApplicable("node", "no GPU of AMD that the driver offers")
    elif value is None:
        yield Unknown("node", case.probe_failure("gpu") or "kernel.numa_balancing could not be read")
    elif value != "1":
        yield Pass("node")
    else:
        yield Fail(
            subject="node",
            label="node",
            summary="automatic NUMA balancing is on",
            impact="The kernel moves pages that GPUs use, and unmaps them meanwhile: RCCL warns of it at each start.",
            remedy="sysctl kernel.numa_balancing=0, and the same line in /etc/sysctl.d.",
            evidence=(Evidence(what="kernel.numa_balancing", value=value, source="/proc/sys/kernel/numa_balancing"),),
            places=frozenset({"node"}),
        )
