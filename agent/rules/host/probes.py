"""Probes of this node that did not come back."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.context import RuleContext
from agent.rules.rule import NODE, Pass, Result, rule

_GPU_DRIVER = frozenset({"nvml", "nvidia_smi"})


@rule("probe-hung")
def probe_hung(context: RuleContext) -> Iterator[Result]:
    for run in context.probes.values():
        if not run.hung:
            yield Pass(f"probe:{run.name}")
            continue
        yield NODE.fail(
            label=f"probe {run.name}",
            summary="the probe hangs in the kernel and cannot be killed",
            impact="Jobs that use the same driver hang as well; usually only a reboot helps.",
            evidence=(
                Evidence(f"process of the {run.name} probe", run.reason or "no answer", "ps -o stat,wchan,lstart"),
            ),
            severity="critical" if run.name in _GPU_DRIVER else "error",
            cause=run.name,
            ids=frozenset(),
        )
