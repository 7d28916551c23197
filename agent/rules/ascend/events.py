"""What the driver of NPUs writes into the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import Event
from agent.rules.ascend.npus import find_npus
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, none_logged
from agent.rules.rule import NODE, Result, rule

_FAULTS = {  # the vendor's levels and words (mind-cluster, faultCode.json and kg-config.json)
    "0x81078605": ("warning", "some lanes of a RoCE port are faulty"),
    "0x81A38605": ("warning", "some lanes of an HCCS port are faulty"),
    "0x8107800D": ("warning", "a RoCE port is abnormal"),
    "0x80B98000": ("error", "the PCIe module of an NPU is abnormal"),
    "0x80B98008": ("error", "uncorrectable ECC error in the PCIe module of an NPU"),
    "0x80BB8000": ("warning", "the RoCE module of an NPU is abnormal"),
    "0x80BB8008": ("warning", "uncorrectable ECC error in the RoCE module of an NPU"),
    "0x80BD8000": ("warning", "the NIC of an NPU is abnormal"),
    "0x80BD8008": ("error", "uncorrectable ECC error in the NIC of an NPU"),
    "0x81AF8000": ("error", "the UB module of an NPU is abnormal"),
    "0x81078603": ("info", "a RoCE port went down; the driver brings it up again by itself"),
    "0x81B18603": ("info", "a UB port went down; the driver brings it up again by itself"),
}


@rule("npu-heartbeat-lost")
def npu_heartbeat_lost(context: RuleContext) -> Iterator[Result]:
    yield from _judge_log(context, "npu_heartbeat")
    lost: dict[str, Event] = {}
    for event in context.events:
        if event.kind == "npu_heartbeat":
            lost[event.detail.get("device", "")] = event
    for device, event in sorted(lost.items()):
        npu = next((npu for npu in find_npus(context) if device == str(npu.index)), None)
        yield (about_gpu(npu) if npu else NODE).fail(
            summary=f"the driver lost the heartbeat of device {device}",
            impact="The NPU does not answer: jobs on it hang or end.",
            evidence=(Evidence(f"kernel log, {_format_time(event)}", event.text, event.source),),
            cause=f"device {device}" if npu is None else "",
            ids=frozenset({npu.id if npu else f"npu-{device}"}),
        )


@rule("npu-fault-event")
def npu_fault_event(context: RuleContext) -> Iterator[Result]:
    yield from _judge_log(context, "npu_fault")
    last: dict[str, Event] = {}
    for event in context.events:
        if event.kind == "npu_fault":
            last[f"0x{event.code[2:].upper()}" if event.code else ""] = event
    for code, event in sorted(last.items()):
        if code not in _FAULTS:
            yield NODE.unknown(
                "undecided", detail=f"event {code or 'without a code'} of the NPU driver has no level here"
            )
            continue
        severity, words = _FAULTS[code]
        yield NODE.fail(
            summary=f"{words} (event {code})",
            impact="Links of this NPU are slow, or lost, until it is reset."
            if severity != "info"
            else "The port was down for a moment; a job that used it then may have ended.",
            evidence=(Evidence(f"kernel log, {_format_time(event)}", event.text, event.source),),
            severity=severity,
            cause=code,
            situation="reset" if severity == "error" else "",
            ids=frozenset({f"npu-event-{code}"}),
        )


def _judge_log(context: RuleContext, kind: str) -> Iterator[Result]:
    """The answer where the log has no such line."""
    if any(event.kind == kind for event in context.events):
        return
    if not find_npus(context):
        yield NODE.not_applicable("no-such-device", detail="no Ascend NPU")
    else:
        yield none_logged(context, NODE)


def _format_time(event: Event) -> str:
    return event.at or event.logged or "no date"
