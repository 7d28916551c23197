"""Errors of CXL memory: poisoned ranges that a saved list has, and protocol errors that firmware reported."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import Event
from agent.model.pci import CxlDevice
from agent.rules.applicability import has_cxl
from agent.rules.context import RuleContext
from agent.rules.cxl.devices import cxl_devices, list_expanders
from agent.rules.devices import about_function, none_logged, quote_log
from agent.rules.pages import read_limit
from agent.rules.rule import Result, rule

_INJECTED, _EXTERNAL = "Injected", "External"  # by a test; poison that came from outside
_GRAVE = ("recoverable", "fatal")
_MANY = read_limit("cxl-errors-logged.corrected")


@rule("cxl-media-errors", each=list_expanders)
def cxl_media_errors(context: RuleContext, device: CxlDevice) -> Result:
    about, errors = about_function(context, device.id), device.media_errors
    if errors is None:
        return about.unknown("not-asked", detail="not in the source: save `cxl list --media-errors` as root")
    if not errors:
        return about.passes()
    count = sum(errors.values())
    return about.fail(
        summary=f"{count} poisoned memory range{'s' if count > 1 else ''}: "
        + ", ".join(f"{number} {source}" for source, number in sorted(errors.items())),
        impact="A process that reads such a range is killed; data in it is lost.",
        evidence=(
            Evidence(
                f"media errors of {device.memdev}",
                ", ".join(f"{source}: {number}" for source, number in sorted(errors.items())),
                f"cxl list -m {device.memdev} --media-errors",
            ),
        ),
        severity="info" if set(errors) == {_INJECTED} else None,
        situation="injected"
        if set(errors) == {_INJECTED}
        else "external"
        if set(errors) <= {_INJECTED, _EXTERNAL}
        else "",
    )


@rule("cxl-errors-logged")
def cxl_errors_logged(context: RuleContext) -> Iterator[Result]:
    lines: dict[str, list[Event]] = {}
    for event in context.events:
        if event.kind == "cxl_protocol" and event.subject and event.code in (*_GRAVE, "corrected"):
            lines.setdefault(_below(context, event.subject), []).append(event)
    if not lines and (answer := has_cxl(context)):
        yield answer
    for device in cxl_devices(context):
        if device.id not in lines:
            yield none_logged(context, about_function(context, device.id))
    for address in sorted(lines):
        events = lines[address]
        grave = [event for event in events if event.code in _GRAVE]
        count = sum(event.count for event in grave or events)
        many = count >= context.threshold(_MANY)
        kind = "uncorrected" if grave else "corrected"
        yield about_function(context, address).fail(
            summary=f"the firmware reported {count} {kind} CXL protocol error{'s' if count > 1 else ''}",
            impact="Data on the link was lost: processes that use this memory end, or the host does."
            if grave
            else "Each is repaired by a retry; a growing number often precedes an uncorrected one.",
            evidence=tuple(quote_log(event) for event in events[-6:]),
            severity="error" if grave else "warning" if many else "info",
            cause=kind,
        )


def _below(context: RuleContext, address: str) -> str:
    """The expander that a line is about: of a port, the one alone below it."""
    devices = [device.id for device in cxl_devices(context)]
    below = [
        function.id
        for function in context.topology.pci
        if function.id in devices and any(above.id == address for above in context.ancestors(function))
    ]
    return below[0] if len(below) == 1 else address
