"""Neuron devices that their driver does not offer."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.devices import find_offered, kernel_log_evidence
from agent.rules.gates import AMAZON
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.rule import Fail, Result, rule


@rule("neuron-missing")
def neuron_missing(case: RuleContext) -> Iterator[Result]:
    devices = [gpu for gpu in case.topology.gpus if gpu.vendor == AMAZON]
    answers = (_judge_missing(case, gpu, devices) for gpu in devices)
    yield from aggregate_node_wide(answers, "neuron-ls lists no device of those on the PCI bus")


def _judge_missing(case: RuleContext, gpu: Gpu, devices: list[Gpu]) -> Result:
    answer = find_offered(case, gpu, "the Neuron driver", "neuron-ls does not list it")
    if answer:
        return answer
    usable = sum(device.driver_state == "open" for device in devices)
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary="on the PCI bus with the Neuron driver bound, but neuron-ls does not list it",
        impact=f"{usable} of {len(devices)} devices can be used; jobs that ask for all do not start.",
        evidence=(
            Evidence(what="on the PCI bus", value=gpu.id, source="lspci -d 1d0f: -nnk"),
            Evidence(what="listed by neuron-ls", value=f"{usable} devices, not this one", source="neuron-ls"),
            *kernel_log_evidence(case, gpu.id),
        ),
        places=frozenset({gpu.id}),
    )
