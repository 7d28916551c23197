"""The rule about faults as tools state them: health columns, diagnostics, Kubernetes and container runtimes."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.context import RuleContext
from agent.rules.rule import NODE, Fail, Result, rule

KIND = "tool"


@rule("tool-reports-fault")
def tool_reports_fault(context: RuleContext) -> Iterator[Result]:
    faults: list[Fail] = []
    if events := [event for event in context.events if event.kind == KIND]:
        from agent.rules.host.tool_findings import list_tool_faults  # lazy: few sources state any

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
