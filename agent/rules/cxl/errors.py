"""Errors of CXL memory: poisoned ranges that a saved list has, and protocol errors that firmware reported."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import Event
from agent.model.pci import CxlDevice
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.cxl.devices import cxl_devices, report_no_cxl, subject_of
from agent.rules.devices import device_label, quote_log
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, Pass, Result, Unknown, rule

_INJECTED, _EXTERNAL = "Injected", "External"  # by a test; poison that came from outside
_GRAVE = ("recoverable", "fatal")
_MANY = read_limit("cxl-errors-logged.corrected")


@rule("cxl-media-errors")
def cxl_media_errors(case: RuleContext) -> Iterator[Result]:
    yield from report_no_cxl(case)
    for device in cxl_devices(case):
        yield _judge_media(case, device)


def _judge_media(case: RuleContext, device: CxlDevice) -> Result:
    subject, errors = subject_of(device), device.media_errors
    if errors is None:
        return Unknown(
            subject,
            Reason("not-asked", detail="not in the source: save `cxl list --media-errors` as root"),
        )
    if not errors:
        return Pass(subject)
    count = sum(errors.values())
    return Fail(
        subject=subject,
        label=device_label(case, device.id),
        summary=f"{count} poisoned memory range{'s' if count > 1 else ''}: "
        + ", ".join(f"{number} {source}" for source, number in sorted(errors.items())),
        impact="A process that reads such a range is killed; data in it is lost.",
        evidence=(
            Evidence(
                what=f"media errors of {device.memdev}",
                value=", ".join(f"{source}: {number}" for source, number in sorted(errors.items())),
                source=f"cxl list -m {device.memdev} --media-errors",
            ),
        ),
        severity="info" if set(errors) == {_INJECTED} else None,
        situation="injected"
        if set(errors) == {_INJECTED}
        else "external"
        if set(errors) <= {_INJECTED, _EXTERNAL}
        else "",
        places=frozenset({device.id}),
    )


@rule("cxl-errors-logged")
def cxl_errors_logged(case: RuleContext) -> Iterator[Result]:
    lines: dict[str, list[Event]] = {}
    for event in case.events:
        if event.kind == "cxl_protocol" and event.subject and event.code in (*_GRAVE, "corrected"):
            lines.setdefault(_below(case, event.subject), []).append(event)
    if not lines:
        yield from report_no_cxl(case)
    unread = case.probe_failure("kernel_log")
    for device in cxl_devices(case):
        if device.id not in lines:
            yield (
                Unknown(subject_of(device), Reason("log-not-read", why=unread)) if unread else Pass(subject_of(device))
            )
    for address in sorted(lines):
        yield _fail_logged(case, address, lines[address])


def _below(case: RuleContext, address: str) -> str:
    """The expander that a line is about: of a port, the one alone below it."""
    devices = [device.id for device in cxl_devices(case)]
    below = [
        function.id
        for function in case.topology.pci
        if function.id in devices and any(above.id == address for above in case.ancestors(function))
    ]
    return below[0] if len(below) == 1 else address


def _fail_logged(case: RuleContext, address: str, events: list[Event]) -> Fail:
    grave = [event for event in events if event.code in _GRAVE]
    count = sum(event.count for event in grave or events)
    many = count >= case.threshold(_MANY)
    kind = "uncorrected" if grave else "corrected"
    return Fail(
        subject=f"pci:{address}",
        label=device_label(case, address),
        summary=f"the firmware reported {count} {kind} CXL protocol error{'s' if count > 1 else ''}",
        impact="Data on the link was lost: processes that use this memory end, or the host does."
        if grave
        else "Each is repaired by a retry; a growing number often precedes an uncorrected one.",
        evidence=tuple(quote_log(event) for event in events[-6:]),
        severity="error" if grave else "warning" if many else "info",
        cause=kind,
        places=frozenset({address}),
    )
