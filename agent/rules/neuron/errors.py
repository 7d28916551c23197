"""Hardware errors of Neuron devices: ECC counts, runs that the runtime counts, and lines of the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.node import Event
from agent.model.reasons import Reason, quote_source
from agent.rules.applicability import AMAZON
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, find_function, quote_log, why_unreachable
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import count_of

_LOST = ("mem_ecc_uncorrected", "sram_ecc_uncorrected")
_REPAIRABLE = "mem_ecc_repairable_uncorrected"
_RUNS = ("hw_error", "hw_hbm_ue_error", "hw_repairable_hbm_ue_error", "hw_nc_ue_error", "hw_dma_abort_error")
_FOLDER = "/sys/devices/virtual/neuron_device"
_REPLACE = "TERMINATE_INSTANCE"


def _neuron_devices(context: RuleContext) -> Iterator[tuple[Gpu, Reason | None]]:
    """Every device, and why it is not to be judged."""
    for gpu in context.topology.gpus:
        if gpu.vendor == AMAZON:
            yield gpu, why_unreachable(find_function(context, gpu))


@rule("neuron-ecc")
def neuron_ecc(context: RuleContext) -> Iterator[Result]:
    for gpu, absent in _neuron_devices(context):
        yield about_gpu(gpu).not_applicable(absent) if absent else _judge_ecc(context, gpu)


def _judge_ecc(context: RuleContext, gpu: Gpu) -> Result:
    about = about_gpu(gpu)
    lost = {name: gpu.error_counts[name] for name in _LOST if gpu.error_counts.get(name)}
    if lost:
        return about.fail(
            summary="uncorrectable memory errors since the device was started: "
            + ", ".join(f"{count} in {name.partition('_')[0].upper()}" for name, count in lost.items()),
            impact="Results of this device may be wrong, and its jobs end.",
            evidence=tuple(
                Evidence(name, str(count), f"{_FOLDER}/neuron{gpu.index}/stats/hardware/{name}")
                for name, count in lost.items()
            ),
            cause="uncorrected",
            situation="memory-errors",
        )
    if any(name not in gpu.error_counts for name in _LOST):
        return about.unknown(_why_no_counts(context))
    if not gpu.error_counts.get(_REPAIRABLE):  # drivers before 2.23 have no such count
        return about.passes()
    moved = context.counter_delta(about.subject, _REPAIRABLE, gpu.error_counts)
    if context.why_not_counted or moved is None:
        return about.unknown(context.why_not_counted or context.why_no_delta(about.subject, _REPAIRABLE))
    if not moved:
        return about.passes()
    source = f"{_FOLDER}/neuron{gpu.index}/stats/hardware/{_REPAIRABLE}"
    return about.fail(
        summary=f"{count_of(moved, 'uncorrectable memory errors')} since the earlier sample, which can be repaired",
        impact="Results that were computed at that time may be wrong; the repair waits for a restart.",
        evidence=(Evidence(_REPAIRABLE, f"+{moved}", source),),
        severity="warning",
        cause="repairable",
        situation="other",
    )


def _why_no_counts(context: RuleContext) -> Reason:
    run = context.probes.get("neuron_errors")
    text = "the driver shows no error counts of a device with this number"
    return quote_source(run.reason if run else None) or Reason("not-shown", detail=text)


@rule("neuron-hw-errors")
def neuron_hw_errors(context: RuleContext) -> Iterator[Result]:
    logged: dict[str, list[Event]] = {}
    for event in context.events:
        if event.kind == "neuron_hw":
            logged.setdefault(event.detail.get("device", ""), []).append(event)
    for gpu, absent in _neuron_devices(context):
        if events := logged.pop(str(gpu.index), None):
            yield _fail_logged(gpu, events)
        else:
            yield about_gpu(gpu).not_applicable(absent) if absent else _judge_runs(context, gpu)
    for _, events in sorted(logged.items()):
        yield _fail_logged(None, events)


def _fail_logged(gpu: Gpu | None, events: list[Event]) -> Fail:
    device = events[0].detail.get("device", "")
    replace = any(event.detail.get("action") == _REPLACE for event in events)
    kinds = ", ".join(sorted({(event.code or "").replace("_", " ").lower() for event in events}))
    return (about_gpu(gpu) if gpu else NODE).fail(
        summary=f"the runtime logged a hardware error of device {device}: {kinds}",
        impact="Jobs on this device end, or compute with wrong data.",
        evidence=tuple(quote_log(event) for event in events[-4:]),
        severity="error" if replace else None,
        cause="" if gpu else f"device {device}",
        ids=frozenset({gpu.id if gpu else f"neuron-{device}"}),
        situation="memory-errors" if replace else "other",
    )


def _judge_runs(context: RuleContext, gpu: Gpu) -> Result:
    about = about_gpu(gpu)
    counts = {name: gpu.error_counts[name] for name in _RUNS if name in gpu.error_counts}
    if not counts:
        return about.unknown(_why_no_counts(context))
    if context.why_not_counted:
        return about.unknown(context.why_not_counted)
    moves = {name: context.counter_delta(about.subject, name, counts) for name in counts}
    grown = {name: move for name, move in moves.items() if move}
    if grown:
        folder = f"{_FOLDER}/neuron{gpu.index}/neuron_core*/stats/status"
        return about.fail(
            summary=f"runs ended with a hardware error since the earlier sample: {max(grown.values())}",
            impact="Jobs on this device end, or compute with wrong data.",
            evidence=tuple(Evidence(name, f"+{move}", f"{folder}/{name}/total") for name, move in grown.items()),
            situation="other",
        )
    gap = next((name for name, move in moves.items() if move is None), None)
    return about.unknown(context.why_no_delta(about.subject, gap)) if gap else about.passes()
