"""Gaudi cards that cannot be used, and module ids that are not each once."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_off_bus, kernel_log_evidence, unreachable_reason
from agent.rules.gates import HABANA
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

ACCEL = "/sys/class/accel"
_BROKEN = "Malfunction"


def gaudi_cards(case: RuleContext) -> list[Gpu]:
    """The Gaudi cards of a node."""
    return [gpu for gpu in case.topology.gpus if gpu.vendor == HABANA]


@rule("gaudi-missing")
def gaudi_missing(case: RuleContext) -> Iterator[Result]:
    cards = gaudi_cards(case)
    for gpu in cards:
        yield _judge_missing(case, gpu, cards)


def _judge_missing(case: RuleContext, gpu: Gpu, cards: list[Gpu]) -> Result:
    subject, function = f"gpu:{gpu.id}", find_function(case, gpu)
    absent = unreachable_reason(function)
    if absent and not is_off_bus(function):
        return NotApplicable(subject, absent)
    if gpu.driver_state in ("open", "error"):
        return Pass(subject)
    if gpu.driver_state in ("vfio", "no_driver"):
        return NotApplicable(subject, "habanalabs is not bound to it")
    if gpu.driver_state != "not_open":
        return Unknown(subject, gpu.driver_error or case.probe_failure("gpu") or "the driver's list does not show")
    usable = sum(each.driver_state == "open" for each in cards)
    return Fail(
        subject=subject,
        label=gpu.label,
        summary="on the PCI bus with habanalabs bound, but the driver offers no device of it",
        impact=f"{usable} of {len(cards)} cards can be used; jobs that ask for all do not start.",
        remedy="Read the kernel log for this address; reload the driver or power cycle; or replace the card.",
        evidence=(
            Evidence(what="on the PCI bus", value=gpu.id, source="lspci -d 1da3: -nnk"),
            Evidence(what="device of the driver", value="none", source=f"{ACCEL}/*/device/pci_addr"),
            *kernel_log_evidence(case, gpu.id),
        ),
        places=frozenset({gpu.id}),
    )


@rule("gaudi-status")
def gaudi_status(case: RuleContext) -> Iterator[Result]:
    for gpu in gaudi_cards(case):
        subject, absent = f"gpu:{gpu.id}", unreachable_reason(find_function(case, gpu))
        if absent or gpu.driver_state not in ("open", "error"):
            yield NotApplicable(subject, absent or "the driver does not offer it")
        elif gpu.driver_state == "open":
            yield Pass(subject)
        else:
            yield _fail_status(case, gpu)


def _fail_status(case: RuleContext, gpu: Gpu) -> Fail:
    broken = gpu.driver_error == _BROKEN
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"the driver reports the state {gpu.driver_error}",
        impact="The card takes no jobs." if broken else "The card takes no jobs until the driver has finished with it.",
        remedy="Drain the node and reset or power cycle it; replace the card where the state comes back.",
        evidence=(
            Evidence(what=f"status of {gpu.label}", value=gpu.driver_error or "", source=f"{ACCEL}/*/device/status"),
            *kernel_log_evidence(case, gpu.id),
        ),
        severity=None if broken else "warning",
        places=frozenset({gpu.id}),
    )


@rule("gaudi-module-id")
def gaudi_module_id(case: RuleContext) -> Iterator[Result]:
    cards = [gpu for gpu in gaudi_cards(case) if unreachable_reason(find_function(case, gpu)) is None]
    by_module: dict[int, list[Gpu]] = {}
    for gpu in cards:
        if gpu.module_id is None:
            yield Unknown(f"gpu:{gpu.id}", gpu.driver_error or "the driver states no module id")
        else:
            by_module.setdefault(gpu.module_id, []).append(gpu)
    for module, group in sorted(by_module.items()):
        if len(group) == 1:
            yield Pass(f"gpu:{group[0].id}")
            continue
        yield Fail(
            subject="node",
            label="node",
            summary=f"{join_labels([gpu.label for gpu in group])} have the same module id {module}",
            impact="The collective library takes one for the other: it opens connections over ports that do not meet.",
            remedy="Compare the firmware of board and cards with that of a good node; then have the board serviced.",
            evidence=tuple(
                Evidence(what=f"module of {gpu.label}", value=str(module), source=f"{ACCEL}/*/device/module_id")
                for gpu in group
            ),
            cause=f"module {module}",
            places=frozenset(gpu.id for gpu in group),
        )
