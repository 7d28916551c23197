"""The rule about what the kernel log states of a failure: of the driver of a device, or of the host."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.context import RuleContext
from agent.rules.devices import none_logged
from agent.rules.rule import NODE, Fail, Result, rule


@rule("driver-reports-failure")
def driver_reports_failure(context: RuleContext) -> Iterator[Result]:
    faults: list[Fail] = []
    if events := [event for event in context.events if event.kind == "driver"]:
        from agent.rules.host.driver_findings import list_driver_faults  # lazy: few logs state any

        faults += list_driver_faults(context, events)
    if any(event.kind == "unexplained" for event in context.events):
        from agent.rules.host.unexplained import find_unexplained

        faults += find_unexplained(context)
    yield from faults
    if not faults:
        if not context.has_devices and not context.why_bus_unread:
            yield NODE.not_applicable("no-such-device", detail="no GPU and no NIC")
        else:
            yield none_logged(context, NODE)
