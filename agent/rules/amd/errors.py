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
    device_label,
    find_function,
    one_level_lower,
    quote_log,
    report_no_gpu,
    unreachable_reason,
)
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import count_of, join_labels

_BLOCK = "xgmi_wafl"
_UNCORRECTABLE, _CORRECTABLE = f"{_BLOCK}.uncorrectable", f"{_BLOCK}.correctable"
_PER_HOUR = read_limit("xgmi-errors.per_hour")
_RECENT = read_limit("amd-gpu-reset.recent_hours")
_START_SECONDS = 300.0  # after boot the driver resets GPUs that it finds in use


@rule("xgmi-errors")
def xgmi_errors(case: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(case)
    for gpu in case.topology.gpus:
        yield _judge_errors(case, gpu)
    unlisted: dict[str, list[Event]] = {}  # of a log alone, or of GPUs that left the bus
    for event in _uncorrectable_lines(case):
        if event.subject and event.subject not in case.gpus:
            unlisted.setdefault(event.subject, []).append(event)
    for subject in sorted(unlisted):
        yield _fail_uncorrectable(f"pci:{subject}", device_label(case, subject), 0, unlisted[subject])


def _uncorrectable_lines(case: RuleContext) -> list[Event]:
    lines = [event for event in case.events if event.kind == "amd_ras" and event.code == _BLOCK]
    return [event for event in lines if event.detail.get("severity") == "uncorrectable"]


def _judge_errors(case: RuleContext, gpu: Gpu) -> Result:
    subject, absent = f"gpu:{gpu.id}", unreachable_reason(find_function(case, gpu))
    if gpu.vendor != "AMD":
        return NotApplicable(subject, Reason("no-such-device", detail="not of AMD"))
    if absent or gpu.driver_state in NOT_OFFERED:
        return NotApplicable(subject, absent or Reason("not-measured", detail="the driver does not offer it"))
    lines = [event for event in _uncorrectable_lines(case) if event.subject == gpu.id]
    lost = gpu.error_counts.get(_UNCORRECTABLE, 0)
    if lost or lines:
        return _fail_uncorrectable(subject, gpu.label, lost, lines)
    if _UNCORRECTABLE not in gpu.error_counts:
        return Unknown(subject, Reason("not-shown", detail="the driver shows no error counts of XGMI"))
    return _judge_correctable(case, gpu)


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
        places=frozenset({address}),
    )


def _judge_correctable(case: RuleContext, gpu: Gpu) -> Result:
    subject = f"gpu:{gpu.id}"
    moved = case.moved(subject, _CORRECTABLE, gpu.error_counts)
    if moved is None or case.window is None or not case.window.seconds:
        return Unknown(subject, case.not_moved(subject, _CORRECTABLE))
    an_hour = moved * 3600 / case.window.seconds
    if an_hour < case.threshold(_PER_HOUR):
        return Pass(subject)
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"{count_of(moved, 'correctable XGMI errors')} in {case.window.seconds / 60:.0f} min",
        impact="Each is repaired by a retry; a growing number often precedes an uncorrectable one.",
        evidence=_count_evidence(gpu.id, _CORRECTABLE, f"+{moved}"),
        cause="correctable",
        places=frozenset({gpu.id}),
    )


def _count_evidence(address: str, name: str, value: str) -> tuple[Evidence, ...]:
    return (Evidence(what=name, value=value, source=f"/sys/bus/pci/devices/{address}/ras/{_BLOCK}_err_count"),)


@rule("amd-gpu-reset")
def amd_gpu_reset(case: RuleContext) -> Iterator[Result]:
    gpus = [gpu for gpu in case.topology.gpus if gpu.vendor == "AMD"]
    kinds = ("amd_reset", "amd_reset_failed")
    resets = [event for event in case.events if event.kind in kinds and not _is_at_start(case, event)]
    unread = case.probe_failure("kernel_log")
    if not gpus and not resets:
        yield NotApplicable("node", Reason("no-such-device", detail="no GPU of AMD"))
    elif resets:
        yield _fail_reset(case, resets)
    else:
        yield Unknown("node", Reason("log-not-read", why=unread)) if unread else Pass("node")


