"""GPU modules by the numbers that they report: sockets of a baseboard, or of a tray, that are empty."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agent.model.finding import Evidence
from agent.model.reasons import Reason
from agent.rules import gates
from agent.rules.context import RuleContext
from agent.rules.devices import TRAY_GPUS, find_device_id
from agent.rules.host.profile import expected_number, profile_evidence, severity_by_confidence
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import format_ranges


@rule("gpu-module-missing")
def gpu_module_missing(case: RuleContext) -> Iterator[Result]:
    modules = [gpu.module_id for gpu in case.topology.gpus if gpu.driver_state == "open"]
    told = {module for module in modules if module}
    expected = case.profile.module_ids if case.profile else None
    due = expected_number(expected) or _sockets_of_tray(case, told)
    if due is None:
        yield gates.has_profile(case) or NotApplicable(
            "node", Reason("no-profile", detail="the profile has no sockets")
        )
        return
    if case.virtual_machine or case.node.container or case.node.job_limit or not told:
        yield NotApplicable(
            "node", Reason("no-such-device", detail="no GPU reports a module, or not all GPUs are given to us")
        )
        return
    if len(told) < len(modules):
        yield Unknown(
            "node", Reason("not-shown", detail="some GPUs report the number of their socket, and some do not")
        )
        return
    missing = set(range(1, due + 1)) - told
    if not missing:
        yield Pass("node")
        return
    handed_over = [gpu for gpu in case.topology.gpus if gpu.driver_state == "vfio"]
    if len(missing) <= len(handed_over):
        yield NotApplicable(
            "node", Reason("guest", detail="the GPUs of the other sockets are handed to virtual machines")
        )
        return
    known = (profile_evidence(case.profile, "sockets", expected),) if case.profile and expected else ()
    yield Fail(
        subject="node",
        label="node",
        summary=f"no GPU in socket {format_ranges(missing)} of the {'baseboard' if known else 'tray'}",
        impact=f"{len(missing)} of {due}{'' if known else ' or more'} GPUs "
        f"{'is' if len(missing) == 1 else 'are'} not there.",
        evidence=(Evidence(what="modules reported", value=format_ranges(told), source="nvidia-smi -q"), *known),
        severity=severity_by_confidence(case, expected, "warning") if expected else "error",
        cause=f"socket {format_ranges(missing)}",
        places=frozenset({"count of GPUs", *(g.id for g in case.topology.gpus if g.driver_state != "open")}),
    )


def _sockets_of_tray(case: RuleContext, told: Collection[int]) -> int | None:
    """The highest number that a GPU of a rack's tray reports: a tray that lost many GPUs is not recognized.

    A board with fewer GPUs per CPU is in no rack, and numbers those that it has.
    """
    in_rack = case.node.chassis.slot or case.node.chassis.tray
    models = {find_device_id(case, gpu) for gpu in case.topology.gpus}
    return max(told, default=None) if in_rack and models.issubset(TRAY_GPUS) else None
