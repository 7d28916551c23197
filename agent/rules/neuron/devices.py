"""Neuron devices that their driver does not offer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.applicability import AMAZON
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, find_offered, kernel_log_evidence
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import format_ranges

_MOST_OF_THEM = 4  # devices that are listed, for each that is not


@rule("neuron-missing")
def neuron_missing(context: RuleContext) -> Iterator[Result]:
    devices = [gpu for gpu in context.topology.gpus if gpu.vendor == AMAZON]
    answers = (_judge_missing(context, gpu, devices) for gpu in devices)
    yield from aggregate_node_wide(answers, "neuron-ls lists no device of those on the PCI bus")
    if all(device.driver_state != "not_open" for device in devices):
        yield from _find_unlisted(devices, {gpu.index for gpu in context.topology.gpus})


def _find_unlisted(devices: list[Gpu], listed: set[int | None]) -> Iterator[Fail]:
    """Devices that several others name as the other end of a link, and that are not listed: a few of many. A container
    that is given a part of the devices hides more."""
    named = Counter(link.link for device in devices for link in device.links if link.protocol == "neuron")
    missing = sorted(number for number, count in named.items() if number not in listed and count > 1)
    if not missing or len(missing) * _MOST_OF_THEM > len(devices):
        return
    those = f"device{'s' if len(missing) > 1 else ''} {format_ranges(missing)}"
    yield NODE.fail(
        summary=f"neuron-ls does not list {those}, to which other devices have links",
        impact=f"{len(devices)} of {len(devices) + len(missing)} devices can be used; jobs that ask for all do not "
        "start.",
        evidence=(Evidence("listed by neuron-ls", f"{len(devices)} devices, not {those}", "neuron-ls"),),
        confidence="medium",
        cause="unlisted",
        ids=frozenset(f"neuron {number}" for number in missing),
    )


def _judge_missing(context: RuleContext, gpu: Gpu, devices: list[Gpu]) -> Result:
    answer = find_offered(context, gpu, "the Neuron driver", "neuron-ls does not list it")
    if answer:
        return answer
    usable = sum(device.driver_state == "open" for device in devices)
    if usable and not any(device.driver_state == "open" and device.pci for device in devices):
        detail = "the devices that neuron-ls lists are at other addresses than those on the PCI bus"
        return about_gpu(gpu).unknown("sources-disagree", detail=detail)
    return about_gpu(gpu).fail(
        summary="on the PCI bus with the Neuron driver bound, but neuron-ls does not list it",
        impact=f"{usable} of {len(devices)} devices can be used; jobs that ask for all do not start.",
        evidence=(
            Evidence("on the PCI bus", gpu.id, "lspci -d 1d0f: -nnk"),
            Evidence("listed by neuron-ls", f"{usable} devices, not this one", "neuron-ls"),
            *kernel_log_evidence(context, gpu.id),
        ),
    )
