"""Errors of XGMI links and of memory, and resets of AMD GPUs, by their counters and the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.node import Event
from agent.model.reasons import Reason
from agent.rules.amd.gpus import NOT_OFFERED
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_function,
    about_gpu,
    device_label,
    find_function,
    none_logged,
    one_level_lower,
    quote_log,
    report_no_gpu,
    why_unreachable,
)
from agent.rules.pages import read_limit
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import count_of, join_labels

_BLOCK = "xgmi_wafl"
_UNCORRECTABLE, _CORRECTABLE = f"{_BLOCK}.uncorrectable", f"{_BLOCK}.correctable"
_PER_HOUR = read_limit("xgmi-errors.per_hour")
_RECENT = read_limit("amd-gpu-reset.recent_hours")
_SHOWN = 6
_START_SECONDS = 300.0  # after boot the driver resets GPUs that it finds in use


@rule("xgmi-errors")
def xgmi_errors(context: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(context)
    for gpu in context.topology.gpus:
        yield _judge_errors(context, gpu)
    unlisted: dict[str, list[Event]] = {}  # of a log alone, or of GPUs that left the bus
    for event in _uncorrectable_lines(context):
        if event.subject and event.subject not in context.gpus:
            unlisted.setdefault(event.subject, []).append(event)
    for subject in sorted(unlisted):
        yield _fail_uncorrectable(f"pci:{subject}", device_label(context, subject), 0, unlisted[subject])


def _uncorrectable_lines(context: RuleContext) -> list[Event]:
    lines = [event for event in context.events if event.kind == "amd_ras" and event.code == _BLOCK]
    return [event for event in lines if event.detail.get("severity") == "uncorrectable"]


def _judge_errors(context: RuleContext, gpu: Gpu) -> Result:
    about, absent = about_gpu(gpu), why_unreachable(find_function(context, gpu))
    if gpu.vendor != "AMD":
        return about.not_applicable("no-such-device", detail="not of AMD")
    if absent or gpu.driver_state in NOT_OFFERED:
        return about.not_applicable(absent or Reason("not-measured", detail="the driver does not offer it"))
    lines = [event for event in _uncorrectable_lines(context) if event.subject == gpu.id]
    lost = gpu.error_counts.get(_UNCORRECTABLE, 0)
    if lost or lines:
        return _fail_uncorrectable(about.subject, gpu.label, lost, lines)
    if _UNCORRECTABLE not in gpu.error_counts:
        return about.unknown("not-shown", detail="the driver shows no error counts of XGMI")
    moved = context.counter_delta(about.subject, _CORRECTABLE, gpu.error_counts)
    if moved is None or context.window is None or not context.window.seconds:
        return about.unknown(context.why_no_delta(about.subject, _CORRECTABLE))
    an_hour = moved * 3600 / context.window.seconds
    if an_hour < context.threshold(_PER_HOUR):
        return about.passes()
    return about.fail(
        summary=f"{count_of(moved, 'correctable XGMI errors')} in {context.window.seconds / 60:.0f} min",
        impact="Each is repaired by a retry; a growing number often precedes an uncorrectable one.",
        evidence=_count_evidence(gpu.id, _CORRECTABLE, f"+{moved}"),
        cause="correctable",
    )


def _fail_uncorrectable(subject: str, label: str, count: int, lines: list[Event]) -> Fail:
    errors = "uncorrectable XGMI errors"
    address = subject.partition(":")[2]
    return Fail(
        subject=subject,
        label=label,
        summary=f"{count_of(count, errors) if count else f'some {errors}'} since the driver was loaded",
        impact="Data between GPUs was lost: the job ended or computed with wrong data, and the hive is reset.",
        evidence=(
            *(_count_evidence(address, _UNCORRECTABLE, str(count)) if count else ()),
            *map(quote_log, lines[-6:]),
        ),
        severity="critical",
        cause="uncorrectable",
        ids=frozenset({address}),
    )


def _count_evidence(address: str, name: str, value: str) -> tuple[Evidence, ...]:
    return (Evidence(name, value, f"/sys/bus/pci/devices/{address}/ras/{_BLOCK}_err_count"),)


@rule("amd-gpu-reset")
def amd_gpu_reset(context: RuleContext) -> Iterator[Result]:
    kinds = ("amd_reset", "amd_reset_failed")
    resets = [event for event in context.events if event.kind in kinds and not _is_at_start(context, event)]
    graves = (event for event in context.events if _is_grave(event))
    errors = [event for event in graves if event.code != _BLOCK and not _is_at_start(context, event)]
    if resets:
        yield _fail_reset(context, resets)
    elif errors:
        for place in sorted({event.subject or "" for event in errors}):
            yield _fail_error(context, place, [event for event in errors if (event.subject or "") == place])
    elif any(gpu.vendor == "AMD" for gpu in context.topology.gpus):
        yield none_logged(context, NODE)
    else:
        yield NODE.not_applicable("no-such-device", detail="no GPU of AMD")


def _fail_error(context: RuleContext, place: str, errors: list[Event]) -> Fail:
    """An error of the hardware after which no reset was logged."""
    gpu, long_ago = context.gpus.get(place), _is_long_ago(context, errors)
    codes = join_labels(sorted({event.code for event in errors if event.code}))
    return (about_gpu(gpu) if gpu else (about_function(context, place) if place else NODE)).fail(
        label=device_label(context, place) if place else "node",
        summary=f"uncorrectable hardware error ({codes}){', long ago' if long_ago else ''}",
        impact="Data of the job on it was lost: it ended, or its results are wrong.",
        evidence=tuple(map(quote_log, errors[:_SHOWN])),
        severity=one_level_lower("error") if long_ago else None,
        cause="error",
        situation="error",
        ids=frozenset({place} - {""}),
    )


def _fail_reset(context: RuleContext, resets: list[Event]) -> Fail:
    """One finding: an error of one GPU resets all of its hive."""
    causes = [event for event in context.events if _is_grave(event)]
    root = min(causes, key=lambda event: event.first_at or event.at or "", default=None)
    ids = sorted({event.subject for event in resets if event.subject})
    labels = join_labels([device_label(context, place) for place in ids])
    about = root.subject if root and root.subject else ids[0] if len(ids) == 1 else ""
    gpu = context.gpus.get(about)
    long_ago = _is_long_ago(context, resets)
    lost = [event for event in context.events if event.kind == "amd_vram_lost"]
    failed = any(event.kind == "amd_reset_failed" for event in resets)
    where = f" ({root.code})" if root and root.code else ""
    first = f"; the first error is of {device_label(context, root.subject)}{where}" if root and root.subject else ""
    return (about_gpu(gpu) if gpu else about_function(context, about) if about else NODE).fail(
        label=device_label(context, about) if about else "node",
        summary=f"{_describe_reset(context, resets, labels)}{first}{', long ago' if long_ago else ''}",
        impact="Jobs on these GPUs ended, and their memory was lost: end processes that still use it."
        if lost
        else "Jobs on these GPUs ended.",
        evidence=tuple(map(quote_log, [*([root] if root else []), *resets][:6] + lost[:1])),
        severity=one_level_lower("error") if long_ago else None,
        situation="failed" if failed else "",
        ids=frozenset({*ids, about} - {""}),
    )


def _describe_reset(context: RuleContext, resets: list[Event], labels: str) -> str:
    failed = sorted({event.subject for event in resets if event.kind == "amd_reset_failed" and event.subject})
    if not failed:
        return f"the driver reset {labels}"
    return f"the driver could not reset {join_labels([device_label(context, place) for place in failed])}"


def _is_grave(event: Event) -> bool:
    return event.kind == "amd_fatal" or (event.kind == "amd_ras" and event.detail.get("severity") == "uncorrectable")


def _is_at_start(context: RuleContext, event: Event) -> bool:
    """Whether a line is of the first minutes of this boot."""
    age, up = context.seconds_since(event.at), context.node.uptime_seconds
    return age is not None and up is not None and up - age < _START_SECONDS


def _is_long_ago(context: RuleContext, events: list[Event]) -> bool:
    ages, hours = [context.seconds_since(event.at) for event in events], context.threshold(_RECENT)
    return all(age is not None and age > 3600 * hours for age in ages)


@rule("amd-bad-pages")
def amd_bad_pages(context: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(context)
    lines: dict[str, list[Event]] = {}
    for event in context.events:
        if event.kind == "amd_bad_pages" and event.subject:
            lines.setdefault(event.subject, []).append(event)
    for gpu in context.topology.gpus:
        if gpu.id in lines:
            continue
        if gpu.vendor != "AMD":
            yield about_gpu(gpu).not_applicable("no-such-device", detail="not of AMD")
        else:
            yield none_logged(context, about_gpu(gpu))
    for address in sorted(lines):  # of a log alone, or of GPUs that left the bus, too
        yield Fail(
            subject=f"{'gpu' if address in context.gpus else 'pci'}:{address}",
            label=device_label(context, address),
            summary="as many pages of its memory are bad as the driver allows",
            impact="The driver does not start this GPU again after the next load of amdgpu or restart.",
            evidence=tuple(map(quote_log, lines[address][-6:])),
            ids=frozenset({address}),
        )
