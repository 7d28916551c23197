"""GPU modules by the numbers that they report: sockets of a baseboard, or of a tray, that are empty."""

from __future__ import annotations

from collections.abc import Collection

from agent.model.finding import Evidence
from agent.rules import applicability
from agent.rules.context import RuleContext
from agent.rules.devices import TRAY_GPUS, find_device_id
from agent.rules.host.profile import expected_number, profile_evidence, severity_by_confidence
from agent.rules.rule import NODE, Result, rule
from agent.rules.wording import format_ranges


@rule("gpu-module-missing")
def gpu_module_missing(context: RuleContext) -> Result:
    modules = [gpu.module_id for gpu in context.topology.gpus if gpu.driver_state == "open"]
    reported = {module for module in modules if module}
    expected = context.profile.module_ids if context.profile else None
    due = expected_number(expected) or _sockets_of_tray(context, reported)
    if due is None:
        return applicability.has_profile(context) or NODE.not_applicable(
            "no-profile", detail="the profile has no sockets"
        )
    if context.virtual_machine or context.node.container or context.node.job_limit or not reported:
        return NODE.not_applicable("no-such-device", detail="no GPU reports a module, or not all GPUs are given to us")
    if len(reported) < len(modules):
        return NODE.unknown("not-shown", detail="some GPUs report the number of their socket, and some do not")
    missing = set(range(1, due + 1)) - reported
    if not missing:
        return NODE.passes()
    handed_over = [gpu for gpu in context.topology.gpus if gpu.driver_state == "vfio"]
    if len(missing) <= len(handed_over):
        return NODE.not_applicable("guest", detail="the GPUs of the other sockets are handed to virtual machines")
    known = (profile_evidence(context.profile, "sockets", expected),) if context.profile and expected else ()
    return NODE.fail(
        summary=f"no GPU in socket {format_ranges(missing)} of the {'baseboard' if known else 'tray'}",
        impact=f"{len(missing)} of {due}{'' if known else ' or more'} GPUs "
        f"{'is' if len(missing) == 1 else 'are'} not there.",
        evidence=(Evidence("modules reported", format_ranges(reported), "nvidia-smi -q"), *known),
        severity=severity_by_confidence(context, expected, "warning") if expected else "error",
        cause=f"socket {format_ranges(missing)}",
        ids=frozenset({"count of GPUs", *(g.id for g in context.topology.gpus if g.driver_state != "open")}),
    )


def _sockets_of_tray(context: RuleContext, reported: Collection[int]) -> int | None:
    """The highest number that a GPU of a rack's tray reports: a tray that lost many GPUs is not recognized.

    A board with fewer GPUs per CPU is in no rack, and numbers those that it has.
    """
    in_rack = context.node.chassis.slot or context.node.chassis.tray
    models = {find_device_id(context, gpu) for gpu in context.topology.gpus}
    return max(reported, default=None) if in_rack and models.issubset(TRAY_GPUS) else None
