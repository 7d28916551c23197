"""Slots that detect a card of which nothing is on the bus: it is there, and its link does not come up."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.rules.context import RuleContext
from agent.rules.devices import about_function
from agent.rules.node_wide import merge_failures
from agent.rules.rule import NODE, Fail, Result, rule

_PORTS = ("root_port", "downstream")
_CARD_LANES = (8, 12, 16, 32)  # with fewer: bays of drives, whose pins detect a SATA drive, too


@rule("pcie-slot-card-missing")
def pcie_slot_card_missing(context: RuleContext) -> Iterator[Result]:
    ports = [function for function in context.topology.pci if function.port_type in _PORTS]
    if context.virtual_machine:
        yield NODE.not_applicable("guest", detail="virtual machine: the hypervisor controls its slots")
    elif context.why_bus_unread:
        yield NODE.unknown(context.why_bus_unread)
    elif not ports:
        yield NODE.not_applicable(
            "no-such-device", detail="no PCIe port, or only root can read what kind of port one is"
        )
    else:
        filled = {function.parent for function in context.topology.pci}
        tell = {(port.vendor, port.device) for port in ports if port.slot_occupied is False}
        answers = [_judge_slot(context, port, port.id in filled, (port.vendor, port.device) in tell) for port in ports]
        faults = [answer for answer in answers if isinstance(answer, Fail)]
        yield from (answer for answer in answers if not isinstance(answer, Fail))
        yield from _merge(faults)


def _judge_slot(context: RuleContext, port: PciFunction, filled: bool, tells: bool) -> Result:
    """`tells`: an empty slot below a port of this kind reports that it is empty."""
    about, link = about_function(context, port.id), port.link
    if filled or port.slot_occupied is False:
        return about.passes()
    if port.slot_occupied is None:
        return about.not_applicable("not-measured", detail="it has no slot, or its registers are not readable")
    if port.state != "present" or port.power_state not in (None, "D0", "active"):
        return about.not_applicable("not-in-use", detail="the port sleeps")
    if port.link_disabled or port.slot_powered is False:
        return about.not_applicable("not-configured", detail="the slot or its link is switched off")
    if link is None or link.max_width not in _CARD_LANES:
        return about.not_applicable("other-kind", detail="a slot of few lanes, as drives have")
    if port.link_active is None or port.slot_powered is None:
        return about.unknown("not-shown", detail="whether its link is up, or the slot has power, is not reported")
    if port.link_active:
        return about.not_applicable("not-in-use", detail="its link is up")
    if context.why_settling:
        return about.unknown(context.why_settling)
    lost = context.why_gpu_driver_idle if tells or port.port_type == "downstream" else None
    slot = f" (slot {port.slot})" if port.slot else ""
    source = f"lspci -vv -s {port.id} (root)"
    return Fail(
        subject=f"pci:{port.id}",
        label=f"PCIe port {port.id}{slot}",
        summary="the slot detects a card, and its link does not come up: nothing of the card is on the bus",
        impact="No job can use this node: none of its GPUs is on the bus."
        if lost
        else "The card in the slot cannot be used: no driver sees it.",
        evidence=(
            Evidence(f"SltSta of {port.id}", "PresDet+", source),
            Evidence(f"LnkSta of {port.id}", "DLActive-", source),
        ),
        severity="critical" if lost else "warning" if tells or port.port_type == "downstream" else "info",
        confidence="medium",
        ids=frozenset({port.id}),
    )


def _merge(faults: list[Fail]) -> Iterator[Fail]:
    """One finding for all that are as severe."""
    for severity in ("critical", "warning", "info"):
        alike = [fault for fault in faults if fault.severity == severity]
        if len(alike) < 2:
            yield from alike
        else:
            yield merge_failures(alike, f"{len(alike)} slots detect a card, and the links do not come up")
