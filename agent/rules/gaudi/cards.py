"""Gaudi cards that cannot be used, and module ids that are not each once."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason, quote_source
from agent.rules.applicability import HABANA
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_gpu,
    find_function,
    find_lost_addresses,
    find_offered,
    kernel_log_evidence,
    why_unreachable,
)
from agent.rules.node_wide import aggregate_node_wide, on_all
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import format_ranges, join_labels

ACCEL = "/sys/class/accel"
_BROKEN = "Malfunction"
_ON_BOARD = 8  # modules of the boards HLS2 and HLS3
TO_OTHERS = 21  # ports of a module that these boards join to its seven others; boards of PCIe cards join 18


def gaudi_cards(context: RuleContext) -> list[Gpu]:
    """The Gaudi cards of a node."""
    return [gpu for gpu in context.topology.gpus if gpu.vendor == HABANA]


@rule("gaudi-missing")
def gaudi_missing(context: RuleContext) -> Iterator[Result]:
    cards = gaudi_cards(context)
    answers = (_judge_missing(context, gpu, cards) for gpu in cards)
    yield from aggregate_node_wide(answers, "the driver offers no device of any Gaudi card")
    yield from _judge_board(context, cards)


def is_on_module_board(gpu: Gpu) -> bool:
    """Whether a card is a module on a board of eight: by the number of its ports that the board's wiring joins."""
    return sum(link.remote is not None and link.remote.kind == "gpu" for link in gpu.links) == TO_OTHERS


def _judge_board(context: RuleContext, cards: list[Gpu]) -> Iterator[Result]:
    """Modules that are not on the bus. Servers with PCIe cards have any number of them."""
    on_bus = [gpu for gpu in cards if gpu.pci]
    if not any(is_on_module_board(gpu) for gpu in cards):
        return
    if context.virtual_machine or not context.node.virtualization_known:
        yield NODE.not_applicable(
            "guest", detail="a virtual machine, or it is not known: it has the cards that it was given"
        )
    elif context.why_bus_unread:
        yield NODE.unknown(context.why_bus_unread)
    elif len(on_bus) >= _ON_BOARD:
        yield NODE.passes()
    else:
        yield _fail_board(context, on_bus)


def _fail_board(context: RuleContext, on_bus: list[Gpu]) -> Fail:
    modules = {gpu.module_id for gpu in on_bus if gpu.module_id is not None}
    gone = set(range(_ON_BOARD)) - modules
    named = len(gone) == _ON_BOARD - len(on_bus)
    wired = next(gpu for gpu in on_bus if is_on_module_board(gpu))
    return NODE.fail(
        summary=f"Gaudi cards on the PCI bus: {len(on_bus)} of {_ON_BOARD}"
        + (f"; module {format_ranges(gone)} is missing" if named and len(gone) == 1 else "")
        + (f"; modules {format_ranges(gone)} are missing" if named and len(gone) > 1 else ""),
        impact=f"Jobs that ask for {_ON_BOARD} cards do not start, or run on fewer.",
        evidence=(
            Evidence("Gaudi cards on the PCI bus", str(len(on_bus)), "lspci -d 1da3: -nn"),
            Evidence("modules", format_ranges(modules), f"{ACCEL}/*/device/module_id"),
            Evidence(
                f"ports of {wired.label} that its board joins to seven others",
                str(TO_OTHERS),
                "/sys/class/infiniband/hbl_*/ports_mask, ext_ports_mask",
            ),
        ),
        cause="board",
        ids=frozenset({"count of GPUs", *find_lost_addresses(context)}),
    )


def _judge_missing(context: RuleContext, gpu: Gpu, cards: list[Gpu]) -> Result:
    answer = find_offered(context, gpu, "habanalabs", "the driver's list does not show", ("open", "error"))
    if answer:
        return answer
    usable = sum(card.driver_state == "open" for card in cards)
    return about_gpu(gpu).fail(
        summary="on the PCI bus with habanalabs bound, but the driver offers no device of it",
        impact=f"{usable} of {len(cards)} cards can be used; jobs that ask for all do not start.",
        evidence=(
            Evidence("on the PCI bus", gpu.id, "lspci -d 1da3: -nnk"),
            Evidence("device of the driver", "none", f"{ACCEL}/*/device/pci_addr"),
            *kernel_log_evidence(context, gpu.id),
        ),
    )


@rule("gaudi-status", each=gaudi_cards, merge=on_all("no Gaudi card takes jobs, by the state that the driver reports"))
def gaudi_status(context: RuleContext, gpu: Gpu) -> Result:
    about, absent = about_gpu(gpu), why_unreachable(find_function(context, gpu))
    if absent or gpu.driver_state not in ("open", "error"):
        return about.not_applicable(absent or Reason("not-measured", detail="the driver does not offer it"))
    if gpu.driver_state == "open":
        return about.passes()
    broken = gpu.driver_error == _BROKEN
    return about_gpu(gpu).fail(
        summary=f"the driver reports the state {gpu.driver_error}",
        impact="The card takes no jobs." if broken else "The card takes no jobs until the driver has finished with it.",
        evidence=(
            Evidence(f"status of {gpu.label}", quote_source(gpu.driver_error) or "", f"{ACCEL}/*/device/status"),
            *kernel_log_evidence(context, gpu.id),
        ),
        severity=None if broken else "warning",
    )


@rule("gaudi-module-id")
def gaudi_module_id(context: RuleContext) -> Iterator[Result]:
    cards = [gpu for gpu in gaudi_cards(context) if why_unreachable(find_function(context, gpu)) is None]
    by_module: dict[int, list[Gpu]] = {}
    for gpu in cards:
        if gpu.module_id is None:
            yield about_gpu(gpu).unknown(
                quote_source(gpu.driver_error) or Reason("not-shown", detail="the driver states no module id")
            )
        else:
            by_module.setdefault(gpu.module_id, []).append(gpu)
    for module, group in sorted(by_module.items()):
        if len(group) == 1:
            yield about_gpu(group[0]).passes()
            continue
        yield NODE.fail(
            summary=f"{join_labels([gpu.label for gpu in group])} have the same module id {module}",
            impact="The collective library takes one for the other: it opens connections over ports that do not meet.",
            evidence=tuple(
                Evidence(f"module of {gpu.label}", str(module), f"{ACCEL}/*/device/module_id") for gpu in group
            ),
            cause=f"module {module}",
            ids=frozenset(gpu.id for gpu in group),
        )
