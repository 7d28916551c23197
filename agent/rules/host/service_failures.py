"""The rule about what services of the node state of a fault."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.rule import NODE, Result, rule


@rule("service-reports-failure")
def service_reports_failure(context: RuleContext) -> Iterator[Result]:
    events = [event for event in context.events if event.kind == "service"]
    if events:
        from agent.rules.host.service_sentences import judge_services  # lazy: most logs state none

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