def _fail_reset(case: RuleContext, resets: list[Event]) -> Fail:
    """One finding: an error of one GPU resets all of its hive."""
    causes = [event for event in case.events if event.kind in ("amd_ras", "amd_fatal") and _is_grave(event)]
    root = min(causes, key=lambda event: event.first_at or event.at or "", default=None)
    places = sorted({event.subject for event in resets if event.subject})
    labels = join_labels([device_label(case, place) for place in places])
    about = root.subject if root and root.subject else places[0] if len(places) == 1 else ""
    gpu = case.gpus.get(about)
    long_ago = _is_long_ago(case, resets)
    lost = [event for event in case.events if event.kind == "amd_vram_lost"]
    failed = any(event.kind == "amd_reset_failed" for event in resets)
    first = f"; the first error is of {device_label(case, root.subject)}" if root and root.subject else ""
    return Fail(
        subject=f"gpu:{gpu.id}" if gpu else "node",
        label=gpu.label if gpu else "node",
        summary=f"{_describe_reset(case, resets, labels)}{first}{', long ago' if long_ago else ''}",
        impact="Jobs on these GPUs ended, and their memory was lost: end processes that still use it."
        if lost
        else "Jobs on these GPUs ended.",
        evidence=tuple(map(quote_log, [*([root] if root else []), *resets][:6] + lost[:1])),
        severity=one_level_lower("error") if long_ago else None,
        situation="failed" if failed else "",
        places=frozenset({*places, about} - {""}),
    )


def _describe_reset(case: RuleContext, resets: list[Event], labels: str) -> str:
    failed = sorted({event.subject for event in resets if event.kind == "amd_reset_failed" and event.subject})
    if not failed:
        return f"the driver reset {labels}"
    return f"the driver could not reset {join_labels([device_label(case, place) for place in failed])}"


def _is_grave(event: Event) -> bool:
    return event.kind == "amd_fatal" or event.detail.get("severity") == "uncorrectable"


def _is_at_start(case: RuleContext, event: Event) -> bool:
    """Whether a line is of the first minutes of this boot."""
    age, up = case.seconds_since(event.at), case.node.uptime_seconds
    return age is not None and up is not None and up - age < _START_SECONDS


def _is_long_ago(case: RuleContext, events: list[Event]) -> bool:
    ages, hours = [case.seconds_since(event.at) for event in events], case.threshold(_RECENT)
    return all(age is not None and age > 3600 * hours for age in ages)


@rule("amd-bad-pages")
def amd_bad_pages(case: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(case)
    lines: dict[str, list[Event]] = {}
    for event in case.events:
        if event.kind == "amd_bad_pages" and event.subject:
            lines.setdefault(event.subject, []).append(event)
    unread = case.probe_failure("kernel_log")
    for gpu in case.topology.gpus:
        if gpu.id in lines:
            continue
        if gpu.vendor != "AMD":
            yield NotApplicable(f"gpu:{gpu.id}", Reason("no-such-device", detail="not of AMD"))
        elif unread:
            yield Unknown(f"gpu:{gpu.id}", Reason("log-not-read", why=unread))
        else:
            yield Pass(f"gpu:{gpu.id}")
    for address in sorted(lines):  # of a log alone, or of GPUs that left the bus, too
        yield _fail_bad_pages(case, address, lines[address])


def _fail_bad_pages(case: RuleContext, address: str, lines: list[Event]) -> Fail:
    return Fail(
        subject=f"{'gpu' if address in case.gpus else 'pci'}:{address}",
        label=device_label(case, address),
        summary="as many pages of its memory are bad as the driver allows",
        impact="The driver does not start this GPU again after the next load of amdgpu or restart.",
        evidence=tuple(map(quote_log, lines[-6:])),
        places=frozenset({address}),
    )
