"""Slots that detect a card of which nothing is on the bus: it is there, and its link does not come up."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.node_wide import merge_failures
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule

_PORTS = ("root_port", "downstream")
_CARD_LANES = (8, 12, 16, 32)  # with fewer: bays of drives, whose pins detect a SATA drive, too


@rule("pcie-slot-card-missing")
def pcie_slot_card_missing(case: RuleContext) -> Iterator[Result]:
    ports = [function for function in case.topology.pci if function.port_type in _PORTS]
    if case.virtual_machine:
        yield NotApplicable("node", Reason("guest", detail="virtual machine: the hypervisor controls its slots"))
    elif case.bus_unread:
        yield Unknown("node", case.bus_unread)
    elif not ports:
        yield NotApplicable(
            "node", Reason("no-such-device", detail="no PCIe port, or only root can read what kind of port one is")
        )
    else:
        filled = {function.parent for function in case.topology.pci}
        tell = {(port.vendor, port.device) for port in ports if port.slot_occupied is False}
        answers = [_judge_slot(case, port, port.id in filled, (port.vendor, port.device) in tell) for port in ports]
        faults = [answer for answer in answers if isinstance(answer, Fail)]
        yield from (answer for answer in answers if not isinstance(answer, Fail))
        yield from _merge(faults)


def _judge_slot(case: RuleContext, port: PciFunction, filled: bool, tells: bool) -> Result:
    """`tells`: an empty slot below a port of this kind reports that it is empty."""
    subject, link = f"pci:{port.id}", port.link
    if filled or port.slot_occupied is False:
        return Pass(subject)
    if port.slot_occupied is None:
        return NotApplicable(
            subject, Reason("not-measured", detail="it has no slot, or its registers are not readable")
        )
    if port.state != "present" or port.power_state not in (None, "D0", "active"):
        return NotApplicable(subject, Reason("not-in-use", detail="the port sleeps"))
    if port.link_disabled or port.slot_powered is False:
        return NotApplicable(subject, Reason("not-configured", detail="the slot or its link is switched off"))
    if link is None or link.max_width not in _CARD_LANES:
        return NotApplicable(subject, Reason("other-kind", detail="a slot of few lanes, as drives have"))
    if port.link_active is None or port.slot_powered is None:
        return Unknown(
            subject, Reason("not-shown", detail="whether its link is up, or the slot has power, is not reported")
        )
    if port.link_active:
        return NotApplicable(subject, Reason("not-in-use", detail="its link is up"))
    if case.settling:
        return Unknown(subject, case.settling)
    lost = case.idle_gpu_driver if tells or port.port_type == "downstream" else None
    return _fail_slot(port, tells, lost)


def _fail_slot(port: PciFunction, tells: bool, lost: str | None) -> Fail:
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
            Evidence(what=f"SltSta of {port.id}", value="PresDet+", source=source),
            Evidence(what=f"LnkSta of {port.id}", value="DLActive-", source=source),
        ),
        severity="critical" if lost else "warning" if tells or port.port_type == "downstream" else "info",
        confidence="medium",
        places=frozenset({port.id}),
    )


def _merge(faults: list[Fail]) -> Iterator[Fail]:
    """One finding for all that are as grave."""
    for severity in ("critical", "warning", "info"):
        alike = [fault for fault in faults if fault.severity == severity]
        if len(alike) < 2:
            yield from alike
        else:
            yield merge_failures(alike, f"{len(alike)} slots detect a card, and the links do not come up")
