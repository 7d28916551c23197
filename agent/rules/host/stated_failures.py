"""The rules about failures that others state: drivers in the kernel log, services of the node, and tools.

What they mean is read where there are any: most sources have none.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import none_logged
from agent.rules.rule import NODE, Fail, Result, rule


@rule("driver-reports-failure")
def driver_reports_failure(context: RuleContext) -> Iterator[Result]:
    faults: list[Fail] = []
    if events := [event for event in context.events if event.kind == "driver"]:
        from agent.rules.host.driver_findings import list_driver_faults

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


@rule("service-reports-failure")
def service_reports_failure(context: RuleContext) -> Iterator[Result]:
    if events := [event for event in context.events if event.kind == "service"]:
        from agent.rules.host.service_sentences import judge_services

        faults = list(judge_services(context, events))
        yield from faults
        if faults:
            return
    run, unread = context.probes.get("services"), context.why_probe_failed("services")
    if unread and unread.code in ("evidence-absent", "evidence-not-run"):
        yield NODE.not_applicable("not-measured", detail="no log and no state of a service is there")
    elif run and run.reason_code == "service-log-unread":
        yield NODE.unknown(unread or quote_source(run.reason) or Reason("not-read", fact="a log of a service"))
    else:
        yield NODE.unknown(unread) if unread else NODE.passes()


@rule("tool-reports-fault")
def tool_reports_fault(context: RuleContext) -> Iterator[Result]:
    faults: list[Fail] = []
    if events := [event for event in context.events if event.kind == "tool"]:
        from agent.rules.host.tool_findings import list_tool_faults

        faults = list(list_tool_faults(context, events))
        yield from faults
    if not faults:
        why = context.why_probe_failed("tool_reports")
        if why is None:
            yield NODE.passes()
        elif why.code == "evidence-failed":
            yield NODE.unknown(why)
        else:
            yield NODE.not_applicable("not-measured", detail="no saved output of a tool that states faults")
