"""Memory of GPUs: ECC errors, and repairs that wait or failed.

Places: "ID/memory" is about errors of a GPU's memory, "ID/remap" about its repair.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent.model.finding import SEVERITIES, Evidence
from agent.model.gpu import Gpu, GpuHealth
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, is_consumer, kernel_log_evidence, list_gpus
from agent.rules.gpu.health import gpu_ids, read_health, read_siblings, smi_source
from agent.rules.rule import Fail, Result, rule
from agent.rules.wording import join_labels

_NO_ECC = Reason("other-kind", detail="a consumer card: its memory has no ECC")


class _Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a GPU's memory."""

    severity: str
    cause: str
    what: str


@rule("gpu-ecc", each=list_gpus)
def gpu_ecc(context: RuleContext, gpu: Gpu) -> Result:
    about, health = about_gpu(gpu), read_health(context, gpu)
    if not isinstance(health, GpuHealth):
        return health
    problems = list(_list_problems(context, gpu, health))
    if problems:
        return _fail_ecc(context, gpu, health, problems)
    if health.ecc is False:
        return about.not_applicable(
            "not-configured", detail="ECC is off, on all GPUs of its model: errors are not counted"
        )
    if 0 in (health.uncorrectable_volatile, health.uncorrectable_aggregate):
        return about.passes()
    if is_consumer(context, gpu):
        return about.not_applicable(_NO_ECC)
    return about.unknown("not-shown", detail="no ECC counter is reported")


def _list_problems(context: RuleContext, gpu: Gpu, health: GpuHealth) -> Iterator[_Problem]:
    """The most severe first."""
    since, life = health.uncorrectable_volatile or 0, health.uncorrectable_aggregate or 0
    if health.sram_threshold_exceeded:
        yield _Problem("error", "sram-errors", "uncorrectable SRAM errors exceed the threshold for an exchange")
    if since:
        yield _Problem("error", "memory-errors", f"{_count(since)} since the driver was loaded")
    if health.ecc is False:
        on = [label for label, other in read_siblings(context, gpu).items() if other.ecc]
        if on:
            yield _Problem("warning", "ecc-off", f"ECC is off, and on for {join_labels(on)}")
    if life and not since:
        yield _Problem("info", "past-errors", f"{_count(life)} in its life, none known since the driver was loaded")


def _count(errors: int) -> str:
    return f"{errors} uncorrectable ECC error{'s' if errors > 1 else ''}"


def _fail_ecc(context: RuleContext, gpu: Gpu, health: GpuHealth, problems: list[_Problem]) -> Fail:
    severity = max((problem.severity for problem in problems), key=SEVERITIES.index)
    wrong = severity == "error"
    return about_gpu(gpu).fail(
        summary="; ".join(problem.what for problem in problems),
        impact="An uncorrectable error ends the job that meets it; the next one can meet it again."
        if wrong
        else "A flipped bit stays unnoticed: results can be wrong without an error."
        if severity == "warning"
        else "None by itself: a GPU with such a history is a suspect if jobs fail on it.",
        evidence=(*_counters(gpu, health), *kernel_log_evidence(context, gpu.pci or gpu.id)),
        severity=severity,
        cause=problems[0].cause,
        ids=gpu_ids(gpu, "/memory"),
        explains_ids=gpu_ids(gpu, "/memory") | gpu_ids(gpu, "/remap") if wrong else frozenset(),
    )


def _counters(gpu: Gpu, health: GpuHealth) -> Iterator[Evidence]:
    source = smi_source(gpu, "ECC")
    for what, value in (
        ("uncorrectable errors since the driver was loaded", health.uncorrectable_volatile),
        ("uncorrectable errors in its life", health.uncorrectable_aggregate),
        ("ECC mode", None if health.ecc is None else "Enabled" if health.ecc else "Disabled"),
    ):
        if value is not None:
            yield Evidence(what, str(value), source)


_PENDING = {
    "row_remap": "a row remapping", "page_retirement": "a page retirement", "channel": "the repair of a memory channel",
    "tpc": "the repair of a TPC",
}  # fmt: skip
_FAILED = {"row_remap": "row remapping failed", "memory": "the memory cannot be repaired"}


@rule("gpu-remap-pending", each=list_gpus)
def gpu_remap_pending(context: RuleContext, gpu: Gpu) -> Result:
    health = read_health(context, gpu)
    if not isinstance(health, GpuHealth):
        return health
    if not health.repairs_pending:
        return _answer_without(context, gpu, health.repairs_pending)
    what = join_labels([_PENDING.get(name, name) for name in health.repairs_pending])
    return about_gpu(gpu).fail(
        summary=f"{what} waits for a reset of the GPU",
        impact="Until then jobs can meet the bad memory again, and end.",
        evidence=(Evidence("pending", what, smi_source(gpu, "ECC,ROW_REMAPPER,PAGE_RETIREMENT")),),
        cause=health.repairs_pending[0],
        ids=gpu_ids(gpu, "/remap"),
    )


@rule("gpu-remap-failed", each=list_gpus)
def gpu_remap_failed(context: RuleContext, gpu: Gpu) -> Result:
    health = read_health(context, gpu)
    if not isinstance(health, GpuHealth):
        return health
    if not health.repairs_failed:
        if health.repairs_failed is None and health.repairs_pending is not None:
            return about_gpu(gpu).not_applicable(
                "other-kind", detail="a GPU before Ampere: it retires pages instead of remapping rows"
            )
        return _answer_without(context, gpu, health.repairs_failed)
    what = join_labels([_FAILED.get(name, name) for name in health.repairs_failed])
    return about_gpu(gpu).fail(
        summary=f"{what}: the GPU has to be exchanged",
        impact="Bad memory stays in use: jobs on this GPU keep ending with ECC errors.",
        evidence=(
            Evidence("failed", what, smi_source(gpu, "ECC,ROW_REMAPPER")),
            *kernel_log_evidence(context, gpu.pci or gpu.id),
        ),
        cause=health.repairs_failed[0],
        ids=gpu_ids(gpu, "/remap"),
        explains_ids=gpu_ids(gpu, "/memory") | gpu_ids(gpu, "/remap"),
    )


def _answer_without(context: RuleContext, gpu: Gpu, repairs: list[str] | None) -> Result:
    about = about_gpu(gpu)
    if repairs is not None:
        return about.passes()
    if is_consumer(context, gpu):
        return about.not_applicable(_NO_ECC)
    return about.unknown("not-shown", detail="no repair is reported")
